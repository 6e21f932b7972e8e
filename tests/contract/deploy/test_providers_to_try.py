"""The providers that `make up` runs beside the services, to be tried: as processes, without the services."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from deploy.suite import PROVIDER, QUICK_DEATHS_ALLOWED, STAMP_ISSUER, Suite, announce
from tests.support.services.suite import wait_until

NO_BROKER = {"AMQP_URL": "amqp://127.0.0.1:1"}


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[Suite]:
    made = Suite(tmp_path, with_providers=True, environment=NO_BROKER)
    (tmp_path / "log").mkdir()
    yield made
    made.stop()


def test_both_are_there_and_services_know_of_them(suite: Suite, tmp_path: Path) -> None:
    urls = suite.provider_urls()
    assert suite.provider_urls() == Suite(tmp_path, with_providers=True).provider_urls(), "the same at each start"
    suite.start_providers()
    certsign, dutystamp = suite.certsign_settings(), suite.dutystamp_settings()
    assert (certsign["url"], dutystamp["stamp_url"]) == (urls[PROVIDER], urls[STAMP_ISSUER])
    known = suite.environment(suite.programs["gateway"])
    assert (known["LOCAL_PROVIDER_URL"], known["LOCAL_STAMP_ISSUER_URL"]) == (urls[PROVIDER], urls[STAMP_ISSUER])
    assert known["RENDERING_STAMP_FOLDER"] == dutystamp["adapter_folder"]
    for url, title in ((urls[PROVIDER], "Local trust provider"), (urls[STAMP_ISSUER], "Local stamp issuer")):
        assert f"<h1>{title}</h1>" in requests.get(url, timeout=120).text


def test_nothing_is_started_where_another_folder_of_stamps_is_named(tmp_path: Path) -> None:
    elsewhere = {**NO_BROKER, "RENDERING_STAMP_FOLDER": "/srv/stamps"}
    suite = Suite(tmp_path, with_providers=True, environment=elsewhere)
    assert set(suite.provider_urls()) == {PROVIDER}
    known = suite.environment(suite.programs["gateway"])
    assert (known["RENDERING_STAMP_FOLDER"], known["LOCAL_STAMP_ISSUER_URL"]) == ("/srv/stamps", "")
    assert Suite(tmp_path / "tests").provider_urls() == {}


@pytest.mark.parametrize(
    ("networks", "reachable"),
    [
        (None, True),
        ("127.0.0.0/8", True),
        ("10.0.0.0/8, 127.0.0.1/32", True),
        ("10.0.0.0/8", False),
        ("::1/128", False),
        ("this is no network", False),
    ],
)
def test_where_they_cannot_be_called_it_says_so(
    tmp_path: Path, networks: str | None, reachable: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    own = {**NO_BROKER, **({"ALLOWED_PRIVATE_NETWORKS": networks} if networks else {})}
    suite = Suite(tmp_path, with_providers=True, environment=own)
    suite.api_key = "key"
    announce(suite, 1.0)
    said = capfd.readouterr().out
    assert "To be tried" in said
    assert (f"ALLOWED_PRIVATE_NETWORKS is {networks}, and has to have 127.0.0.1 as well" in said) is not reachable
    without = Suite(tmp_path / "tests", environment=own)
    assert without.providers_out_of_reach() is None


def test_the_first_call_that_is_shown_has_the_key_that_there_is(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whoever has chosen the key is not sent to a file that is not there."""
    for own, said in (({}, f"$(cat {tmp_path}/admin-api-key)"), ({"ADMIN_API_KEY": "k" * 32}, "$ADMIN_API_KEY")):
        announce(Suite(tmp_path, environment={**NO_BROKER, **own}), 1.0)
        assert f'curl -H "X-Auth-Token: {said}"' in capfd.readouterr().out


def test_one_that_cannot_start_ends_nothing_else(suite: Suite, capfd: pytest.CaptureFixture[str]) -> None:
    port = urlsplit(suite.provider_urls()[STAMP_ISSUER]).port
    for program in suite.programs.values():
        program.wanted = False
    with socket.create_server(("127.0.0.1", port or 0)):
        suite.start_program(STAMP_ISSUER)
        issuer = suite.programs[STAMP_ISSUER]
        watching = threading.Thread(target=suite.watch)
        watching.start()
        wait_until(lambda: not issuer.wanted, what="the stamp issuer is left alone")
        assert watching.is_alive()
    assert issuer.quick_deaths >= QUICK_DEATHS_ALLOWED
    assert "stamp-issuer dies at each start, and is left alone" in capfd.readouterr().err
