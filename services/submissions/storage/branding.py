"""Per-recipient branding (specification 4.9): a name, a logo and a stamp for one submitter's page, mails and stamp fields.

The pictures are fetched once, when the request comes, through the guarded fetcher, checked, encoded anew and kept: no signer's
browser and no mail programme ever asks the address itself. What a submitter has not is the account's, and what that has
not the service's. Nothing of it gets onto the audit trail.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from contracts.blobs import BlobRef
from contracts.problems import Problems
from contracts.rpc.rendering import FieldValue, FilledAttachment
from contracts.rpc.submissions.api import NewSubmission, NewSubmitter, UpdateSubmitter
from contracts.types import Account, FieldType
from services.submissions.models import SubmitterRow
from services.submissions.rules.overrides import Source
from services.submissions.rules.parties import addresses

PICTURES = {"logo_url": "logo", "stamp_url": "stamp"}


@dataclass
class Branding:
    """What a request says: ``preferences`` as they are kept (None clears one), ``sources`` of new pictures."""

    preferences: dict[str, Any] = field(default_factory=dict)
    sources: list[Source] = field(default_factory=list)


@dataclass(frozen=True)
class EffectiveBranding:
    """What one recipient sees."""

    name: str
    logo: dict[str, Any] | None
    stamp: dict[str, Any] | None


def plan_branding(
    submitter: NewSubmitter, request: NewSubmission, party_uuid: str, path: str, problems: Problems
) -> Branding:
    """Return the branding of a new submitter: their own, else that of the whole submission."""
    branding = Branding()
    for key in (*PICTURES, "company_name"):
        own_value, of_all = getattr(submitter, key), getattr(request, key)
        text, source = (own_value, f"{path}{key}") if own_value and own_value.strip() else (of_all, key)
        _take(branding, key, text, party_uuid, source, problems)
    branding.preferences = {key: value for key, value in branding.preferences.items() if value}
    return branding


def plan_branding_change(command: UpdateSubmitter, party_uuid: str, problems: Problems) -> Branding:
    """Return what a change of a submitter says: an empty text clears."""
    branding = Branding()
    for key in (*PICTURES, "company_name"):
        if key in command.model_fields_set:
            _take(branding, key, getattr(command, key), party_uuid, key, problems)
    return branding


def blobs_of(submitter: SubmitterRow) -> list[str]:
    """The keys of a submitter's own pictures."""
    return [file["key"] for file in submitter.branding.values()]


def shown(submitter: SubmitterRow, account: Account) -> EffectiveBranding:
    """Per submitter, then the account, then the service's own; the stamp falls back to the logo of the same place."""
    of_submitter, of_account = submitter.branding, {"logo": _json(account.logo), "stamp": _json(account.stamp)}
    logo = of_submitter.get("logo") or of_account["logo"]
    stamp = of_submitter.get("stamp") or of_submitter.get("logo") or of_account["stamp"] or of_account["logo"]
    return EffectiveBranding(
        submitter.preferences.get("company_name") or account.company_name or account.name, logo, stamp
    )


def stamped(
    filled: Sequence[FieldValue], submitters: Sequence[SubmitterRow], account: Account
) -> tuple[list[FieldValue], list[FilledAttachment]]:
    """Stamp fields that hold no picture get their party's, which go along as files."""
    files: dict[str, FilledAttachment] = {}
    stamps = {submitter.id: (submitter, shown(submitter, account).stamp) for submitter in submitters}
    values = []
    for entry in filled:
        owner, stamp = stamps.get(entry.submitter_id, (None, None))
        if entry.field.type is not FieldType.STAMP or entry.value or stamp is None or owner is None:
            values.append(entry)
            continue
        uuid = stamp_uuid(owner)
        files[uuid] = FilledAttachment(
            uuid=uuid,
            filename="stamp.png",
            file=BlobRef.model_validate(stamp),
            created_at=owner.created_at,
            branding=True,
        )
        values.append(entry.model_copy(update={"value": uuid}))
    return values, list(files.values())


def stamp_uuid(submitter: SubmitterRow) -> str:
    """Return what a party's stamp is called among the files of its submission."""
    return f"stamp-{submitter.id}"


def _take(branding: Branding, key: str, text: str | None, party_uuid: str, path: str, problems: Problems) -> None:
    if key not in PICTURES:
        try:
            branding.preferences[key] = addresses.name(text)
        except addresses.BadAddress as bad:
            problems.add(path, bad.reason)
        return
    try:
        url = addresses.web_url(text)
    except addresses.BadAddress as bad:
        problems.add(path, bad.reason)
        return
    branding.preferences[key] = url
    if url:
        branding.sources.append(Source(str(uuid4()), party_uuid, FieldType.STAMP, url, path, PICTURES[key]))


def _json(file: BlobRef | None) -> dict[str, Any] | None:
    return file.model_dump(mode="json") if file else None
