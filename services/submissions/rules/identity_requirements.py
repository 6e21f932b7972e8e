"""Whether the verification fields of a submission can be filled in at all, on this installation."""

from collections.abc import Iterable

from contracts.problems import Problems
from contracts.rpc.submissions.api import UpdateSubmitter
from contracts.types import Account, FieldDefinition, FieldType

QUALIFIED = "qes"
NOT_CONFIGURED = "Identity verification not configured"
READ_ONLY = "cannot be read-only: it holds nothing but what its signer has proved"


def check_identity_available(
    fields: Iterable[FieldDefinition], basis: str, account: Account, problems: Problems
) -> None:
    """``basis``: the key of the request that the fields come from. A field that asks for the method ``qes`` needs a provider
    that says when it has vouched so: else anybody's password would pass for it."""
    for field in fields:
        if field.type is not FieldType.VERIFICATION:
            continue
        description = f"has the field {field.name or field.uuid} of type verification"
        if not account.identity_checks_available:
            problems.add(basis, f"{description}: this installation has no identity provider", NOT_CONFIGURED)
        elif field.preferences.get("method") == QUALIFIED and not account.identity_checks_qes_available:
            problems.add(
                basis,
                f"{description} and method qes, for which the identity provider is not configured",
                NOT_CONFIGURED,
            )
        if field.readonly:
            problems.add(basis, f"{description}, which {READ_ONLY}")


def check_identity_change_available(command: UpdateSubmitter, problems: Problems) -> None:
    """As ``check_identity_available``, for PUT /submitters, which may ask for another method."""
    if command.account is not None and command.account.identity_checks_qes_available:
        return
    for index, override in enumerate(command.fields):
        if (override.preferences or {}).get("method") == QUALIFIED:
            reason = "is qes, for which the identity provider is not configured"
            problems.add(f"fields[{index}].preferences.method", reason, NOT_CONFIGURED)
