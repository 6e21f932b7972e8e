"""``countersign``, the operators' command: each of its commands does what the door behind it does, and a mistake is a sentence."""

import importlib
import io
import os
import socket
import ssl
import subprocess
import sys
import threading
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from contracts.errors import ServiceError
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.monitoring import observe
from contracts.runtime.operations.checking import Fault, Trial
from contracts.types import Role
from deploy import demo, local, rabbitmq, suite
from deploy.command import doctor, environment, keys, verify
from deploy.command.main import COMMANDS, main
from deploy.manifest import Places
from deploy.rabbitmq import PrivateBroker
from deploy.services import ROOT, SERVICES
from services.gateway.accounts import commands, queries
from services.gateway.accounts.api_keys.keys import KeyRing, new_api_key
from services.gateway.rights import Rights
from services.rendering.jobs.sealing import certificates
from tests.contract.conftest import ON_SQLITE
from tests.support.files.pdf_files import document, line
from tests.support.rendering.seals import identity, sealed
from tests.support.services import processes
from tests.support.services.forking import completed

SECRET = "c4n4ry" * 8
NO_BROKER = "amqp://guest:c4n4ry@127.0.0.1:1/"


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No settings but a test's own, and no suite in the folder where it runs. What the command itself sets goes as well."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(observe, "setup", lambda *_: None)
    with patch.dict(os.environ):
        for name in {
            *environment.REQUIRED,
            "VAR_DIR",
            "API_KEY",
            "BASE_URL",
            "COUNTERSIGN_REVISION",
            "TRUST_ANCHORS_DIR",
        }:
            os.environ.pop(name, None)
        yield


def given(monkeypatch: pytest.MonkeyPatch, folder: Path, places: Places, **more: str) -> None:
    """The settings of all services."""
    for service, url in places.databases.items():
        for name, value in processes.environment(service, NO_BROKER, url, folder).items():
            monkeypatch.setenv(name, value)
    for name, value in {"KEY_ENCRYPTION_SECRET": SECRET, "BLOB_URL": places.blobs, **more}.items():
        monkeypatch.setenv(name, value)


def countersign(*arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own."""
    return completed("deploy.command", *arguments, environment={**os.environ, "PYTHONPATH": str(ROOT)})


# --- the command line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name a command: up, demo, doctor"),
        (["upp"], "invalid choice: 'upp'"),
        (["--verbose"], "unrecognized arguments: --verbose"),
        (["up", "now"], "unrecognized arguments: now"),
        (["demo", "--port", "1"], "unrecognized arguments: --port 1"),
        (["doctor", "mailer"], "mailer is no service: there are templates, submissions"),
        (["check", "gateway", "mailer"], "mailer is no service"),
        (["migrate", "--all"], "unrecognized arguments: --all"),
        (["retry", "mailer"], "invalid choice: 'mailer'"),
        (["keys", "a@example.com", "b@example.com"], "unrecognized arguments: b@example.com"),
        (["parked"], "countersign parked list"),
        (["parked", "drop"], "countersign parked drop QUEUE"),
        (["backup"], "the following arguments are required: DIR"),
        (["restore", "a", "b"], "unrecognized arguments: b"),
        (["move", "gateway"], "the following arguments are required: --to"),
        (["move", "--to", "postgresql://127.0.0.1"], "name services, or --all"),
        (["move", "gateway", "--all", "--to", "postgresql://127.0.0.1"], "name services, or --all"),
        (["move", "mailer", "--to", "postgresql://127.0.0.1"], "mailer is no service"),
        (["reconcile", "--dry-run", "--remove-unnamed"], "--dry-run changes nothing"),
        (["accept-differences", "http://127.0.0.1:1"], "API_KEY is not set"),
        (["verify"], "the following arguments are required: FILE"),
    ],
)
def test_what_makes_no_sense_is_a_sentence_and_status_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(arguments)
    except SystemExit as end:
        status = int(end.code or 0)
    told = capsys.readouterr()
    assert (status, said in told.err, told.out) == (2, True, ""), told.err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_is_for(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    assert f"  {command} {COMMANDS[command].usage}".rstrip() in capsys.readouterr().out
    if command == "parked":
        return  # its usage is its text
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: countersign {command} ")


def test_it_says_its_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (main(["--version"]), capsys.readouterr().out) == (0, f"countersign {version}\n")
    monkeypatch.setenv("COUNTERSIGN_REVISION", "4711abc")
    assert (main(["--version"]), capsys.readouterr().out) == (0, f"countersign {version} (4711abc)\n")


def test_its_start_imports_nothing_that_takes_time() -> None:
    light = "import sys, deploy.command.main as m; heavy = {'sqlalchemy', 'pika', 'pydantic', 'connexion', 'requests'};"
    light += " print(sorted(heavy & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", light], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_package_has_it_as_a_program() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["countersign"].partition(":")
    assert getattr(importlib.import_module(module), function) is main


def test_who_installed_it_without_the_services_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("deploy.command.main.find_spec", {"connexion": 1, "weasyprint": 1}.get)
    assert main(["up"]) == 2
    assert capsys.readouterr().err.startswith("countersign: nameko is missing: it was installed without its services.")


def test_the_environment_of_a_checkout_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also through a link to it from elsewhere, and through a link to the environment: it is that checkout's command."""
    programs = tmp_path / "checkout" / ".venv" / "bin"
    programs.mkdir(parents=True)
    (tmp_path / "checkout" / "deploy").symlink_to(ROOT / "deploy")
    (tmp_path / "checkout" / "contracts").symlink_to(ROOT / "contracts")
    (tmp_path / "checkout" / "pyproject.toml").write_text('[project]\nversion = "7.8.9"\n')
    monkeypatch.setattr(local, "ENVIRONMENT", programs.parent)
    monkeypatch.setattr(
        local, "COMMAND", local.COMMAND.replace(local.COMMAND.partition("\n")[0], f"#!{sys.executable}", 1)
    )
    local.write_command()
    (tmp_path / "elsewhere").symlink_to(programs / "countersign")
    for program in (programs / "countersign", tmp_path / "elsewhere"):
        refused = subprocess.run([program, "nothing"], capture_output=True, text=True, timeout=60, check=False)
        assert (refused.returncode, "invalid choice: 'nothing'" in refused.stderr) == (2, True), refused.stderr


@pytest.mark.parametrize("command", ["up", "demo"])
def test_without_a_broker_nothing_is_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    monkeypatch.setattr("deploy.rabbitmq.BINARIES", tmp_path / "nothing")
    monkeypatch.setattr(suite, "main", lambda: pytest.fail("it was started"))
    monkeypatch.setattr(demo, "main", lambda: pytest.fail("it was started"))
    assert main([command]) == 1
    assert "RabbitMQ is not installed here. Set AMQP_URL" in capsys.readouterr().err
    assert "rabbitmq-server" in local.RUN_PACKAGES


def test_up_starts_no_rabbitmq_that_tries_nothing_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv("AMQP_URL", raising=False)
    monkeypatch.setenv("VAR_DIR", str(tmp_path / "var"))
    monkeypatch.setattr(
        suite, "too_old", lambda: rabbitmq.too_old(Path("/usr/lib/rabbitmq/lib/rabbitmq_server-3.9.27"))
    )
    assert suite.main() == 1
    assert "RabbitMQ 3.9.27 never gives back what is to be tried again" in capsys.readouterr().err
    assert not (tmp_path / "var").exists()


def test_other_rabbitmqs_will_do() -> None:
    for version in ("3.10.8", "3.13.7", "4.0.5"):
        assert rabbitmq.too_old(Path(f"rabbitmq_server-{version}")) is None
    assert rabbitmq.too_old() is None


def test_up_and_demo_keep_what_they_make_where_they_are_called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[str] = []

    def note() -> int:
        seen.append(os.environ.pop("VAR_DIR"))
        return 0

    monkeypatch.setattr(suite, "main", note)
    monkeypatch.setattr(demo, "main", note)
    assert (main(["up"]), main(["demo"])) == (0, 0)
    assert seen == [str(tmp_path / "var"), str(tmp_path / "var" / "demo")]


@pytest.mark.parametrize(("there", "status"), [("secrets/link-secret", 0), ("demo/results", 0), ("log/syslog", 2)])
def test_up_takes_no_folder_of_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, there: str, status: int
) -> None:
    """Called in a system's root, ``./var`` is not ours."""
    monkeypatch.setattr(suite, "main", lambda: os.environ.pop("VAR_DIR") and 0)
    (tmp_path / "var" / there).parent.mkdir(parents=True)
    (tmp_path / "var" / there).touch()
    assert main(["up"]) == status
    assert (f"{tmp_path}/var holds something else than a suite" in capsys.readouterr().err) == bool(status)


def test_what_is_not_permitted_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused() -> int:
        os.environ.pop("VAR_DIR")
        raise PermissionError(13, "Permission denied", "var/secrets")

    monkeypatch.setattr(suite, "main", refused)
    assert main(["up"]) == 1
    assert "this user may not do that: [Errno 13] Permission denied: 'var/secrets'" in capsys.readouterr().err


def test_a_demo_removes_nothing_but_a_demo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "databases").mkdir()
    monkeypatch.setenv("VAR_DIR", str(tmp_path))
    assert main(["demo"]) == 2
    assert "holds something else than a demo" in capsys.readouterr().out
    assert (tmp_path / "databases").exists()


# --- whose settings


def a_suite(folder: Path) -> suite.Suite:
    """Its folder, as after its first start."""
    made = suite.Suite(folder, environment={"ADMIN_API_KEY": ""})
    operator, services = made._broker_passwords()
    node = PrivateBroker(folder / "rabbitmq", operator)
    node.port = 12_345
    node._write_configuration()
    made._secrets.get("link-secret")
    assert services
    return made


def test_the_settings_are_those_of_the_suite_in_the_folder(tmp_path: Path) -> None:
    made = a_suite(tmp_path / "var")
    found = {"PATH": "/bin"}
    assert environment.complete(found) == tmp_path / "var"
    assert found["LINK_SECRET"] == made._secrets.get("link-secret")
    assert found["WEBHOOKS_DATABASE_URL"] == f"sqlite:///{tmp_path}/var/databases/webhooks.sqlite"
    assert found["AMQP_URL"].startswith("amqp://countersign:")
    assert found["WEBHOOKS_AMQP_URL"].startswith("amqp://countersign-webhooks:")
    assert all(found[name].endswith("@127.0.0.1:12345/%2F") for name in ("AMQP_URL", "WEBHOOKS_AMQP_URL"))
    assert found["ADMIN_API_KEY"] == (tmp_path / "var" / "admin-api-key").read_text().strip()


def test_settings_of_a_deployment_are_not_mixed_with_those_of_a_suite(tmp_path: Path) -> None:
    """A setting that was forgotten must be missed."""
    a_suite(tmp_path / "var")
    for name in environment.REQUIRED:
        found = {name: "given"}
        assert environment.complete(found) is None
        assert found == {name: "given"}
    own = {"VAR_DIR": str(tmp_path / "var"), "BLOB_URL": "s3://mine/x"}
    assert environment.complete(own) == tmp_path / "var"
    assert own["BLOB_URL"] == "s3://mine/x"
    assert environment.complete({"VAR_DIR": str(tmp_path / "other")}) is None
    assert not (tmp_path / "other").exists()


# --- keys


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch, places: Places, tmp_path: Path) -> Iterator[Database]:
    """An installation with two admins and an editor, each with a key of the pattern ``key of <address>``."""
    given(monkeypatch, tmp_path, places)
    database = Database(places.databases["gateway"])
    for address, role in (
        ("ann@example.com", Role.ADMIN),
        ("bob@example.com", Role.ADMIN),
        ("ed@example.com", Role.EDITOR),
    ):
        key = KeyRing(SECRET).seal(f"key of {address}")
        database.write(commands.create_user, commands.NewUser(address, role=role), "-", key, now())
    yield database
    database.dispose()


def whose(database: Database, key: str) -> str | None:
    known = database.read(queries.known_key, KeyRing(SECRET).hash(key))
    return known.actor.email if known else None


def test_an_admin_who_lost_the_key_gets_another(admin: Database, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "Ann@Example.com"]) == 0
    key = capsys.readouterr().out.strip()
    assert len(key) == len(new_api_key())
    assert whose(admin, key) == "ann@example.com"
    assert whose(admin, "key of ann@example.com") is None
    assert whose(admin, "key of bob@example.com") == "bob@example.com"


def test_an_admin_who_has_deleted_the_first_key_gets_another_and_keeps_the_others(
    admin: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    ring = KeyRing(SECRET)
    user = admin.read(queries.active_actor_with, "ann@example.com")
    assert user is not None
    admin.write(commands.create_key, user.user_id, ring.hash("another"), "Another", Rights(), now())
    (first, _) = admin.read(queries.user_keys, user.user_id)
    admin.write(commands.remove_key, user.user_id, first["id"], now())
    assert main(["keys", "ann@example.com"]) == 0
    assert whose(admin, capsys.readouterr().out.strip()) == whose(admin, "another") == "ann@example.com"


@ON_SQLITE
def test_only_admins_get_keys_so(admin: Database, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys"]) == 0
    assert capsys.readouterr().out.split() == ["ann@example.com", "bob@example.com"]
    for address in ("ed@example.com", "nobody@example.com"):
        assert main(["keys", address]) == 1
        told = capsys.readouterr()
        assert (told.out, f"no admin has the address {address}; there are: ann@" in told.err) == ("", True)
    assert whose(admin, "key of ed@example.com") == "ed@example.com"


@ON_SQLITE
def test_the_file_of_the_first_admin_s_key_is_the_new_one(
    admin: Database, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / suite.ADMIN_KEY_FILE
    file.write_text("key of ann@example.com\n")
    assert keys.renew("bob@example.com") == 0
    assert file.read_text() == "key of ann@example.com\n"
    capsys.readouterr()
    assert keys.renew("ann@example.com") == 0
    told = capsys.readouterr()
    assert file.read_text() == told.out
    assert str(file) in told.err


def test_without_a_database_no_key_is_made(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    empty = Places(
        {service: f"sqlite:///{tmp_path}/{service}.sqlite" for service in SERVICES}, f"file://{tmp_path}/blobs"
    )
    given(monkeypatch, tmp_path, empty)
    assert main(["keys", "ann@example.com"]) == 1
    told = capsys.readouterr()
    assert (told.out, "run migrate" in told.err) == ("", True)


# --- verify


@pytest.fixture(scope="module")
def seal(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Path]:
    """A sealed file, and the root of its seal."""
    root = tmp_path_factory.mktemp("seal") / "root.pem"
    root.write_bytes(identity().chain[-1].public_bytes(serialization.Encoding.PEM))
    return sealed(document(line("Agreed."))), root


def test_a_sealed_file_is_checked(
    seal: tuple[bytes, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, root = seal
    file = tmp_path / "agreement.pdf"
    file.write_bytes(data)
    assert main(["verify", str(file), "--root", str(root)]) == 0
    told = capsys.readouterr().out
    assert told.startswith("The signatures hold.\n  Test Seal, ")
    assert "integrity: valid; certificate: trusted here" in told
    assert main(["verify", str(file)]) == 1
    assert "not issued by anybody who is trusted here" in capsys.readouterr().out
    monkeypatch.setattr(verify, "own_anchors", lambda: [identity().encoded[-1]])
    assert main(["verify", str(file)]) == 0
    changed = bytearray(data)
    changed[data.index(b"/BaseVersion /1.7") + len("/BaseVersion /1.")] = ord("6")
    file.write_bytes(changed)
    capsys.readouterr()
    assert main(["verify", str(file), "--root", str(root)]) == 1
    assert capsys.readouterr().out.startswith("It was changed after it was signed")
    file.write_bytes(document(line("Never signed.")))
    assert main(["verify", str(file)]) == 1
    assert capsys.readouterr().out == "It has no signature.\n"


def test_the_seal_s_own_root_is_trusted_and_no_key_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seal: tuple[bytes, Path]
) -> None:
    assert verify.own_anchors() == [], "no settings"
    folder = tmp_path / "certificates"
    folder.mkdir()
    settings = processes.environment("rendering", NO_BROKER, "sqlite://", tmp_path, CERTIFICATE_DIR=str(folder))
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert (verify.own_anchors(), list(folder.iterdir())) == ([], [])
    (folder / certificates.ROOT_FILE).write_bytes(seal[1].read_bytes())
    assert verify.own_anchors() == [identity().encoded[-1]]


@pytest.mark.parametrize(
    ("content", "more", "said"),
    [
        (None, [], "No such file"),
        (b"", [], "could not be checked"),
        (b"Dear Sir", [], "could not be checked"),
        (b"%PDF-1.7\n" + bytes(range(256)), [], "could not be checked"),
        (b"%PDF-1.7\n", ["--root", "nothing.pem"], "No such file"),
        (b"%PDF-1.7\n", ["--root", "file"], "holds no certificate in PEM"),
    ],
)
def test_what_cannot_be_checked_is_said_and_is_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, more: list[str], said: str
) -> None:
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    assert main(["verify", "file", *more]) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert "signature" not in told.out


def test_evidence_is_given_to_its_own_program(tmp_path: Path) -> None:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        archive.writestr("manifest.json", "{}")
    (tmp_path / "evidence.zip").write_bytes(memory.getvalue())
    done = countersign("verify", "evidence.zip")
    assert (done.returncode, done.stdout.startswith("WRONG  ")) == (2, True), done.stdout + done.stderr
    done = countersign("verify", str(tmp_path))
    assert (done.returncode, done.stdout.endswith("Something differs.\n")) == (1, True), done.stdout + done.stderr


# --- doctor


def told(capsys: pytest.CaptureFixture[str], *services: str) -> tuple[int, list[str]]:
    status = main(["doctor", *services])
    return status, capsys.readouterr().out.splitlines()


def test_settings_that_are_missing_are_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = told(capsys)
    assert status == 1
    see = "See contracts/README.md, or that of the service, for what it must be."
    assert f"wrong    all services: LINK_SECRET: it is not set. {see}" in lines
    assert f"wrong    gateway: KEY_ENCRYPTION_SECRET: it is not set. {see}" in lines
    for service in SERVICES:
        assert any(line.startswith(f"wrong    {service}: {service.upper()}_DATABASE_URL: ") for line in lines)
    assert "wrong" in lines[-1]


def test_settings_that_do_not_go_together_are_told_in_their_own_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name, value in processes.environment("rendering", NO_BROKER, "sqlite://", tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LINK_SECRET", "short")
    _, (line, _) = told(capsys, "rendering")
    assert line.startswith("wrong    rendering: LINK_SECRET: must have at least 32 characters; ")
    monkeypatch.setenv("LINK_SECRET", SECRET)
    for name in ("VAR_DIR", "CERTIFICATE_DIR"):
        monkeypatch.delenv(name)
    _, (line, _) = told(capsys, "rendering")
    assert line.startswith("wrong    rendering: settings: nothing to seal with: set CERTIFICATE_DIR")


@pytest.mark.parametrize("url", ["nonsense", "mysql://localhost/templates", ""])
def test_a_database_url_that_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, url: str
) -> None:
    for name, value in processes.environment("templates", NO_BROKER, url, tmp_path).items():
        monkeypatch.setenv(name, value)
    status, (line, _) = told(capsys, "templates")
    assert (status, line.startswith("wrong    templates: TEMPLATES_DATABASE_URL: it names no database")) == (1, True)


@ON_SQLITE
def test_a_broker_that_is_away_is_said_once_and_nothing_that_follows_from_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, places: Places
) -> None:
    given(monkeypatch, tmp_path, places)
    status, lines = told(capsys, "templates", "webhooks")
    assert (status, lines) == (
        1,
        [
            "wrong    all services: broker: connection refused. Start it, or correct AMQP_URL.",
            "1 wrong, 0 worth a look. `countersign check` shows the settings and all that was tried.",
        ],
    )


def test_databases_that_are_empty_and_those_that_are_shared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, broker: PrivateBroker
) -> None:
    url = f"sqlite:///{tmp_path}/one.sqlite"
    given(
        monkeypatch,
        tmp_path,
        Places(dict.fromkeys(SERVICES, url), f"file://{tmp_path}/blobs"),
        AMQP_URL=broker.amqp_url,
    )
    _, lines = told(capsys, "templates", "webhooks")
    assert (
        "wrong    all services: databases: templates, webhooks are set to one database. Give each a database of its own:"
        " their tables have the same names." in lines
    )
    schemas = [line for line in lines if ": schema: " in line]
    assert schemas
    assert all("run migrate" in line for line in schemas)
    assert not [line for line in lines if "writing to the database" in line or ": start: " in line]


@ON_SQLITE
def test_where_nothing_is_wrong_it_says_so(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    places: Places,
    broker: PrivateBroker,
) -> None:
    given(monkeypatch, tmp_path, places, AMQP_URL=broker.amqp_url)
    processes.migrate("webhooks", dict(os.environ))
    assert told(capsys, "webhooks") == (0, ["Nothing is wrong with webhooks."])
    monkeypatch.setenv("BLOB_URL", "file:///proc/blobs")
    status, (line, _) = told(capsys, "webhooks")
    assert status == 1
    assert line.startswith("wrong    webhooks: file store: ")
    assert line.endswith("Correct BLOB_URL, or make it writable for this user.")


@ON_SQLITE
def test_what_goes_together_in_the_gateway_s_settings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, places: Places
) -> None:
    given(monkeypatch, tmp_path, places, BASE_URL="https://127.0.0.1:1", HOST="0.0.0.0", ADMIN_EMAIL="ann@example.com")
    monkeypatch.delenv("ADMIN_API_KEY", raising=False)
    _, lines = told(capsys, "gateway")
    warnings = [line for line in lines if line.startswith("warning  gateway: ")]
    assert [line.split(": ")[1] for line in warnings] == [
        "ADMIN_EMAIL",
        "TRUSTED_PROXIES",
        "the certificate at BASE_URL",
    ]
    assert warnings[0].endswith("set without ADMIN_API_KEY, so that no first admin is made. Set both or neither.")
    assert "is not reached from here" in warnings[2]
    for name, value in (
        ("ADMIN_API_KEY", "k" * 20),
        ("TRUSTED_PROXIES", "10.0.0.0/8"),
        ("BASE_URL", "http://localhost"),
    ):
        monkeypatch.setenv(name, value)
    _, lines = told(capsys, "gateway")
    assert not [line for line in lines if line.startswith("warning")]


@pytest.mark.parametrize(
    ("days", "words"), [(5, "but it ends in 4 days: renew it"), (90, "89 days"), (-1, "certificate has expired")]
)
def test_the_certificate_that_people_meet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, days: int, words: str
) -> None:
    chain = tmp_path / "chain.pem"
    chain.write_bytes(_self_signed(days))
    monkeypatch.setenv("SSL_CERT_FILE", str(chain))
    with _tls_server(chain) as port:
        address = f"https://localhost:{port}/"
        if days < 0:
            with pytest.raises(Fault, match=words):
                doctor._certificate_at(address)
        else:
            assert doctor._certificate_at(address) == words
    assert doctor._certificate_at("http://localhost/") == ""


def _self_signed(days: int) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    moment = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment - timedelta(days=30))
        .not_valid_after(moment + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    return made.public_bytes(pem) + key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)


@contextmanager
def _tls_server(chain: Path) -> Iterator[int]:
    """On a port of localhost: whoever comes gets its certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    listening = socket.create_server(("localhost", 0))

    def serve() -> None:
        connection, _ = listening.accept()
        with suppress(OSError), context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(1)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield int(listening.getsockname()[1])
    thread.join()
    listening.close()


def test_a_finding_is_a_sentence_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        doctor.Finding(True, "file store", "it is full", "make room").sentence == "file store: it is full. Make room."
    )
    assert doctor.Finding(True, "queues", "x is missing: run migrate.").sentence == "queues: x is missing: run migrate."


def test_trials_that_need_one_that_failed_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def away() -> str:
        raise ServiceError("unavailable", "it is away")

    asked: list[str] = []

    def note(name: str) -> Trial:
        def try_it() -> str:
            asked.append(name)
            return "but odd"

        return Trial(name, try_it, "mend it")

    trials = [Trial("database", away), note("schema"), note("start"), note("queues"), note("other")]
    monkeypatch.setattr("contracts.runtime.operations.checking.trials", lambda *_: trials)
    for name, value in processes.environment("webhooks", NO_BROKER, "sqlite://", tmp_path).items():
        monkeypatch.setenv(name, value)
    found = [finding for _, finding in doctor.findings(["webhooks"])]
    assert found == [
        doctor.Finding(True, "database", "it is away"),
        doctor.Finding(False, "queues", "odd", "mend it"),
        doctor.Finding(False, "other", "odd", "mend it"),
    ]
    assert asked == ["queues", "other"]
