"""The preferences of specification 2.8: what the API user may set, and what comes of them under the account's ceiling."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from contracts.fields.preferences import KEEP_DAYS, MAIL_TOGGLES, wrong_keep_days
from contracts.problems import Problems
from contracts.types import Account, Order
from services.submissions.rules.parties import offers
from services.submissions.rules.parties.addresses import BadAddress, emails

CODES = ("require_email_2fa", "require_phone_2fa")
CERTSIGN = "certsign_sign_enabled"
COPIES = "allow_to_partial_download"
_FLAGS = (*MAIL_TOGGLES, *CODES, CERTSIGN, COPIES, *offers.PREFERENCES)


def checked(raw: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    """The known keys with their values in their types; others are dropped."""
    checked_values: dict[str, Any] = {}
    for key in (*_FLAGS, "shared_link_2fa"):
        if raw.get(key) is None:
            continue
        flag = _boolean(raw[key])
        if flag is None:
            problems.add(f"preferences.{key}", "must be true or false")
        else:
            checked_values[key] = flag
    if raw.get("submitters_order") is not None:
        if raw["submitters_order"] in tuple(Order):
            checked_values["submitters_order"] = str(raw["submitters_order"])
        else:
            problems.add("preferences.submitters_order", "must be one of preserved, random")
    if raw.get("bcc_completed"):
        try:
            checked_values["bcc_completed"] = ", ".join(emails(str(raw["bcc_completed"])))
        except BadAddress as bad:
            problems.add("preferences.bcc_completed", bad.reason, "bcc_completed email is invalid")
    if raw.get(KEEP_DAYS) is not None:
        if reason := wrong_keep_days(raw[KEEP_DAYS]):
            problems.add(f"preferences.{KEEP_DAYS}", reason)
        else:
            checked_values[KEEP_DAYS] = raw[KEEP_DAYS]
    return checked_values


def of_template(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a submission takes over from its template: the known keys that are well-formed."""
    checked_values = {key: raw[key] for key in _FLAGS if isinstance(raw.get(key), bool)}
    if raw.get("submitters_order") in tuple(Order):
        checked_values["submitters_order"] = raw["submitters_order"]
    if isinstance(raw.get("bcc_completed"), str):
        checked_values["bcc_completed"] = raw["bcc_completed"]
    if raw.get(KEEP_DAYS) is not None and wrong_keep_days(raw[KEEP_DAYS]) is None:
        checked_values[KEEP_DAYS] = raw[KEEP_DAYS]
    return checked_values


@dataclass(frozen=True)
class Mailing:
    """Who is told of the completion, and with what. Nobody gets two mails for two reasons."""

    notify_sender: bool
    bcc: list[str]
    cc: list[str]
    sender_attach_documents: bool
    sender_attach_audit: bool
    copy_signers: bool
    copy_attach_documents: bool
    copy_attach_audit: bool


def mailing(
    account: Account,
    preferences: Mapping[str, Any],
    *,
    send_email: bool,
    sender: str | None,
    copied: Iterable[str],
    bcc: str | None,
    cc: str | None = None,
) -> Mailing:
    """``copied``: addresses of the parties that want mail. ``bcc``: the submission's own, before the template's and the
    account's. ``cc``: those whom the submission names, who are told to the sender. With ``send_email`` false nobody but the
    parties and ``cc`` hears of it (peer facts 6.6)."""

    def allowed(key: str) -> bool:
        return bool(getattr(account, key)) and preferences.get(key) is not False

    copy_signers = allowed("documents_copy_email_enabled")
    reached = {address.lower() for address in copied} if copy_signers else set()
    notify = allowed("completed_notification_email_enabled") and send_email
    notify_sender = notify and bool(sender) and str(sender).lower() not in reached
    if notify_sender:
        reached.add(str(sender).lower())
    copied_addresses = [address for address in _valid_emails(cc or "") if address.lower() not in reached]
    reached.update(address.lower() for address in copied_addresses)
    chosen = bcc or preferences.get("bcc_completed") or account.bcc_emails
    return Mailing(
        notify_sender=notify_sender,
        bcc=[address for address in _valid_emails(chosen) if address.lower() not in reached] if send_email else [],
        cc=copied_addresses,
        sender_attach_documents=allowed("completed_notification_email_attach_documents"),
        sender_attach_audit=allowed("completed_notification_email_attach_audit"),
        copy_signers=copy_signers,
        copy_attach_documents=allowed("documents_copy_email_attach_documents"),
        copy_attach_audit=allowed("documents_copy_email_attach_audit"),
    )


def _valid_emails(addresses: str) -> list[str]:
    try:
        return emails(addresses)
    except BadAddress:
        return []


def _boolean(value: Any) -> bool | None:
    return {"true": True, "1": True, "false": False, "0": False}.get(str(value).strip().lower())
