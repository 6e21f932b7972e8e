"""Where somebody is named, by their address, in what a database keeps as JSON; which addresses are the same."""

import re
import string
from collections.abc import Iterator
from typing import Any

_A_TO_Z = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_BETWEEN = re.compile(r"[\s,;<>\"'()]+")
_LIKE = {"\\": "%", '"': "%", "%": "\\%", "_": "\\_"}
LIKE_ESCAPE = "\\"


def mailbox(address: str | None) -> str:
    """Return what tells mailboxes apart: of A to Z the case does not count. Nothing else is folded: ``straße.de`` and
    ``strasse.de`` are two domains, and who reads the mail of one has proved nothing of the other."""
    return (address or "").strip().translate(_A_TO_Z)


def names(text: str, address: str) -> bool:
    """Return whether one of the words of ``text`` is this address (``mailbox`` tells which are the same)."""
    searched_mailbox = mailbox(address)
    return any(mailbox(word) == searched_mailbox for word in _BETWEEN.split(text))


def places(value: Any, address: str, path: str = "") -> Iterator[str]:
    """Yield the path of each text in plain JSON that names the address, such as ``preferences.bcc_completed``; as a key,
    too."""
    if isinstance(value, str):
        if names(value, address):
            yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            inner = f"{path}.{key}" if path else str(key)
            yield from [inner] if names(str(key), address) else places(item, address, inner)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from places(item, address, f"{path}[{number}]")


def like_pattern(address: str) -> str:
    """Return a pattern of LIKE, without regard to case, that finds every text with the address, and some that name others: what
    case and escapes make of characters beyond ASCII is left open. ``LIKE_ESCAPE`` is its escape character."""
    return f"%{''.join(_LIKE.get(char, char) if char.isascii() else '%' for char in mailbox(address))}%"
