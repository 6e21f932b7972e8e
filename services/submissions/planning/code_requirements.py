"""Which one-time codes a submitter must pass, as asked for on creation or changed later, and whether codes can reach them."""

from collections.abc import Iterable, Mapping
from typing import Any

from contracts.problems import Problems
from contracts.rpc.submissions.api import NewSubmitter, UpdateSubmitter
from contracts.types import Account, FieldDefinition, FieldType
from services.submissions.storage.one_time_codes import EMAIL, REQUIRED_BY

NOT_CONFIGURED = "Phone verification not configured"


def code_requirements(given: NewSubmitter, preferences: Mapping[str, Any]) -> dict[str, bool]:
    """What is kept with the submitter. A preference of the submission or template holds for every signer: a submitter cannot
    be exempted from it, only asked for more."""
    asked = {key: getattr(given, key) or preferences.get(key) for key in REQUIRED_BY.values()}
    return {key: True for key, wanted in asked.items() if wanted}


def changed_requirements(command: UpdateSubmitter) -> dict[str, bool | None]:
    """What PUT /submitters changes; None takes a requirement away."""
    given = {key: getattr(command, key) for key in REQUIRED_BY.values() if key in command.model_fields_set}
    return {key: True if wanted else None for key, wanted in given.items() if wanted is not None}


def required_of_all(preferences: Mapping[str, Any]) -> dict[str, bool]:
    """What every signer of the submission must pass: no change of one submitter takes that back."""
    return {key: True for key in REQUIRED_BY.values() if preferences.get(key)}


def asking_for_codes(fields: Iterable[FieldDefinition], account: Account) -> list[FieldDefinition]:
    """The number in a phone field is confirmed with a code wherever one can be sent, unless the field says that it is not
    (peer facts 3.1, 6.5)."""
    if not account.phone_codes_available:
        return list(fields)
    return [
        one.model_copy(update={"preferences": {**one.preferences, "one_time_code": True}})
        if one.type is FieldType.PHONE and one.preferences.get("one_time_code") is None
        else one
        for one in fields
    ]


def check_available(
    given: Iterable[tuple[str, NewSubmitter]],
    preferences: Mapping[str, Any],
    fields: Iterable[FieldDefinition],
    basis: str,
    account: Account,
    problems: Problems,
) -> None:
    """A code to a phone can be sent only where the account has a phone OTP webhook. ``given``: submitters with their paths;
    ``basis``: the key of the request that the fields come from."""
    if account.phone_codes_available:
        return
    asking = [f"{path}.require_phone_2fa" for path, one in given if one.require_phone_2fa]
    if preferences.get("require_phone_2fa"):
        asking.append("preferences.require_phone_2fa")
    for where in asking:
        problems.add(where, "needs a phone OTP webhook in the account's settings", NOT_CONFIGURED)
    for field in fields:
        if field.type is FieldType.PHONE and field.preferences.get("one_time_code"):
            reason = f"has the field {field.name or field.uuid} that asks for a code: there is no phone OTP webhook"
            problems.add(basis, reason, NOT_CONFIGURED)


def check_change_available(command: UpdateSubmitter, problems: Problems) -> None:
    """As ``check_available``, for PUT /submitters."""
    available = command.account is not None and command.account.phone_codes_available
    if command.require_phone_2fa and not available:
        problems.add("require_phone_2fa", "needs a phone OTP webhook in the account's settings", NOT_CONFIGURED)
    for index, override in enumerate(command.fields if not available else ()):
        if str((override.preferences or {}).get("one_time_code")).strip().lower() == "true":
            where = f"fields[{index}].preferences.one_time_code"
            problems.add(where, "needs a phone OTP webhook in the account's settings", NOT_CONFIGURED)


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
