"""Many addresses in one body (``POST /submissions/emails``)."""

import re
from typing import Any

from contracts.errors import invalid
from services.gateway.formats import is_email

MOST = 100
_NAMED = re.compile(r"[^<>]*<([^<>]+)>")


def addresses(body: dict[str, Any]) -> list[str]:
    """The addresses of ``emails`` (or ``email``), each once whatever its case. Raises ServiceError ``invalid``."""
    raw = body.get("emails") or body.get("email")
    if not raw:
        raise invalid("emails or email is required", "emails", "is required")
    parts = raw if isinstance(raw, list) else re.split(r"[,;/\n]", raw)
    found: dict[str, str] = {}
    for part in parts:
        named = _NAMED.fullmatch(part.strip())
        for one in [named[1].strip()] if named else part.split():
            if not is_email(one):
                raise invalid("emails are invalid", "emails", "is no list of e-mail addresses")
            found.setdefault(one.lower(), one)
    if not found:
        raise invalid("emails or email is required", "emails", "is required")
    if len(found) > MOST:
        raise invalid(f"emails must not be more than {MOST}", "emails", f"must not be more than {MOST}")
    return list(found.values())
