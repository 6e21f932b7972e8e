"""Several submissions in one body: ``submissions``, or ``emails`` with one submission for each address."""

import re
from typing import Any

from contracts.errors import ServiceError, invalid
from contracts.formats.email_address import is_email

MOST = 100
_NAMED = re.compile(r"[^<>]*<([^<>]+)>")


MODES = ("submitters", "submissions", "emails")
_OF_ALL = ("submissions", "emails", "email", "template_id")


def mode_of(body: dict[str, Any]) -> str:
    """Tell how the body of POST /submissions says who is to sign, one of ``MODES``. Raises ServiceError ``invalid`` when it
    says so in several ways: nobody could tell who was meant. An empty list says nothing."""
    present = [name for name in MODES if body.get(name) or (name == "emails" and body.get("email"))]
    if len(present) > 1:
        reason = f"must not be given together with {present[0]}"
        raise invalid(f"{present[1]} {reason}", present[1], reason)
    return present[0] if present else "emails"


def entries(body: dict[str, Any], template_id: int) -> tuple[list[dict[str, Any]], list[list[str]]]:
    """Each of ``submissions`` as a body of its own, what it leaves out as the whole has it; and the keys it has itself."""
    common = {key: value for key, value in body.items() if key not in _OF_ALL}
    for index, entry in enumerate(body["submissions"]):
        if str(entry.get("template_id") or template_id) != str(template_id):
            raise invalid(
                "All submissions of one request must be made from the same template.",
                f"submissions[{index}].template_id",
                "must be that of the whole request",
            )
    return [{**common, **entry} for entry in body["submissions"]], [list(entry) for entry in body["submissions"]]


def addresses(body: dict[str, Any]) -> list[str]:
    """The addresses of ``emails`` (or ``email``), each once whatever its case. Raises ServiceError ``invalid`` that names each
    that is none."""
    raw = body.get("emails") or body.get("email") or ""
    parts = raw if isinstance(raw, list) else re.split(r"[,;/\n]", raw)
    unique: dict[str, str] = {}
    faults: list[dict[str, str]] = []
    for index, part in enumerate(parts):
        match = _NAMED.fullmatch(part.strip())
        for address in [match[1].strip()] if match else part.split():
            if is_email(address):
                unique.setdefault(address.lower(), address)
            else:
                field = f"emails[{index}]" if isinstance(raw, list) else "emails"
                faults.append({"field": field, "reason": f"is not a valid e-mail address: {address[:100]}"})
    if faults:
        raise ServiceError("invalid", "emails are invalid", faults[:MOST])
    if not unique:
        raise invalid("emails or email is required", "emails", "is required")
    if len(unique) > MOST:
        raise invalid(
            f"emails must not have more than {MOST} addresses", "emails", f"must not have more than {MOST} addresses"
        )
    return list(unique.values())
