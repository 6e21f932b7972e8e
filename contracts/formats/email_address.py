"""E-mail addresses that people give: taken as they are or refused, never 'corrected'."""

import re

import email_validator
from email_validator import EmailNotValidError, validate_email

# Networks of their own use these names for real mail; that nobody else can reach them is not ours to judge.
for _own_network in ("local", "test"):
    if _own_network in email_validator.SPECIAL_USE_DOMAIN_NAMES:
        email_validator.SPECIAL_USE_DOMAIN_NAMES.remove(_own_network)

NOT_AN_EMAIL = "is not a valid e-mail address"
LONGEST = 5_000
"""Longer texts are not looked at: these patterns would try them for minutes, and everybody would wait."""

_SPECIAL = frozenset(name.rpartition(".")[2] for name in email_validator.SPECIAL_USE_DOMAIN_NAMES)
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9]|-(?!-)){0,40}(?<!-)"
_PLAIN = re.compile(rf"[A-Za-z0-9_+]+(?:[.-][A-Za-z0-9_+]+)*(?<!.{{65}})@(?:{_LABEL}\.)+([A-Za-z]{{2,40}})")
_TOP_LEVEL = re.compile(r".+\.[^\W\d_][^.]+")


def is_email(text: str) -> bool:
    """One address, such as ``ana@example.com``; blanks around it do not matter."""
    if len(text) > LONGEST:
        return False
    address = text.strip()
    if (plain := _PLAIN.fullmatch(address)) and plain[1].lower() not in _SPECIAL and len(address) <= 254:
        return True  # what nearly everybody has, in a fiftieth of the time
    try:
        validate_email(address, check_deliverability=False, globally_deliverable=False)
    except EmailNotValidError:
        return False
    return len(address) <= 254 and _TOP_LEVEL.fullmatch(address.rpartition("@")[2]) is not None
