"""E-mail addresses, as far as a mail's headers and the SMTP dialogue need to trust them (RFC 5321, RFC 5322).

Whether an address exists the server says. Here it is only made sure that it can do no harm: no line break, no blank, no
angle bracket ever reaches a header or a command.
"""

import contextlib
import re
from collections.abc import Iterable

import idna

_UNSAFE = r"\s@<>()\[\],;:\\\"\x00-\x20\x7f-\x9f\u2028\u2029\ud800-\udfff"
_ADDRESS = re.compile(rf"[^{_UNSAFE}]{{1,64}}@[^{_UNSAFE}]{{1,255}}")
_NOBODY_READS = re.compile(r"(no[._-]?reply|do[._-]?not[._-]?reply)([+._-].*)?@", re.IGNORECASE)
_LINE_NOISE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")


def split(text: str | None) -> list[str]:
    """The addresses of a list with commas or semicolons; anything that is no address is left out."""
    return [part.strip() for part in re.split(r"[,;]", text or "") if valid(part.strip())]


def valid(address: str) -> bool:
    """Safe for a header and for ``RCPT TO``: exactly one @, nothing that ends a line or an address."""
    return _ADDRESS.fullmatch(address) is not None and ".." not in address.partition("@")[2]


def same(address: str) -> str:
    """The form by which addresses are told apart: the case makes no difference to a person."""
    return address.strip().casefold()


def replies_to(candidates: Iterable[str | None], but: str) -> list[str]:
    """Return the first of the candidates that somebody reads; not ``but``, who would be writing to themselves."""
    for candidate in candidates:
        readers = [
            reader for reader in split(candidate) if not _NOBODY_READS.match(reader) and same(reader) != same(but)
        ]
        if readers:
            return readers
    return []


def one_line(text: str | None, longest: int = 255) -> str:
    """A text that may stand in a header: no control character, no line break, not endless."""
    line = " ".join(_LINE_NOISE.sub(" ", text or "").split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def for_wire(address: str) -> str:
    """With the domain in its ASCII form (RFC 5891), which every server takes."""
    local, _, domain = address.rpartition("@")
    return address if domain.isascii() else f"{local}@{_in_ascii(domain)}"


def _in_ascii(domain: str) -> str:
    """Python's own codec is of the standard before: it takes ``straße.de`` for ``strasse.de``, where somebody else reads the
    mail. Only it knows hearts and snowmen, which were allowed then."""
    with contextlib.suppress(UnicodeError):
        return idna.encode(domain, uts46=True).decode()
    with contextlib.suppress(UnicodeError):
        return domain.encode("idna").decode()
    return domain
