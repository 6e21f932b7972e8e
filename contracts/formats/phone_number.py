"""Telephone numbers as E.164 writes them, such as ``+14155550123``."""

import re

_SEPARATORS = re.compile(r"[\s().\-/]")
E164 = r"\+[1-9][0-9]{4,14}"
_WHOLE = re.compile(E164, re.ASCII)


def in_e164(text: str) -> str | None:
    """The number without blanks, dashes and brackets; None when it does not begin with + and the code of a country. Whether
    there is such a country only those ask who send something to the number."""
    digits = _SEPARATORS.sub("", text)
    return digits if _WHOLE.fullmatch(digits) else None
