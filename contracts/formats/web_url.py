"""URLs that people give, to be fetched, called or opened in a browser."""

import re
from urllib.parse import urlsplit

LONGEST_URL = 2_048
NOT_A_URL = "is not a valid http or https URL"
_UNSAFE = re.compile(r"[\s\x00-\x1f\x7f<>\"\\]")


def is_web_url(text: str) -> bool:
    """An http or https URL with a host, never ``javascript:`` or ``data:``, without what would end an attribute of HTML."""
    if len(text) > LONGEST_URL or _UNSAFE.search(text):
        return False
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - raises for a port that is no number
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)
