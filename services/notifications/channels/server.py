"""A mail server, as SMTP_URL names it."""

from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qs, unquote, urlsplit

Encryption = Literal["implicit", "required", "offered", "never"]

_PORTS = {"smtp": 587, "smtps": 465}


@dataclass(frozen=True)
class Server:
    """``encryption``: TLS from the first byte, STARTTLS or nothing, STARTTLS when offered, never."""

    host: str
    port: int
    encryption: Encryption = "offered"
    user: str | None = None
    password: str | None = None
    verify: bool = True

    @classmethod
    def from_url(cls, url: str) -> "Server":
        """``smtp://user:password@host:587?starttls=required``, ``smtps://...``. ValueError says what is wrong with it."""
        parts = urlsplit(url.strip())
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError("must be smtp://host:port or smtps://host:port")
        options = {key: values[-1] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
        if unknown := set(options) - {"starttls", "verify"}:
            raise ValueError(f"knows starttls and verify, not {', '.join(sorted(unknown))}")
        return cls(
            host=parts.hostname,
            port=parts.port or _PORTS[parts.scheme],
            encryption=_encryption(parts.scheme, options.get("starttls")),
            user=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
            verify=_verify(options.get("verify")),
        )


def _encryption(scheme: str, starttls: str | None) -> Encryption:
    if scheme == "smtps":
        return "implicit"
    if starttls is None:
        return "offered"
    if starttls == "never":
        return "never"
    if starttls == "required":
        return "required"
    raise ValueError("starttls must be never or required")


def _verify(verify: str | None) -> bool:
    if verify not in (None, "never"):
        raise ValueError("verify must be never, or left out")
    return verify is None
