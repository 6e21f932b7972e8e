"""``check``: each dependency of each service with its reason in words when it is wrong, and nothing left behind or told."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12

from contracts.runtime import process
from contracts.runtime.operations import checking
from contracts.runtime.operations.checking import Trial, outcome
from deploy.rabbitmq import PrivateBroker
from services.rendering.jobs.sealing import certificates
from tests.support.servers.broker_alarm import in_alarm
from tests.support.servers.collector import Collector
from tests.support.servers.identity_provider import CLIENT, Provider
from tests.support.servers.mail_server import HANG, MailServer
from tests.support.servers.postgres import PrivatePostgres
from tests.support.servers.providers.tsa import authority
from tests.support.servers.receiver import Receiver
from tests.support.services import processes
from tests.support.services.migrated import migrated

NO_BROKER = "amqp://guest:c4n4ry@127.0.0.1:1/"


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SMTP_URL", "SMS_URL", "IDENTITY_PROVIDER_URL", "TSA_URL", "SIGNING_PKCS12_FILE"):
        monkeypatch.delenv(name, raising=False)


def environment(service: str, folder: Path, **more: str) -> dict[str, str]:
    url = more.pop("database_url", f"sqlite:///{folder}/{service}.sqlite")
    return processes.environment(service, more.pop("AMQP_URL", NO_BROKER), url, folder, **more)


def found(
    monkeypatch: pytest.MonkeyPatch, service: str, settings: dict[str, str], *what: str
) -> list[tuple[bool, str]]:
    """The outcomes of the trials that begin like that."""
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    trials = checking.trials(service, process.settings_of(service))
    return [outcome(trial) for trial in trials if trial.name.startswith(what)]


# --- each service on the whole


def test_all_services_are_checked_at_once(broker: PrivateBroker, postgres: PrivatePostgres, tmp_path: Path) -> None:
    names = ["gateway", "submissions", "templates", "rendering", "notifications", "webhooks"]
    settings: dict[str, str] = {"KEY_ENCRYPTION_SECRET": "c4n4ry" * 8}
    for name in names:
        url = postgres.new_database()
        settings |= environment(name, tmp_path, AMQP_URL=broker.amqp_url, database_url=url) | settings
        processes.migrate(name, settings)
    done = processes.checked(*names, settings=settings)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("database: ok (PostgreSQL 15") == len(names)
    assert done.stdout.count("clock of the broker: ok") == done.stdout.count("clock of the database: ok") == len(names)
    for line in (
        "broker: ok (RabbitMQ ",
        "queues: ok (none of its own)",
        "file store: ok",
        "fonts: ok",
        "LibreOffice: ok (a DOCX file became 1 page)",
        "seal: key: ok (there is no signing.pem in",
        "time-stamps: ok (TSA_URL is not set",
        "mail server: ok (SMTP_URL is not set: mails are kept in",
        "DKIM: ok (DKIM_KEYS is not set: mails are not signed here",
        "SMS provider: ok (SMS_URL is not set",
        "identity provider: ok (IDENTITY_PROVIDER_URL is not set",
    ):
        assert line in done.stdout, done.stdout
    assert "c4n4ry" not in done.stdout + done.stderr
    assert not (tmp_path / "certificates").exists()
    assert not [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]


def test_everything_away_is_told_in_words(tmp_path: Path) -> None:
    settings = environment("webhooks", tmp_path, database_url="postgresql://u:c4n4ry@127.0.0.1:1/x", BLOB_URL="s3://no")
    done = processes.run("webhooks", "check", settings | {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"})
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert "database: The database is not available. Try again later. (" in said
    assert said.count("refused") > 5
    assert "broker: connection refused" in said
    assert "file store: The file store is not available. Try again later. (" in said
    assert "c4n4ry" not in said
    assert "Traceback" not in said


def test_what_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "TIME_LIMIT", 0.2)
    hanging = threading.Event()
    assert outcome(Trial("it", lambda: str(hanging.wait()))) == (False, "it: no answer within 0 s")
    hanging.set()


def test_the_collector_of_traces_is_asked_where_they_are_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = environment("webhooks", tmp_path)
    assert found(monkeypatch, "webhooks", settings, "traces") == []
    with Collector() as collector:
        assert found(monkeypatch, "webhooks", settings | collector.settings, "traces") == [(True, "traces: ok")]
        assert collector.spans == []
    ((good, line),) = found(monkeypatch, "webhooks", settings | collector.settings, "traces")
    assert not good
    assert "the collector does not answer" in line


# --- database


@pytest.mark.parametrize("command", ["serve", "background", "migrate", "check"])
def test_a_database_in_another_encoding_is_refused_in_words(
    broker: PrivateBroker, postgres: PrivatePostgres, tmp_path: Path, command: str
) -> None:
    name = f"ascii_{command}"
    where = f"postgresql://postgres@127.0.0.1:{postgres.port}"
    with psycopg.connect(f"{where}/postgres", autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    settings = environment("webhooks", tmp_path, AMQP_URL=broker.amqp_url, database_url=f"{where}/{name}")
    done = processes.run("webhooks", command, settings)
    assert done.returncode == (1 if command == "check" else 2)
    said = done.stdout + done.stderr
    assert "the database is in the encoding SQL_ASCII, it must be UTF8" in said
    assert "Traceback" not in said


def test_a_standby_and_an_old_schema(
    monkeypatch: pytest.MonkeyPatch, postgres: PrivatePostgres, tmp_path: Path
) -> None:
    url = postgres.new_database()
    settings = environment("webhooks", tmp_path, database_url=url)
    (schema,) = found(monkeypatch, "webhooks", settings, "schema")
    assert schema[0] is False
    assert "run migrate" in schema[1]
    migrated("webhooks", url)
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {url.rpartition('/')[2]} SET default_transaction_read_only = on")
    (writing,) = found(monkeypatch, "webhooks", settings, "writing")
    assert writing[0] is False
    assert "takes no changes" in writing[1]


@pytest.mark.parametrize(("ahead", "good", "words"), [(0, True, "ok"), (30, True, "ok, but"), (-90, False, "NTP")])
def test_clocks_that_differ(
    monkeypatch: pytest.MonkeyPatch,
    broker: PrivateBroker,
    postgres: PrivatePostgres,
    tmp_path: Path,
    ahead: int,
    good: bool,
    words: str,
) -> None:
    settings = environment("webhooks", tmp_path, AMQP_URL=broker.amqp_url, database_url=postgres.new_database())
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - ahead)
    clocks = found(monkeypatch, "webhooks", settings, "clock")
    assert len(clocks) == 2
    for succeeded, line in clocks:
        assert succeeded is good, line
        assert words in line
        assert ahead == 0 or f"{abs(ahead)}." in line or f"{abs(ahead) - 1}." in line or f"{abs(ahead) + 1}." in line


# --- broker


def test_a_broker_in_an_alarm_a_wrong_password_and_missing_queues(
    monkeypatch: pytest.MonkeyPatch, broker: PrivateBroker, tmp_path: Path
) -> None:
    settings = environment("webhooks", tmp_path, AMQP_URL=broker.amqp_url)
    monkeypatch.setattr(checking, "_BROKER_SECONDS", 2.0)
    with in_alarm(broker):
        (alarmed,) = found(monkeypatch, "webhooks", settings, "broker")
    assert alarmed == (
        False,
        "broker: it is in an alarm (memory or disk) and takes no messages: rabbitmq-diagnostics alarms",
    )
    wrong = settings | {"AMQP_URL": broker.amqp_url.replace("for-tests", "c4n4ry")}
    (refused,) = found(monkeypatch, "webhooks", wrong, "broker")
    assert refused[0] is False
    assert "authentication failed" in refused[1]
    assert "c4n4ry" not in refused[1]
    processes.migrate("webhooks", settings)
    (there,) = found(monkeypatch, "webhooks", settings, "queues")
    assert there[0], there
    broker.ctl("delete_queue", "rpc-webhooks")
    (missing,) = found(monkeypatch, "webhooks", settings, "queues")
    assert missing == (False, "queues: rpc-webhooks is missing: run migrate")


# --- files


@pytest.mark.parametrize(
    ("version", "refused"), [("3.9.27", True), ("2.8.4", True), ("3.10.8", False), ("3.13.7", False), ("4.0.5", False)]
)
def test_a_rabbitmq_that_tries_nothing_again(version: str, refused: bool) -> None:
    """Its words are those of 3.9.27, which was tried (docs/install.md); of another product nothing is known."""
    assert outcome(Trial("broker", lambda: checking._product("RabbitMQ", version)))[0] is not refused
    assert checking._product("LavinMQ", version) == f"LavinMQ {version}"


def test_a_missing_bucket_and_a_folder_that_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    more = {
        "AWS_ENDPOINT_URL": address,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "for-tests",
        "AWS_SECRET_ACCESS_KEY": "for-tests",
    }
    (missing,) = found(
        monkeypatch, "webhooks", environment("webhooks", tmp_path, BLOB_URL="s3://nowhere", **more), "file store"
    )
    server.stop()
    assert missing[0] is False
    assert "NoSuchBucket" in missing[1]
    (tmp_path / "file").touch()
    no_folder = environment("webhooks", tmp_path, BLOB_URL=f"file://{tmp_path}/file")
    (refused,) = found(monkeypatch, "webhooks", no_folder, "file store")
    assert refused[0] is False
    assert "Not a directory" in refused[1]


def test_a_full_disk(broker: PrivateBroker, tmp_path: Path) -> None:
    """Of the database, the files and TMPDIR: a disk of 3 MB in a mount namespace, which goes with the process.

    In a chroot the root is no mount, and cannot be made private: there the disk may be seen outside and is removed.
    """
    disk = tmp_path / "disk"
    disk.mkdir()
    migrated = environment("rendering", tmp_path, AMQP_URL=broker.amqp_url)
    processes.migrate("rendering", migrated)
    script = f"""
        mount --make-rprivate / 2>/dev/null
        mount -t tmpfs -o size=3m tmpfs {disk} && cp {tmp_path}/rendering.sqlite {disk}/ && mkdir {disk}/blobs || exit 9
        dd if=/dev/zero of={disk}/filled bs=4k 2>/dev/null
        exec {sys.executable} -m services.rendering check
    """
    settings = environment(
        "rendering", tmp_path, AMQP_URL=broker.amqp_url, database_url=f"sqlite:///{disk}/rendering.sqlite"
    )
    settings |= {"BLOB_URL": f"file://{disk}/blobs", "TMPDIR": str(disk)}
    unshare = ["unshare", "--mount", "--propagation", "unchanged", *(["--map-root-user"] if os.geteuid() else [])]
    done = subprocess.run(
        [*unshare, "sh", "-c", script], env=settings, capture_output=True, text=True, timeout=100, check=False
    )
    if disk.is_mount():
        subprocess.run(["umount", disk], check=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "file store: The file store is not available. Try again later. ([Errno 28] No space left" in done.stdout
    assert "TMPDIR: [Errno 28] No space left" in done.stdout
    assert "writing to the database: The database is not available. Try again later. (" in done.stdout


# --- notifications


@pytest.fixture
def mail_server() -> Iterator[MailServer]:
    with MailServer(login=("acme", "s3cret")) as server:
        yield server


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
def test_the_mail_server_is_asked_everything_but_to_send(
    monkeypatch: pytest.MonkeyPatch, mail_server: MailServer, tmp_path: Path
) -> None:
    def tried(login: str) -> tuple[bool, str]:
        url = f"smtp://{login}127.0.0.1:{mail_server.port}"
        settings = environment("notifications", tmp_path, SMTP_URL=url, SMTP_TIMEOUT="1", MAIL_FROM="sign@acme.example")
        (one,) = found(monkeypatch, "notifications", settings, "mail server")
        return one

    good, words = tried("acme:s3cret@")
    assert good, words
    assert "logged in as acme; it takes mails from sign@acme.example: 250 OK" in words
    for login, reason in (("acme:c4n4ry@", "535"), ("", "530")):
        good, words = tried(login)
        assert not good
        assert reason in words
        assert "c4n4ry" not in words
    mail_server.mail = lambda _sender: "550 we do not know you"
    assert tried("acme:s3cret@")[1].endswith("the sender sign@acme.example is refused: 550 we do not know you")
    mail_server.mail = lambda _sender: HANG
    assert tried("acme:s3cret@")[0] is False
    assert mail_server.received == []


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
def test_no_mail_server_and_one_without_tls(
    monkeypatch: pytest.MonkeyPatch, mail_server: MailServer, tmp_path: Path, free_port: int
) -> None:
    for url, reason in (
        (f"smtp://127.0.0.1:{free_port}", "Connection refused"),
        (f"smtp://127.0.0.1:{mail_server.port}?starttls=required", "does not offer STARTTLS, which SMTP_URL requires"),
        (f"smtps://127.0.0.1:{mail_server.port}", "SSL"),
    ):
        settings = environment("notifications", tmp_path, SMTP_URL=url, SMTP_TIMEOUT="2")
        (tried,) = found(monkeypatch, "notifications", settings, "mail server")
        assert tried[0] is False
        assert reason in tried[1]


@pytest.mark.parametrize(
    ("form", "status", "good", "words"),
    [
        ("twilio", 200, True, "it takes SMS_USER and SMS_TOKEN"),
        ("twilio", 401, False, "it refuses SMS_USER and SMS_TOKEN (401)"),
        ("twilio", 404, False, "it answered 404 when it was asked for the messages of SMS_USER"),
        ("json", 405, True, "but only reached (it answers 405)"),
        ("json", 403, False, "it refuses SMS_USER and SMS_TOKEN (403)"),
    ],
)
def test_the_sms_provider_is_asked_and_sends_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: str, status: int, good: bool, words: str
) -> None:
    receiver = Receiver(lambda _: (status, {}, b""))
    more = {"SMS_URL": receiver.url, "SMS_FORMAT": form, "SMS_USER": "AC1", "SMS_TOKEN": "c4n4ry", "SMS_FROM": "+1"}
    (tried,) = found(monkeypatch, "notifications", environment("notifications", tmp_path, **more), "SMS provider")
    assert tried[0] is good, tried
    assert words in tried[1]
    assert "c4n4ry" not in tried[1]
    assert [(one.path, one.body) for one in receiver.requests] == [
        ("/hook?PageSize=1" if form == "twilio" else "/hook", b"")
    ]
    receiver.close()


# --- gateway


def test_the_identity_provider_says_whether_it_knows_us(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    provider = Provider()
    settings = environment(
        "gateway",
        tmp_path,
        IDENTITY_PROVIDER_URL=provider.url,
        IDENTITY_PROVIDER_CLIENT_ID=CLIENT,
        IDENTITY_PROVIDER_CLIENT_SECRET="c4n4ry",
    )

    def tried() -> tuple[bool, str]:
        (one,) = found(monkeypatch, "gateway", settings, "identity provider")
        assert "c4n4ry" not in one[1]
        return one

    def token_says(status: int, error: str) -> None:
        provider.answer = lambda path: (status, {"error": error}) if path == "/token" else None

    token_says(400, "invalid_grant")
    assert tried() == (True, f"identity provider: ok ({provider.url}, 1 keys, it takes our credentials)")
    token_says(401, "invalid_client")
    assert tried()[0] is False
    assert (
        "it refuses IDENTITY_PROVIDER_CLIENT_ID and IDENTITY_PROVIDER_CLIENT_SECRET (401: invalid_client)" in tried()[1]
    )
    token_says(400, "invalid_request")
    assert tried()[1].startswith("identity provider: ok, but whether it takes our credentials it does not say")
    provider.changes = {"issuer": "https://elsewhere.example.com"}
    assert "calls itself by another issuer" in tried()[1]
    provider.close()
    assert tried()[0] is False


@pytest.mark.parametrize(
    ("url", "good", "words"),
    [
        ("https://sign.example.com", True, "BASE_URL: ok"),
        ("http://localhost:8000", True, "BASE_URL: ok"),
        ("http://sign.example.com", True, "ok, but it is not encrypted"),
        ("sign.example.com", False, "is not a web address"),
        ("https://sign.example.com?a=b", False, "links begin with it"),
    ],
)
def test_base_urls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str, good: bool, words: str) -> None:
    (tried,) = found(monkeypatch, "gateway", environment("gateway", tmp_path, BASE_URL=url), "BASE_URL")
    assert tried[0] is good
    assert words in tried[1]


# --- rendering


def stored_key(path: Path, *, until: datetime, password: str = "s3cret", chain: bool = True) -> None:
    """A PKCS#12 file with a leaf that is valid until then, and its root."""
    root_key, root = certificates.issue(certificates.Names(), "ec-p256", datetime.now(UTC))
    key = ec.generate_private_key(ec.SECP256R1())
    leaf = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Acme")]))
        .issuer_name(root.chain[-1].subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(until - timedelta(days=1000))
        .not_valid_after(until)
        .sign(root_key, hashes.SHA256())
    )
    encryption = serialization.BestAvailableEncryption(password.encode())
    more = [root.chain[-1]] if chain else None
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"seal", key, leaf, more, encryption))


@pytest.mark.parametrize(
    ("case", "good", "words"),
    [
        ("good", True, "seal: key: ok (Acme, expires in 399 days)"),
        ("soon", True, "ok, but Acme, expires in 19 days"),
        ("no root", True, "ok, but its chain is not complete"),
        ("expired", False, "the signing certificate expired on"),
        ("wrong password", False, "is not a PKCS#12 file, or SIGNING_PKCS12_PASSWORD is wrong"),
        ("garbage", False, "is not a PKCS#12 file, or SIGNING_PKCS12_PASSWORD is wrong"),
        ("missing", False, "cannot be read: No such file or directory"),
    ],
)
def test_the_key_of_the_seal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, case: str, good: bool, words: str
) -> None:
    path = tmp_path / "seal.p12"
    days = {"soon": 20, "expired": -2}.get(case, 400)
    stored_key(path, until=datetime.now(UTC) + timedelta(days=days), chain=case != "no root")
    if case == "garbage":
        path.write_bytes(os.urandom(2000))
    if case == "missing":
        path.unlink()
    password = "c4n4ry" if case == "wrong password" else "s3cret"
    more = {"SIGNING_PKCS12_FILE": str(path), "SIGNING_PKCS12_PASSWORD": password}
    (tried,) = found(monkeypatch, "rendering", environment("rendering", tmp_path, **more), "seal: key")
    assert tried[0] is good, tried
    assert words in tried[1]
    assert "c4n4ry" not in tried[1]


def test_a_seal_and_a_time_stamp_are_made(broker: PrivateBroker, tmp_path: Path) -> None:
    path = tmp_path / "seal.p12"
    stored_key(path, until=datetime.now(UTC) + timedelta(days=400))

    def checked(url: str) -> Any:
        more = {
            "SIGNING_PKCS12_FILE": str(path),
            "SIGNING_PKCS12_PASSWORD": "s3cret",
            "TSA_URL": url,
            "TSA_TIMEOUT": "2",
        }
        return processes.run("rendering", "check", environment("rendering", tmp_path, AMQP_URL=broker.amqp_url, **more))

    with authority() as tsa:
        settings = environment("rendering", tmp_path, AMQP_URL=broker.amqp_url)
        processes.migrate("rendering", settings)
        done = checked(tsa.url)
        assert done.returncode == 0, done.stdout
        assert "seal: a document: ok (sealed and read back: B-B)" in done.stdout
        assert "time-stamps of 127.0.0.1: ok (a token of" in done.stdout
        tsa.mode = "refuse"
        refused = checked(tsa.url)
        assert refused.returncode == 1
        assert "time-stamps of 127.0.0.1: 127.0.0.1: " in refused.stdout
