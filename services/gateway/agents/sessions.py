"""Session ids that know whose they are, so that no process of the gateway has to remember any.

In protocol versions up to 2025-11-25 a client says once, in ``initialize``, what it is called; what follows has only the
``Mcp-Session-Id`` that it was given then ("a securely generated UUID, a JWT, or a cryptographic hash"). Ours is what it
said, with a time and an HMAC-SHA256 (RFC 2104) under LINK_SECRET: any process reads it, also after a restart.
"""

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from contracts.rotation import each
from contracts.types import Agent

LASTS = 30 * 86_400
"""Seconds for which a session is good: it opens nothing without its key."""
LONGEST = 1_000
_LONGEST_NAME, _LONGEST_VERSION = 64, 32
_PURPOSE = b"countersign mcp session\x00"
UNNAMED = "unnamed"


@dataclass(frozen=True)
class Sessions:
    """Gives out and reads session ids under ``secret``, by seconds of ``clock``."""

    secret: str
    clock: Callable[[], float] = time.time

    def issue(self, agent: Agent) -> str:
        """Return the id of a new session of this agent: visible ASCII, as the protocol demands."""
        content = [agent.name, agent.version, agent.key_id, int(self.clock())]
        payload = _text(json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode())
        return f"{payload}.{_text(_mac(self.secret, payload))}"

    def agent(self, session_id: str, key_id: str) -> Agent | None:
        """Return whose session it is; None where it is no session of ours, of another key, or over."""
        payload, _, signature = session_id.partition(".")
        if len(session_id) > LONGEST or not session_id.isascii():
            return None
        if not any(hmac.compare_digest(_text(_mac(secret, payload)), signature) for secret in each(self.secret)):
            return None
        try:
            name, version, owner, since = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        except (binascii.Error, ValueError, TypeError):
            return None
        if owner != key_id or self.clock() >= since + LASTS:
            return None
        return Agent(name=name, version=version, key_id=owner)


def agent_of(client_info: Any, key_id: str) -> Agent:
    """Return the agent that a client has introduced itself as (``clientInfo``). What it says is printed on paper: one short
    line, whatever it sends."""
    info = client_info if isinstance(client_info, dict) else {}
    name = _line(info.get("name"), _LONGEST_NAME) or UNNAMED
    return Agent(name=name, version=_line(info.get("version"), _LONGEST_VERSION), key_id=key_id)


def _line(text: Any, longest: int) -> str:
    printable = "".join(c if c.isprintable() else " " for c in text) if isinstance(text, str) else ""
    return " ".join(printable.split())[:longest].strip()


def _mac(secret: str, payload: str) -> bytes:
    return hmac.new(secret.encode(), _PURPOSE + payload.encode(), hashlib.sha256).digest()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
