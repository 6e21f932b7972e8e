"""What a request for a submission means (specification 4.3.1, 4.3.3), worked out before anything is done.

``planned`` checks everything that can be checked without asking anybody; ``plan_submission`` raises one refusal that names all
faults.
The plan says what has to be prepared outside (``sources``, ``texts``); then one transaction writes it all.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Protocol

from contracts.errors import ServiceError
from contracts.fields import checker
from contracts.fields.formulas import references
from contracts.fields.labels import labels
from contracts.languages.choosing import PSEUDO, known_locale
from contracts.problems import Problems
from contracts.providers import CertsignMode, CertsignOrder
from contracts.rpc.submissions.api import CertsignWish, Message, NewSubmission, NewSubmitter
from contracts.rpc.templates import TemplateSnapshot
from contracts.types import ActsAs, FieldDefinition, FieldType, Order, Party, Role
from services.submissions.evidence import consent
from services.submissions.outgoing import sms
from services.submissions.planning import invites
from services.submissions.planning.code_requirements import (
    asking_for_codes,
    check_available,
    check_code_addresses,
    code_requirements,
)
from services.submissions.planning.plan import Basis, Plan, PlannedSubmitter
from services.submissions.rules import confirming, preferences, test_mode
from services.submissions.rules.identity_requirements import check_identity_available
from services.submissions.rules.overrides import (
    OverrideRequest,
    Overrides,
    note_faults,
    template_defaults,
    with_expressions,
)
from services.submissions.rules.overrides import plan_overrides as planned_overrides
from services.submissions.rules.parties import addresses, merging, roles
from services.submissions.rules.values import variables
from services.submissions.rules.values.naming import keeping_names
from services.submissions.storage import branding

LINK = "link"
LONGEST_SUBJECT = 500
LONGEST_BODY = 20_000
LONGEST_KEY = 255
LARGEST_ORDER = 10_000


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


def plan_submission(request: NewSubmission, template: Basis, limits: Limits, now: datetime) -> Plan:
    """The submission that ``request`` asks for. Raises ServiceError naming each field that is wrong."""
    plan, problems = plan_with_problems(request, template, limits, now)
    problems.refuse()
    return plan


def plan_with_problems(request: NewSubmission, template: Basis, limits: Limits, now: datetime) -> tuple[Plan, Problems]:
    """Return the submission that ``request`` asks for, and all that is wrong with it; the plan is for looking at only, then.
    Raises ServiceError when the request is too large to be looked at, or its caller may not ask."""
    if request.actor.role is Role.VIEWER:
        raise ServiceError("forbidden", "Not authorized")
    problems = Problems()
    request = test_mode.adapted(request, problems)
    _check_basis(template, limits, problems)
    test_mode.check_documents(request, template.documents, field_of(template), problems)
    problems.settle()
    _check_count(request.submitters, limits, problems)
    problems.settle()
    template, request, parties = _matched(template, request, problems)
    problems.settle()
    strangers = {party.uuid for party in parties} - {party.uuid for party in template.parties}
    inviters = [None] * len(parties) if strangers else invites.inviters(request.submitters, parties, problems)
    names = labels(template.fields)
    of_template = preferences.of_template(template.preferences) if isinstance(template, TemplateSnapshot) else {}
    given_preferences = preferences.checked(request.preferences, problems)
    chosen = {**of_template, **given_preferences}
    overrides_of_all = [
        _overrides(submitter, party, template.fields, names, f"submitters[{index}].", problems)
        for index, (submitter, party) in enumerate(zip(request.submitters, parties, strict=True))
    ]
    drafts = [
        _submitter(index, submitter, party, overrides, template, request, chosen, problems)
        for index, (submitter, party, overrides) in enumerate(
            zip(request.submitters, parties, overrides_of_all, strict=True)
        )
    ]
    reached = [
        bool(draft.phone) or invites.needs_phone(draft, inviter)
        for draft, inviter in zip(drafts, inviters, strict=True)
    ]
    by_sms = sms.wishes(request, reached, problems)
    submitters = [
        replace(draft, preferences={**draft.preferences, "send_sms": is_wanted}, invited_by=inviter)
        for draft, is_wanted, inviter in zip(drafts, by_sms, inviters, strict=True)
    ]
    _check_invitees(submitters, overrides_of_all, strangers, problems)
    agreements = [consent.text_to_draw(submitter.preferences, index) for index, submitter in enumerate(submitters)]
    plan = Plan(
        name=checked_name(request.name, "name", problems),
        order=request.order or Order(chosen.get("submitters_order", Order.PRESERVED)),
        expire_at=checked_expiry(request.expire_at, now, problems),
        preferences=chosen,
        given_preferences=given_preferences,
        details=_details(request, problems),
        fields=asking_for_codes(
            keeping_names(_fields(template, parties, overrides_of_all, problems), names), request.account
        ),
        submitters=submitters,
        sources=[source for overrides in overrides_of_all for source in overrides.sources]
        + [source for submitter in submitters for source in submitter.branding.sources],
        texts=[text for overrides in overrides_of_all for text in overrides.texts]
        + [draft for draft in agreements if draft],
        variables=_variables(request, limits, problems),
        paths={uuid: path for overrides in overrides_of_all for uuid, path in overrides.paths.items()},
        certsign=None
        if request.actor.test
        else _certsign(request.certsign, chosen, given_preferences, field_of(template), problems),
    )
    if request.submitters and not strangers:
        _check_somebody_acts(plan, problems)
    _check_whole(plan, limits, problems)
    _check_order(plan, problems)
    _check_formulas(plan, overrides_of_all, field_of(template), strangers, problems)
    numbered = [(f"submitters[{index}]", submitter) for index, submitter in enumerate(request.submitters)]
    check_available(numbered, chosen, plan.fields, field_of(template), request.account, problems)
    check_identity_available(plan.fields, field_of(template), request.account, problems)
    return plan, problems


def _matched(template: Basis, request: NewSubmission, problems: Problems) -> tuple[Basis, NewSubmission, list[Party]]:
    """Return the template and the request with the parties as the request has them, and the party of each submitter. Where
    parties cannot be told, nothing is judged that depends on them: strangers take their places."""
    if not template.parties or not template.fields:
        return template, *_strangers(request)
    before = len(problems.entries)
    template, submitters = merging.merged(template, request.submitters, problems)
    if len(problems.entries) > before:
        return template, *_strangers(request)
    all_parties, submitters = roles.with_observers(template.parties, submitters)
    template = template.model_copy(update={"parties": all_parties})
    parties = roles.matched(all_parties, submitters, problems)
    uuids_of_parties = {party.uuid for party in all_parties}
    submitters = [
        submitter if party.uuid in uuids_of_parties else roles.without_fields(submitter)
        for submitter, party in zip(submitters, parties, strict=True)
    ]
    return template, request.model_copy(update={"submitters": submitters}), parties


def _strangers(request: NewSubmission) -> tuple[NewSubmission, list[Party]]:
    submitters = [roles.without_fields(submitter) for submitter in request.submitters]
    return request.model_copy(update={"submitters": submitters}), [
        roles.stranger(submitter) for submitter in submitters
    ]


def _variables(request: NewSubmission, limits: Limits, problems: Problems) -> dict[str, Any]:
    try:
        return variables.merged(request, limits.max_values_bytes)
    except ServiceError as refused:
        for detail in refused.details:
            problems.add(detail["field"], detail["reason"])
        return {}


def _certsign(
    wish: CertsignWish,
    chosen: Mapping[str, Any],
    given_preferences: Mapping[str, Any],
    basis: str,
    problems: Problems,
) -> CertsignOrder | None:
    """Return what a provider is asked for: the submission's own word counts before the preference, that before the
    account's."""
    by_preference = chosen.get(preferences.CERTSIGN)
    by_account = wish.by_default if by_preference is None else by_preference
    if not (by_account if wish.enabled is None else wish.enabled):
        return None
    if wish.order is None:
        if wish.enabled:
            problems.add("certsign.enabled", "is not configured")
        elif preferences.CERTSIGN in given_preferences:
            problems.add(f"preferences.{preferences.CERTSIGN}", "is not configured")
        else:
            problems.add(basis, f"has the preference {preferences.CERTSIGN}, and certsign is not configured")
    return wish.order


def _check_basis(basis: Basis, limits: Limits, problems: Problems) -> None:
    field_name = field_of(basis)
    if isinstance(basis, TemplateSnapshot) and basis.archived:
        problems.add(field_name, "is archived", "Template has been archived")
    elif not basis.fields or not basis.parties:
        subject = "Template does not" if isinstance(basis, TemplateSnapshot) else "The documents do not"
        how = "has no fields: put tags into the document, or give `fields` with it"
        problems.add(field_name, how, f"{subject} contain fields")
    elif len(basis.fields) > limits.max_fields:
        reason = f"has more than {limits.max_fields} fields"
        problems.add(field_name, reason, f"A submission can have at most {limits.max_fields} fields.")
        problems.refuse()


def field_of(basis: Basis) -> str:
    """The key of the request that a fault of the basis is told of."""
    return "template_id" if isinstance(basis, TemplateSnapshot) else "documents"


def _check_count(submitters: Sequence[NewSubmitter], limits: Limits, problems: Problems) -> None:
    if not submitters:
        problems.add("submitters", "is required", "submitters is required")
    if len(submitters) > limits.max_submitters:
        problems.add("submitters", f"must not have more than {limits.max_submitters} entries")
        problems.refuse()


def _overrides(
    submitter: NewSubmitter,
    party: Party,
    fields: Sequence[FieldDefinition],
    names: dict[str, str],
    path: str,
    problems: Problems,
) -> Overrides:
    own_fields = [field for field in fields if field.submitter_uuid == party.uuid]
    overrides = planned_overrides(
        OverrideRequest(submitter.values, submitter.fields, submitter.readonly_fields, path),
        own_fields,
        names,
        (),
        problems,
    )
    for field in own_fields:
        template_defaults(field, overrides)
    if submitter.name:  # It stands on the audit trail, if nowhere else.
        overrides.texts.append((f"{path}name", submitter.name))
    return overrides


def _submitter(
    index: int,
    submitter: NewSubmitter,
    party: Party,
    overrides: Overrides,
    template: Basis,
    request: NewSubmission,
    chosen: Mapping[str, Any],
    problems: Problems,
) -> PlannedSubmitter:
    path = f"submitters[{index}]"
    email, name, phone = checked_contact(submitter.email, submitter.name, submitter.phone, path, problems)
    reached = (submitter.email or "").strip() or (submitter.phone or "").strip() or (submitter.invite_by or "").strip()
    if not reached and request.source != LINK:  # the visitor of a link is there already
        problems.add(f"{path}.email", "is required unless phone is given", f"email or phone is required in `{path}`.")
    own_types = {field.type for field in template.fields if field.submitter_uuid == party.uuid}
    acts_as = _acts_as(submitter.acts_as, own_types, f"{path}.acts_as", party.name, problems)
    viewer = acts_as is ActsAs.VIEWER
    if viewer and submitter.completed:
        problems.add(f"{path}.completed", f"cannot be true: {party.name} has no fields")
    preferences_kept: dict[str, Any] = {
        "send_email": request.send_email if submitter.send_email is None else submitter.send_email,
        **checked_wishes(submitter.reply_to, submitter.completed_redirect_url, f"{path}.", problems),
    }
    if acts_as is ActsAs.APPROVER:
        preferences_kept["acts_as"] = acts_as.value
    if (lang := checked_language(submitter.lang or request.lang, f"{path}.lang", problems)) is not None:
        preferences_kept["lang"] = lang
    if submitter.go_to_last is not None:
        preferences_kept["go_to_last"] = submitter.go_to_last
    preferences_kept |= consent.consent_preferences(submitter, request, f"{path}.", problems)
    brand = branding.plan_branding(submitter, request, party.uuid, f"{path}.", problems)
    preferences_kept |= brand.preferences
    preferences_kept |= code_requirements(submitter, chosen)
    check_code_addresses(preferences_kept, email or submitter.invite_by, phone or submitter.invite_by, path, problems)
    return PlannedSubmitter(
        party=party,
        group=_group(index, submitter.order, path, problems),
        viewer=viewer,
        completed=submitter.completed,
        email=email,
        name=name,
        phone=phone,
        external_id=checked_key(submitter.external_id, f"{path}.external_id", problems),
        values=overrides.values,
        warnings=overrides.ignored,
        metadata=submitter.metadata,
        preferences=preferences_kept,
        message=checked_message(submitter.message, f"{path}.message", problems),
        branding=brand,
    )


def _acts_as(
    requested: str | None, own_types: Collection[FieldType], path: str, role: str, problems: Problems
) -> ActsAs:
    """Return what a party with fields of these types does: without any it reads, unless it is to approve."""
    fitting = ActsAs.SIGNER if own_types else ActsAs.VIEWER
    if requested is None:
        return fitting
    acts_as = ActsAs(requested)
    if acts_as is ActsAs.SIGNER and not own_types:
        problems.add(path, f"cannot be signer: {role} has no fields")
    elif acts_as is ActsAs.VIEWER and own_types:
        problems.add(path, f"cannot be viewer: {role} has fields")
    elif acts_as is ActsAs.APPROVER and {FieldType.SIGNATURE, FieldType.INITIALS} & set(own_types):
        problems.add(path, f"cannot be approver: {role} has fields to sign")
    else:
        return acts_as
    return fitting


def _check_invitees(
    submitters: Sequence[PlannedSubmitter],
    overrides_of_all: Sequence[Overrides],
    strangers: Collection[str],
    problems: Problems,
) -> None:
    """Whoever invites must complete some day; files belong to a submitter, who is not there yet."""
    viewers = {submitter.party.uuid for submitter in submitters if submitter.viewer}.difference(strangers)
    for index, (submitter, overrides) in enumerate(zip(submitters, overrides_of_all, strict=True)):
        if submitter.invited_by in viewers:
            problems.add(f"submitters[{index}].invite_by", "must be a role with fields")
        if submitter.invited_by and overrides.sources:
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
    for key in ("cc_sent", "cc_completed"):
        if (address_list := getattr(request, key)) and address_list.strip():
            try:
                details[key] = ", ".join(addresses.emails(address_list))
            except addresses.BadAddress as bad:
                problems.add(key, bad.reason, f"{key} email is invalid")
    return {key: value for key, value in details.items() if value is not None}


def _fields(
    template: Basis, parties: Sequence[Party], overrides_of_all: Sequence[Overrides], problems: Problems
) -> list[FieldDefinition]:
    """The fields of the parties that take part, with what the request changes in them."""
    by_party = dict(zip((party.uuid for party in parties), overrides_of_all, strict=True))
    uuids_present = {field.uuid for field in template.fields if field.submitter_uuid in by_party}
    fields = []
    for field in template.fields:
        if (overrides := by_party.get(field.submitter_uuid)) is None:
            continue
        changed = overrides.apply(references.emptied(field, uuids_present))
        if field.type is FieldType.PAYMENT and changed.preferences.get("price") is None:
            problems.add(field_of(template), f"has the payment field {field.name or field.uuid} without a price")
        # What an override makes so was refused where it was given.
        if checker.unsatisfiable(field) and (reason := checker.unsatisfiable(changed)):
            problems.add(field_of(template), f"has the field {field.name or field.uuid} whose {reason}")
        fields.append(changed)
    documents = {document.uuid: document.conditions for document in template.documents if document.conditions}
    return with_expressions(fields, documents, overrides_of_all, field_of(template), problems)


def _check_formulas(
    plan: Plan, overrides_of_all: Sequence[Overrides], basis: str, strangers: Collection[str], problems: Problems
) -> None:
    """Refuse formulas that could never find anything: all their fields are filled in later, in this order."""
    if plan.order is not Order.PRESERVED or strangers:
        return
    earlier = {
        submitter.party.uuid: {
            other.party.uuid for other in plan.submitters if other.completed or other.group <= submitter.group
        }
        for submitter in plan.submitters
    }
    paths = {key: path for overrides in overrides_of_all for key, path in overrides.expressions.items()}
    note_faults(references.never_computed(plan.fields, earlier), plan.fields, paths, basis, problems)


def _check_order(plan: Plan, problems: Problems) -> None:
    """Check the order: who signs with a certificate of their own does so over what the signer before has signed."""
    if plan.certsign is None or plan.certsign.mode is not CertsignMode.SIGNER:
        return
    signers = [submitter for submitter in plan.submitters if submitter.preferences.get("acts_as") != ActsAs.APPROVER]
    if (reason := confirming.not_in_order(plan.order, signers)) is not None:
        problems.add("order" if plan.order is Order.RANDOM else "submitters", reason)


def _check_somebody_acts(plan: Plan, problems: Problems) -> None:
    if all(submitter.viewer for submitter in plan.submitters):
        problems.add("submitters", "must have at least one role with fields")


def _check_whole(plan: Plan, limits: Limits, problems: Problems) -> None:
    check_size([{**s.values, "metadata": s.metadata} for s in plan.submitters], limits, problems)
    if len(plan.sources) > limits.max_attachments:
        problems.add("submitters", f"must not have more than {limits.max_attachments} files and pictures")


def check_size(values: Any, limits: Limits, problems: Problems) -> None:
    """All values and metadata of a submission together. Also refuses what is no JSON (NaN)."""
    size = len(json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    if size > limits.max_values_bytes:
        problems.add("submitters", f"must not have more than {limits.max_values_bytes:,} bytes of values and metadata")


def checked_contact(
    email: str | None, name: str | None, phone: str | None, path: str, problems: Problems
) -> tuple[str | None, str | None, str | None]:
    """E-mail address, name and telephone number of a submitter, cleaned; blank is None."""
    contact: list[str | None] = [None, None, None]
    if email and email.strip():
        try:
            contact[0] = addresses.email(email)
        except addresses.BadAddress as bad:
            problems.add(f"{path}.email".lstrip("."), bad.reason, f"email is invalid{_inside(path)}")
    try:
        contact[1] = addresses.name(name)
    except addresses.BadAddress as bad:
        problems.add(f"{path}.name".lstrip("."), bad.reason)
    if phone and phone.strip():
        try:
            contact[2] = addresses.phone(phone)
        except addresses.BadAddress as bad:
            message = f"phone should start with +<country code> and contain only digits{_inside(path)}"
            problems.add(f"{path}.phone".lstrip("."), bad.reason, message)
    return contact[0], contact[1], contact[2]


def checked_wishes(reply_to: str | None, redirect_url: str | None, path: str, problems: Problems) -> dict[str, Any]:
    """``reply_to`` and ``completed_redirect_url``, those that were given."""
    wishes: dict[str, Any] = {}
    try:
        if reply_to and reply_to.strip():
            wishes["reply_to"] = ", ".join(addresses.emails(reply_to))
    except addresses.BadAddress as bad:
        problems.add(f"{path}reply_to", bad.reason, "reply_to email is invalid")
    try:
        if url := addresses.web_url(redirect_url):
            wishes["completed_redirect_url"] = url
    except addresses.BadAddress as bad:
        problems.add(f"{path}completed_redirect_url", bad.reason)
    return wishes


def checked_language(tag: str | None, path: str, problems: Problems) -> str | None:
    """Return the tag as CLDR writes it. It is kept as it was asked for, whether or not there are messages in it by now."""
    if not tag or tag == PSEUDO:
        return tag or None
    if (locale := known_locale(tag)) is None:
        problems.add(path, "must be a language, such as de or pt-BR")
        return None
    return str(locale).replace("_", "-")


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
