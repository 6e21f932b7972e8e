"""Signatures of mails: Perl's Mail::DKIM says that RSA's hold, the example of RFC 8463 and cryptography what Ed25519's are; and what
is changed on the way breaks them."""

import base64
import hashlib
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import ValidationError

from services.notifications.channels import dkim_keys
from services.notifications.channels.dkim_keys import BadKey, DkimKey, load, signed
from services.notifications.sending.mime import Attachment, Envelope, build
from services.notifications.settings import Settings
from tests.support.judges.mails.mail_dkim import verdicts

DOMAIN = "acme.example"


def written(path: Path, key: Any) -> Path:
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> list[DkimKey]:
    folder = tmp_path_factory.mktemp("keys")
    one = written(folder / "rsa.pem", rsa.generate_private_key(public_exponent=65537, key_size=2048))
    other = written(folder / "ed.pem", ed25519.Ed25519PrivateKey.generate())
    return load(f"s1:{one}, s2:{other}", DOMAIN)


def records(keys: list[DkimKey]) -> dict[str, str]:
    return {f"{key.selector}._domainkey.{key.domain}": key.record for key in keys}


def mail(**more: Any) -> bytes:
    facts: dict[str, Any] = {
        "sender_name": "Acme, Ltd “Łódź”",
        "sender": f"no-reply@{DOMAIN}",
        "to_name": "Bo",
        "to": "bo@example.com",
        "reply_to": ["ana@acme.example", "second@acme.example"],
        "subject": "Ana bittet Sie, „Mietvertrag“ zu unterschreiben " * 4,
        "message_id": f"<1@{DOMAIN}>",
        "date": datetime(2026, 3, 4, tzinfo=UTC),
        "thread": f"<0@{DOMAIN}>",
    }
    text = "Grüß Gott\n.\n.. a dot begins this line\n\n" + "long " * 300 + "\n\n\n"
    files = [Attachment("Lease.pdf", "application/pdf", bytes(range(256)) * 50)]
    return build(Envelope(**{**facts, **more}), text, f"<p>{text}</p>", files)


@pytest.mark.parametrize("more", [{}, {"reply_to": [], "thread": None}, {"to": "bö@exämple.com"}])
def test_mail_dkim_says_that_the_signature_holds(keys: list[DkimKey], more: dict[str, Any]) -> None:
    sent = signed(mail(**more), keys[:1])
    (found,) = verdicts(sent, records(keys))
    assert found == {
        "selector": "s1",
        "domain": DOMAIN,
        "algorithm": "rsa-sha256",
        "result": "pass",
        "detail": "pass",
    }
    assert verdicts(mail(**more), records(keys)) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"Subject: ", b"Subject: Re: "),
        (b"Reply-To: ana", b"Reply-To: eve"),
        (b"From: ", b"From: eve@evil.example\r\nFrom: "),
        (b"From: ", b"Subject: another\r\nFrom: "),
        (b"References: <0", b"References: <9"),
        (b"a dot begins", b"a dog begins"),
    ],
)
def test_what_is_changed_on_the_way_breaks_it(keys: list[DkimKey], before: bytes, after: bytes) -> None:
    sent = signed(mail(), keys[:1])
    assert before in sent
    (found,) = verdicts(sent.replace(before, after, 1), records(keys))
    assert found["result"] != "pass"


def test_both_keys_sign_and_ed25519_is_what_rfc_8463_says(keys: list[DkimKey]) -> None:
    sent = signed(mail(), keys)
    assert sent.count(b"DKIM-Signature:") == 2
    assert next(one for one in verdicts(sent, records(keys)) if one["selector"] == "s1")["result"] == "pass"
    _check_ed25519(sent, keys[1].record)
    with pytest.raises(InvalidSignature):
        _check_ed25519(sent.replace(b"Subject: ", b"Subject: Re: ", 1), keys[1].record)


def _check_ed25519(message: bytes, record: str) -> None:
    """Relaxed canonicalization of headers (RFC 6376, 3.4.2), and Ed25519 over their SHA-256 (RFC 8463, 3)."""
    head, _, _ = message.partition(b"\r\n\r\n")
    fields = [
        (field.partition(b":")[0].strip().lower(), field.partition(b":")[2])
        for field in re.split(rb"\r\n(?![ \t])", head)
    ]
    own = next(value for name, value in fields if name == b"dkim-signature" and b"ed25519" in value)
    tags = dict(re.findall(r"(\w+)=([^;]*)", re.sub(r"\s+", "", own.decode())))

    def relaxed(name: bytes, value: bytes) -> bytes:
        return name + b":" + re.sub(rb"[ \t]+", b" ", value.replace(b"\r\n", b"")).strip()

    rest = list(reversed(fields))
    data = b""
    for name in tags["h"].lower().encode().split(b":"):
        found = next((field for field in rest if field[0] == name), None)
        if found is not None:
            rest.remove(found)
            data += relaxed(*found) + b"\r\n"
    data += relaxed(b"dkim-signature", re.sub(rb"(\bb=)[^;]*", rb"\1", own))
    public = Ed25519PublicKey.from_public_bytes(base64.b64decode(record.partition("p=")[2]))
    public.verify(base64.b64decode(tags["b"]), hashlib.sha256(data).digest())


def test_the_public_key_of_the_example_in_rfc_8463(tmp_path: Path) -> None:
    secret = base64.b64decode("nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=")  # appendix A.2
    path = written(tmp_path / "key.pem", ed25519.Ed25519PrivateKey.from_private_bytes(secret))
    (key,) = load(f"brisbane:{path}", "football.example.com")
    assert key.record == "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="


def test_keys_that_cannot_sign(tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("no key")
    weak = written(tmp_path / "weak.pem", ec.generate_private_key(ec.SECP256R1()))
    for path, words in ((tmp_path / "missing.pem", "cannot be read"), (tmp_path / "none.pem", "PEM"), (weak, "RSA")):
        with pytest.raises(BadKey, match=words):
            load(f"s1:{path}", DOMAIN)
    for setting in ("s1", "s1:", ":file", "a b:file", "-a:file"):
        with pytest.raises(ValueError, match="selector:file"):
            dkim_keys.parsed(setting)


def test_the_settings_name_keys_and_domain(tmp_path: Path) -> None:
    path = written(tmp_path / "key.pem", ed25519.Ed25519PrivateKey.generate())
    given: dict[str, Any] = {
        "amqp_url": "amqp://nowhere",
        "blob_url": "file:///nowhere",
        "base_url": "https://sign.example.com",
        "link_secret": "a link secret that is long enough for every check",
        "database_url": "sqlite:////nowhere",
        "smtp_url": "smtp://mail.example.com",
        "mail_from": "no-reply@bücher.example",
    }
    assert Settings(**given).dkim == []
    (own,) = Settings(**given, dkim_keys=f"s1:{path}").dkim
    assert own.domain == "xn--bcher-kva.example"
    (named,) = Settings(**given, dkim_keys=f"s1:{path}", dkim_domain="example.com").dkim
    assert named.domain == "example.com"
    with pytest.raises(ValidationError, match="selector:file"):
        Settings(**given, dkim_keys="nonsense")
