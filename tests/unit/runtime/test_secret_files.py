"""Secrets in files that ``<NAME>_FILE`` names: as if they stood in the environment, and a mistake is a sentence without the secret."""

import importlib
from pathlib import Path

import pytest

from contracts.runtime import process
from contracts.runtime.settings import FILE, SecretFileFaults, ServiceSettings, secret_setting
from deploy import suite
from deploy.command import environment
from deploy.manifest import Places, Unsuitable
from deploy.services import SERVICES

SECRET = "c4n4ry" * 8
PLAIN = {"BASE_URL": "http://localhost", "BLOB_URL": "file:///blobs"}


def classes() -> dict[str, type[ServiceSettings]]:
    return {service: importlib.import_module(f"services.{service}.settings").Settings for service in SERVICES}


@pytest.fixture(autouse=True)
def _only_what_a_test_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for settings in classes().values() for name in settings.secrets().values()]:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"{name}{FILE}", raising=False)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The secrets of webhooks, in files."""
    for name, value in PLAIN.items():
        monkeypatch.setenv(name, value)
    contents = {
        "LINK_SECRET": SECRET,
        "AMQP_URL": "amqp://guest:c4n4ry@127.0.0.1/",
        "WEBHOOKS_DATABASE_URL": "postgresql://webhooks:c4n4ry@127.0.0.1/webhooks",
    }
    for name, value in contents.items():
        (tmp_path / name).write_text(f"{value}\n")
        monkeypatch.setenv(f"{name}{FILE}", str(tmp_path / name))
    return tmp_path


def read() -> ServiceSettings:
    found = process.settings_or_faults("webhooks")
    assert isinstance(found, ServiceSettings), found
    return found


def faults() -> list[str]:
    found = process.settings_or_faults("webhooks")
    assert isinstance(found, list)
    return found


@pytest.mark.usefixtures("files")
def test_what_is_in_a_file_is_the_setting() -> None:
    settings = read()
    assert settings.link_secret.get_secret_value() == SECRET
    assert settings.amqp_url == "amqp://guest:c4n4ry@127.0.0.1/"
    assert settings.database_url == "postgresql://webhooks:c4n4ry@127.0.0.1/webhooks"


@pytest.mark.parametrize(
    ("content", "secret"),
    [
        ("secret\n", "secret"),
        ("secret", "secret"),
        ("secret\r\n", "secret"),
        ("secret\n\n", "secret\n"),
        (" secret ", " secret "),
        ("é 😀\n", "é 😀"),
        ("", ""),
    ],
)
def test_one_end_of_a_line_is_dropped_and_nothing_else(content: str, secret: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content.encode())
    assert secret_setting("X", {"X_FILE": str(tmp_path / "file")}) == secret


def test_without_a_file_it_is_the_environment(tmp_path: Path) -> None:
    assert secret_setting("X", {"X": "value"}) == secret_setting("X", {"X": "value", "X_FILE": ""}) == "value"
    assert secret_setting("X", {}) is None
    (tmp_path / "file").write_text("other")
    assert secret_setting("X", {"X": "", "X_FILE": str(tmp_path / "file")}) == "other"


def test_both_are_one_too_many(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINK_SECRET", SECRET)
    monkeypatch.setenv("AMQP_URL_FILE", str(files / "nothing"))
    (files / "WEBHOOKS_DATABASE_URL").write_bytes(b"\xff")
    assert sorted(faults()) == [
        f"AMQP_URL_FILE: {files}/nothing cannot be read: No such file or directory",
        "LINK_SECRET: it is set, and LINK_SECRET_FILE as well: set one of both",
        f"WEBHOOKS_DATABASE_URL_FILE: {files}/WEBHOOKS_DATABASE_URL is not a text in UTF-8",
    ]
    monkeypatch.setenv("LINK_SECRET", "")
    assert "LINK_SECRET" not in " ".join(faults())


def test_what_is_in_a_file_is_judged_as_elsewhere(files: Path) -> None:
    (files / "LINK_SECRET").write_text("c4n4ry\n")
    (fault,) = faults()
    assert fault.startswith("LINK_SECRET: must have at least 32 characters")
    assert "c4n4ry" not in fault


@pytest.mark.usefixtures("files")
def test_an_empty_setting_beside_its_file_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """As compose files pass on what is not set."""
    for name in ("WEBHOOKS_DATABASE_URL", "LINK_SECRET", "AMQP_URL"):
        monkeypatch.setenv(name, "")
    settings = read()
    assert settings.database_url.startswith("postgresql://")
    assert settings.link_secret.get_secret_value() == SECRET
    assert settings.amqp_url.startswith("amqp://")


def test_the_own_url_of_the_broker_comes_first_from_a_file_too(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (files / "own").write_text("amqp://countersign-webhooks:c4n4ry@127.0.0.1/\n")
    monkeypatch.setenv("WEBHOOKS_AMQP_URL_FILE", str(files / "own"))
    assert read().amqp_url == "amqp://countersign-webhooks:c4n4ry@127.0.0.1/"
    monkeypatch.setenv("WEBHOOKS_AMQP_URL", "amqp://127.0.0.1/")
    assert faults() == ["WEBHOOKS_AMQP_URL: it is set, and WEBHOOKS_AMQP_URL_FILE as well: set one of both"]


def test_no_setting_has_the_name_of_another_one_s_file() -> None:
    for settings in classes().values():
        names = {str(field.validation_alias or name).upper() for name, field in settings.model_fields.items()}
        assert not names & {f"{name}{FILE}" for name in settings.secrets().values()}


def test_all_secrets_are_known() -> None:
    assert set(classes()["gateway"].secrets().values()) >= {
        "LINK_SECRET",
        "KEY_ENCRYPTION_SECRET",
        "ADMIN_API_KEY",
        "SMTP_URL",
        "IDENTITY_PROVIDER_CLIENT_SECRET",
        "GATEWAY_DATABASE_URL",
        "AMQP_URL",
    }
    assert {"SIGNING_PKCS12_PASSWORD", "SIGNING_PKCS11_PIN", "TSA_URL"} <= set(
        classes()["rendering"].secrets().values()
    )


def test_operators_commands_read_them_too(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("sqlite:////databases/x.sqlite\n")
    given_here = {f"{service.upper()}_DATABASE_URL{FILE}": str(tmp_path / "url") for service in SERVICES}
    assert set(Places.from_environment({**given_here, "BLOB_URL": "file:///x"}).databases.values()) == {
        "sqlite:////databases/x.sqlite"
    }
    with pytest.raises(Unsuitable, match="GATEWAY_DATABASE_URL: it is set, and"):
        Places.from_environment({**given_here, "BLOB_URL": "file:///x", "GATEWAY_DATABASE_URL": "sqlite://"})


def test_a_suite_hands_on_what_it_has_read_and_not_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    monkeypatch.setenv("LINK_SECRET_FILE", str(tmp_path / "secret"))
    monkeypatch.setenv("SIGNING_PKCS12_FILE", "/seal.p12")
    settings = suite.settings_from_environment()
    assert settings["LINK_SECRET"] == SECRET
    assert "LINK_SECRET_FILE" not in settings
    made = suite.Suite(tmp_path / "var", environment={**settings, "AMQP_URL": "amqp://127.0.0.1/"})
    seen = made.environment(made.programs["gateway"])
    assert (seen["LINK_SECRET"], seen["SIGNING_PKCS12_FILE"]) == (SECRET, "/seal.p12")
    assert "LINK_SECRET_FILE" not in seen
    monkeypatch.setenv("LINK_SECRET", "another")
    with pytest.raises(SecretFileFaults):
        suite.settings_from_environment()


def test_a_secret_in_a_file_is_of_a_deployment(tmp_path: Path) -> None:
    (tmp_path / "var" / "secrets").mkdir(parents=True)
    (tmp_path / "var" / "secrets" / "link-secret").write_text(SECRET)
    assert environment.complete({"VAR_DIR": str(tmp_path / "var"), "LINK_SECRET_FILE": "/run/secrets/x"}) is None
