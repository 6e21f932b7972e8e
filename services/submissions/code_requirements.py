"""Which one-time codes a submitter must pass, as asked for on creation or changed later, and whether they can reach him."""

from collections.abc import Mapping
from typing import Any

from contracts.rpc.submissions import NewSubmitter, UpdateSubmitter
from services.submissions.one_time_codes import EMAIL, REQUIRED_BY
from services.submissions.problems import Problems


def code_requirements(given: NewSubmitter, preferences: Mapping[str, Any]) -> dict[str, bool]:
    """What is kept with the submitter. A preference of the submission or template holds for every signer: a submitter cannot
    be exempted from it, only asked for more."""
    asked = {key: getattr(given, key) or preferences.get(key) for key in REQUIRED_BY.values()}
    return {key: True for key, wanted in asked.items() if wanted}


def changed_requirements(command: UpdateSubmitter) -> dict[str, bool | None]:
    """What PUT /submitters changes; None takes a requirement away."""
    given = {key: getattr(command, key) for key in REQUIRED_BY.values() if key in command.model_fields_set}
    return {key: True if wanted else None for key, wanted in given.items() if wanted is not None}


def check_code_addresses(
    kept: Mapping[str, Any], email: str | None, phone: str | None, path: str, problems: Problems
) -> None:
    """A code needs an address that it can be sent to."""
    for method, key in REQUIRED_BY.items():
        name, address = ("email", email) if method == EMAIL else ("phone", phone)
        if kept.get(key) and not address:
            where = f"{path}.{name}".lstrip(".")
            inside = f" in `{path}`" if path else ""
            problems.add(where, f"is required by {key}", f"{key} needs {name}{inside}.")
