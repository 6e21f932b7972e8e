"""Which one-time codes a submitter must pass, as asked for on creation or changed later, and whether codes can reach them."""

from collections.abc import Iterable, Mapping
from typing import Any

from contracts.problems import Problems
from contracts.rpc.submissions.api import NewSubmitter, UpdateSubmitter
from contracts.types import Account, FieldDefinition, FieldType
from services.submissions.storage.signers.one_time_codes import EMAIL, REQUIRED_BY

NOT_CONFIGURED = "Phone verification not configured"


def code_requirements(submitter: NewSubmitter, preferences: Mapping[str, Any]) -> dict[str, bool]:
    """Return what is kept with the submitter. A preference of the submission or template holds for every signer: a submitter
    cannot be exempted from it, only asked for more."""
    requirements = {key: getattr(submitter, key) or preferences.get(key) for key in REQUIRED_BY.values()}
    return {key: True for key, is_required in requirements.items() if is_required}


def changed_requirements(command: UpdateSubmitter) -> dict[str, bool | None]:
    """Return what PUT /submitters changes; None takes a requirement away."""
    requirements = {key: getattr(command, key) for key in REQUIRED_BY.values() if key in command.model_fields_set}
    return {key: True if is_required else None for key, is_required in requirements.items() if is_required is not None}


def required_of_all(preferences: Mapping[str, Any]) -> dict[str, bool]:
    """Return what every signer of the submission must pass: no change of one submitter takes that back."""
    return {key: True for key in REQUIRED_BY.values() if preferences.get(key)}


def asking_for_codes(fields: Iterable[FieldDefinition], account: Account) -> list[FieldDefinition]:
    """The number in a phone field is confirmed with a code wherever one can be sent, unless the field says that it is not
    (peer facts 3.1, 6.5)."""
    if not account.phone_codes_available:
        return list(fields)
    return [
        field.model_copy(update={"preferences": {**field.preferences, "one_time_code": True}})
        if field.type is FieldType.PHONE and field.preferences.get("one_time_code") is None
        else field
        for field in fields
    ]


def check_available(
    submitters: Iterable[tuple[str, NewSubmitter]],
    preferences: Mapping[str, Any],
    fields: Iterable[FieldDefinition],
    basis: str,
    account: Account,
    problems: Problems,
) -> None:
    """A code to a phone can be sent only where the account has a phone OTP webhook. ``submitters``: with their
    paths; ``basis``: the key of the request that the fields come from."""
    if account.phone_codes_available:
        return
    asking = [f"{path}.require_phone_2fa" for path, submitter in submitters if submitter.require_phone_2fa]
    if preferences.get("require_phone_2fa"):
        asking.append("preferences.require_phone_2fa")
    for path_asking in asking:
        problems.add(path_asking, "needs a phone OTP webhook in the account's settings", NOT_CONFIGURED)
    for field in fields:
        if field.type is FieldType.PHONE and field.preferences.get("one_time_code"):
            reason = f"has the field {field.name or field.uuid} that asks for a code, but the account has no phone OTP webhook"
            problems.add(basis, reason, NOT_CONFIGURED)


def check_change_available(command: UpdateSubmitter, problems: Problems) -> None:
    """As ``check_available``, for PUT /submitters."""
    available = command.account is not None and command.account.phone_codes_available
    if command.require_phone_2fa and not available:
        problems.add("require_phone_2fa", "needs a phone OTP webhook in the account's settings", NOT_CONFIGURED)
    for index, override in enumerate(command.fields if not available else ()):
        if str((override.preferences or {}).get("one_time_code")).strip().lower() == "true":
            path = f"fields[{index}].preferences.one_time_code"
            problems.add(path, "needs a phone OTP webhook in the account's settings", NOT_CONFIGURED)


def check_code_addresses(
    requirements: Mapping[str, Any], email: str | None, phone: str | None, path: str, problems: Problems
) -> None:
    """A code needs an address that it can be sent to."""
    for method, key in REQUIRED_BY.items():
        name, address = ("email", email) if method == EMAIL else ("phone", phone)
        if requirements.get(key) and not address:
            field = f"{path}.{name}".lstrip(".")
            inside = f" in `{path}`" if path else ""
            problems.add(field, f"is required by {key}", f"{key} needs {name}{inside}.")
