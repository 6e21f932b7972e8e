"""What a request for a submission means (specification 4.3.1, 4.3.3), worked out before anything is done.

``planned`` checks everything that can be checked without asking anybody and raises one refusal that names all faults.
The plan says what has to be prepared outside (``sources``, ``texts``); then one transaction writes it all.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from contracts.errors import ServiceError
from contracts.fields import checker
from contracts.problems import Problems
from contracts.rpc.submissions.api import Message, NewSubmission, NewSubmitter
from contracts.rpc.templates import Composition, TemplateSnapshot
from contracts.types import FieldDefinition, FieldType, Order, Party, Role
from services.submissions.evidence import consent
from services.submissions.outgoing import sms
from services.submissions.planning import invites
from services.submissions.planning.code_requirements import (
    asking_for_codes,
    check_available,
    check_code_addresses,
    code_requirements,
)
from services.submissions.rules import addresses, merging, preferences, roles, variables
from services.submissions.rules.identity_requirements import check_identity_available
from services.submissions.rules.naming import keeping_names, labels
from services.submissions.rules.overrides import Given, Overrides, Source, template_defaults
from services.submissions.rules.overrides import planned as planned_overrides
from services.submissions.storage import branding
from services.submissions.storage.branding import Branding

LINK = "link"
LONGEST_SUBJECT = 500
LONGEST_BODY = 20_000
LONGEST_KEY = 255
LARGEST_ORDER = 10_000

Basis = TemplateSnapshot | Composition
"""What a submission is made from: a template, or the documents of a one-off submission."""


class Limits(Protocol):
    """How much one submission may hold; the service's settings."""

    @property
    def max_submitters(self) -> int: ...
    @property
    def max_fields(self) -> int: ...
    @property
    def max_values_bytes(self) -> int: ...
    @property
    def max_attachments(self) -> int: ...


@dataclass(frozen=True)
class PlannedSubmitter:
    """One party as it will be stored. ``group`` is its place in the order; ``invited_by`` the uuid of the role that names it
    later (``invites``)."""

    party: Party
    group: int
    viewer: bool
    completed: bool
    email: str | None
    name: str | None
    phone: str | None
    external_id: str | None
    values: dict[str, Any]
    metadata: dict[str, Any]
    preferences: dict[str, Any]
    message: dict[str, Any] | None
    branding: Branding
    invited_by: str | None = None


@dataclass(frozen=True)
class Plan:
    """A submission as it will be stored. ``given_preferences`` are those of the request alone. ``details``: ``send_email``,
    ``message``, ``reply_to``, ``bcc_completed``, ``completed_redirect_url``, as the submission itself has them."""

    name: str | None
    order: Order
    expire_at: datetime | None
    preferences: dict[str, Any]
    given_preferences: dict[str, Any]
    details: dict[str, Any]
    fields: list[FieldDefinition]
    submitters: list[PlannedSubmitter]
    sources: list[Source]
    texts: list[tuple[str, str]]
    variables: dict[str, Any]
    paths: dict[str, str]
    """Where in the request which field got its value, by uuid."""


def planned(request: NewSubmission, template: Basis, limits: Limits, now: datetime) -> Plan:
    """The submission that ``request`` asks for. Raises ServiceError naming each field that is wrong."""
    if request.actor.role is Role.VIEWER:
        raise ServiceError("forbidden", "Not authorized")
    _check_basis(template, limits)
    problems = Problems()
    _check_count(request.submitters, limits, problems)
    problems.refuse()
    template, given_submitters = merging.merged(template, request.submitters, problems)
    problems.refuse()
    request = request.model_copy(update={"submitters": given_submitters})
    parties = roles.matched(template.parties, request.submitters, problems)
    problems.refuse()
    inviters = invites.inviters(request.submitters, parties, problems)
    names = labels(template.fields)
    of_template = preferences.of_template(template.preferences) if isinstance(template, TemplateSnapshot) else {}
    wished = preferences.checked(request.preferences, problems)
    chosen = {**of_template, **wished}
    found = [
        _overrides(given, party, template.fields, names, f"submitters[{index}].", problems)
        for index, (given, party) in enumerate(zip(request.submitters, parties, strict=True))
    ]
    made = [
        _submitter(index, given, party, overrides, template, request, chosen, problems)
        for index, (given, party, overrides) in enumerate(zip(request.submitters, parties, found, strict=True))
    ]
    reached = [
        bool(one.phone) or invites.needs_phone(one, inviter) for one, inviter in zip(made, inviters, strict=True)
    ]
    by_sms = sms.wishes(request, reached, problems)
    submitters = [
        replace(one, preferences={**one.preferences, "send_sms": wanted}, invited_by=inviter)
        for one, wanted, inviter in zip(made, by_sms, inviters, strict=True)
    ]
    _check_invitees(submitters, found, problems)
    agreements = [consent.text_to_draw(one.preferences, index) for index, one in enumerate(submitters)]
    plan = Plan(
        name=checked_name(request.name, "name", problems),
        order=request.order or Order(chosen.get("submitters_order", Order.PRESERVED)),
        expire_at=checked_expiry(request.expire_at, now, problems),
        preferences=chosen,
        given_preferences=wished,
        details=_details(request, problems),
        fields=asking_for_codes(keeping_names(_fields(template, parties, found, problems), names), request.account),
        submitters=submitters,
        sources=[source for overrides in found for source in overrides.sources]
        + [source for one in submitters for source in one.branding.sources],
        texts=[text for overrides in found for text in overrides.texts] + [one for one in agreements if one],
        variables=variables.merged(request, limits.max_values_bytes),
        paths={uuid: path for overrides in found for uuid, path in overrides.paths.items()},
    )
    _check_whole(plan, limits, problems)
    numbered = [(f"submitters[{index}]", one) for index, one in enumerate(request.submitters)]
    check_available(numbered, chosen, plan.fields, field_of(template), request.account, problems)
    check_identity_available(plan.fields, field_of(template), request.account, problems)
    problems.refuse()
    return plan


def _check_basis(basis: Basis, limits: Limits) -> None:
    named = field_of(basis)
    if isinstance(basis, TemplateSnapshot) and basis.archived:
        raise ServiceError("invalid", "Template has been archived", [{"field": named, "reason": "is archived"}])
    if not basis.fields or not basis.parties:
        what = "Template does not" if isinstance(basis, TemplateSnapshot) else "The documents do not"
        how = "has no fields: put tags into the document, or give `fields` with it"
        raise ServiceError("invalid", f"{what} contain fields", [{"field": named, "reason": how}])
    if len(basis.fields) > limits.max_fields:
        reason = [{"field": named, "reason": f"has more than {limits.max_fields} fields"}]
        raise ServiceError("invalid", f"A submission can have at most {limits.max_fields} fields", reason)


def field_of(basis: Basis) -> str:
    """The key of the request that a fault of the basis is told of."""
    return "template_id" if isinstance(basis, TemplateSnapshot) else "documents"


def _check_count(submitters: Sequence[NewSubmitter], limits: Limits, problems: Problems) -> None:
    if not submitters:
        problems.add("submitters", "is required", "submitters is required")
    if len(submitters) > limits.max_submitters:
        problems.add("submitters", f"must not be more than {limits.max_submitters}")


def _overrides(
    given: NewSubmitter,
    party: Party,
    fields: Sequence[FieldDefinition],
    names: dict[str, str],
    path: str,
    problems: Problems,
) -> Overrides:
    own = [field for field in fields if field.submitter_uuid == party.uuid]
    found = planned_overrides(Given(given.values, given.fields, given.readonly_fields, path), own, names, (), problems)
    for field in own:
        template_defaults(field, found)
    if given.name:  # It stands on the audit trail, if nowhere else.
        found.texts.append((f"{path}name", given.name))
    return found


def _submitter(
    index: int,
    given: NewSubmitter,
    party: Party,
    overrides: Overrides,
    template: Basis,
    request: NewSubmission,
    chosen: Mapping[str, Any],
    problems: Problems,
) -> PlannedSubmitter:
    path = f"submitters[{index}]"
    email, name, phone = checked_contact(given.email, given.name, given.phone, path, problems)
    reached = (given.email or "").strip() or (given.phone or "").strip() or (given.invite_by or "").strip()
    if not reached and request.source != LINK:  # the visitor of a link is there already
        problems.add(f"{path}.email", "is required unless phone is given", f"email or phone is required in `{path}`.")
    viewer = not any(field.submitter_uuid == party.uuid for field in template.fields)
    if viewer and given.completed:
        problems.add(f"{path}.completed", f"cannot be true: {party.name} has no fields")
    kept: dict[str, Any] = {
        "send_email": request.send_email if given.send_email is None else given.send_email,
        **checked_wishes(given.reply_to, given.completed_redirect_url, f"{path}.", problems),
    }
    if given.go_to_last is not None:
        kept["go_to_last"] = given.go_to_last
    kept |= consent.checked(given, request, f"{path}.", problems)
    brand = branding.planned(given, request, party.uuid, f"{path}.", problems)
    kept |= brand.preferences
    kept |= code_requirements(given, chosen)
    check_code_addresses(kept, email or given.invite_by, phone or given.invite_by, path, problems)
    return PlannedSubmitter(
        party=party,
        group=_group(index, given.order, path, problems),
        viewer=viewer,
        completed=given.completed,
        email=email,
        name=name,
        phone=phone,
        external_id=checked_key(given.external_id, f"{path}.external_id", problems),
        values=overrides.values,
        metadata=given.metadata,
        preferences=kept,
        message=checked_message(given.message, f"{path}.message", problems),
        branding=brand,
    )


def _check_invitees(submitters: Sequence[PlannedSubmitter], found: Sequence[Overrides], problems: Problems) -> None:
    """Whoever invites must complete some day; files belong to a submitter, who is not there yet."""
    viewers = {one.party.uuid for one in submitters if one.viewer}
    for index, (one, overrides) in enumerate(zip(submitters, found, strict=True)):
        if one.invited_by in viewers:
            problems.add(f"submitters[{index}].invite_by", "must be a role with fields")
        if one.invited_by and overrides.sources:
            problems.add(overrides.sources[0].path, "cannot be given for a party that is invited later")


def _group(index: int, order: int | None, path: str, problems: Problems) -> int:
    if order is not None and not 0 <= order <= LARGEST_ORDER:
        problems.add(f"{path}.order", f"must be from 0 to {LARGEST_ORDER}")
    return index if order is None else order


def _details(request: NewSubmission, problems: Problems) -> dict[str, Any]:
    details: dict[str, Any] = {
        "send_email": request.send_email,
        "message": checked_message(request.message, "message", problems),
        **checked_wishes(request.reply_to, request.completed_redirect_url, "", problems),
    }
    if request.bcc_completed and request.bcc_completed.strip():
        try:
            details["bcc_completed"] = ", ".join(addresses.emails(request.bcc_completed))
        except addresses.BadAddress as bad:
            problems.add("bcc_completed", bad.reason, "bcc_completed email is invalid")
    return {key: value for key, value in details.items() if value is not None}


def _fields(
    template: Basis, parties: Sequence[Party], found: Sequence[Overrides], problems: Problems
) -> list[FieldDefinition]:
    """The fields of the parties that take part, with what the request changes in them."""
    by_party = dict(zip((party.uuid for party in parties), found, strict=True))
    fields = []
    for field in template.fields:
        if (overrides := by_party.get(field.submitter_uuid)) is None:
            continue
        changed = overrides.apply(field)
        if field.type is FieldType.PAYMENT and changed.preferences.get("price") is None:
            problems.add(field_of(template), f"has the payment field {field.name or field.uuid} without a price")
        if reason := checker.unsatisfiable(changed):
            problems.add(field_of(template), f"has the field {field.name or field.uuid} whose {reason}")
        fields.append(changed)
    return fields


def _check_whole(plan: Plan, limits: Limits, problems: Problems) -> None:
    if all(submitter.viewer for submitter in plan.submitters):
        problems.add("submitters", "must have at least one role with fields", "No submitter has anything to fill in")
    check_size([{**s.values, "metadata": s.metadata} for s in plan.submitters], limits, problems)
    if len(plan.sources) > limits.max_attachments:
        problems.add("submitters", f"must not have more than {limits.max_attachments} files and pictures")


def check_size(values: Any, limits: Limits, problems: Problems) -> None:
    """All values and metadata of a submission together. Also refuses what is no JSON (NaN)."""
    size = len(json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    if size > limits.max_values_bytes:
        problems.add("submitters", f"must not have more than {limits.max_values_bytes} bytes of values and metadata")


def checked_contact(
    email: str | None, name: str | None, phone: str | None, path: str, problems: Problems
) -> tuple[str | None, str | None, str | None]:
    """E-mail address, name and telephone number of a submitter, cleaned; blank is None."""
    found: list[str | None] = [None, None, None]
    if email and email.strip():
        try:
            found[0] = addresses.email(email)
        except addresses.BadAddress as bad:
            problems.add(f"{path}.email".lstrip("."), bad.reason, f"email is invalid{_inside(path)}")
    try:
        found[1] = addresses.name(name)
    except addresses.BadAddress as bad:
        problems.add(f"{path}.name".lstrip("."), bad.reason)
    if phone and phone.strip():
        try:
            found[2] = addresses.phone(phone)
        except addresses.BadAddress as bad:
            message = f"phone should start with +<country code> and contain only digits{_inside(path)}"
            problems.add(f"{path}.phone".lstrip("."), bad.reason, message)
    return found[0], found[1], found[2]


def checked_wishes(reply_to: str | None, redirect_url: str | None, path: str, problems: Problems) -> dict[str, Any]:
    """``reply_to`` and ``completed_redirect_url``, those that were given."""
    found: dict[str, Any] = {}
    try:
        if reply_to and reply_to.strip():
            found["reply_to"] = ", ".join(addresses.emails(reply_to))
    except addresses.BadAddress as bad:
        problems.add(f"{path}reply_to", bad.reason, "reply_to email is invalid")
    try:
        if url := addresses.web_url(redirect_url):
            found["completed_redirect_url"] = url
    except addresses.BadAddress as bad:
        problems.add(f"{path}completed_redirect_url", bad.reason)
    return found


def checked_message(message: Message | None, path: str, problems: Problems) -> dict[str, Any] | None:
    """The text of a mail; an empty object is as none."""
    if message is None or not (message.subject or message.body):
        return None
    if not (message.body or "").strip():
        problems.add(f"{path}.body", "is required", f"body is required in `{path}`.")
    if len(message.body or "") > LONGEST_BODY:
        problems.add(f"{path}.body", f"must not be longer than {LONGEST_BODY} characters")
    subject = (message.subject or "").strip()
    if len(subject) > LONGEST_SUBJECT or any(ord(character) < 32 for character in subject):
        problems.add(f"{path}.subject", f"must be one line of at most {LONGEST_SUBJECT} characters")
    return {"subject": subject or None, "body": message.body}


def checked_expiry(expire_at: datetime | None, now: datetime, problems: Problems) -> datetime | None:
    """A moment in the future; without a zone it is UTC."""
    if expire_at is None:
        return None
    moment = expire_at.replace(tzinfo=UTC) if expire_at.tzinfo is None else expire_at.astimezone(UTC)
    if moment <= now:
        problems.add("expire_at", "must be in the future")
    return moment


def checked_name(name: str | None, path: str, problems: Problems) -> str | None:
    try:
        return addresses.name(name)
    except addresses.BadAddress as bad:
        problems.add(path, bad.reason)
        return None


def checked_key(key: str | None, path: str, problems: Problems) -> str | None:
    """The caller's own key, as it was written."""
    if key is not None and len(key) > LONGEST_KEY:
        problems.add(path, f"must not be longer than {LONGEST_KEY} characters")
    return key or None


def _inside(path: str) -> str:
    return f" in `{path}`." if path else ""
