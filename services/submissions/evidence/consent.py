"""Consent: a box that a signer must tick before completing (specification 4.3.1, 4.3.3; peer facts 4.5).

What signers are asked is settled when the submission is made and kept with their preferences, so that the paper states the very
words that were on their page. Per submitter wins over the whole submission, key by key; ``false`` exempts them.
"""

from datetime import datetime
from typing import Any

from contracts.errors import ServiceError
from contracts.fields import values as rules
from contracts.problems import Problems
from contracts.rpc.submissions.api import NewSubmission, NewSubmitter
from contracts.rpc.submissions.signing.form import CompleteForm, ConsentAsked
from contracts.types import iso
from services.submissions.models import SubmitterRow
from services.submissions.rules.parties import addresses
from services.submissions.storage import trail

LONGEST_TEXT = 1_000
USUAL_TEXT = "I have read this document and agree to sign it electronically."
USUAL_TEXT_OF_TERMS = "I have read the terms and agree to them."


def consent_preferences(
    submitter: NewSubmitter, request: NewSubmission, path: str, problems: Problems
) -> dict[str, Any]:
    """Return the preferences of a submitter that say what they have to agree to: ``consent_enabled``,
    ``consent_document_text``, ``consent_document_url``. Empty when nothing was said of it."""
    enabled = request.consent_enabled if submitter.consent_enabled is None else submitter.consent_enabled
    url = _url(submitter.consent_document_url, f"{path}consent_document_url", problems) or _url(
        request.consent_document_url, "consent_document_url", problems
    )
    text = _text(submitter.consent_document_text, f"{path}consent_document_text", problems) or _text(
        request.consent_document_text, "consent_document_text", problems
    )
    if enabled is None:
        return {}
    if not enabled:
        return {"consent_enabled": False}
    preferences = {
        "consent_enabled": True,
        "consent_document_text": text or (USUAL_TEXT_OF_TERMS if url else USUAL_TEXT),
    }
    return {**preferences, "consent_document_url": url} if url else preferences


def text_to_draw(preferences: dict[str, Any], index: int) -> tuple[str, str] | None:
    """The text with its place in the request, when a font for the audit trail has to be looked for."""
    text = preferences.get("consent_document_text")
    if not text or not rules.needs_font_check(text):
        return None
    return f"submitters[{index}].consent_document_text", text


def required_consent(submitter: SubmitterRow) -> ConsentAsked | None:
    """Return what this signer has to agree to; None when nothing."""
    preferences = submitter.preferences
    if not preferences.get("consent_enabled"):
        return None
    return ConsentAsked(
        text=preferences.get("consent_document_text") or USUAL_TEXT, url=preferences.get("consent_document_url")
    )


def record_agreement(submitter: SubmitterRow, command: CompleteForm, now: datetime) -> list[trail.Line]:
    """Record that the signer has agreed; return what to add to the trail. Raises ServiceError if they had to and did not."""
    consent = required_consent(submitter)
    if consent is None:
        return []
    if not command.consent:
        raise ServiceError("invalid", "Consent is required.", [{"field": "consent", "reason": "is required"}])
    submitter.consent = {"agreed_at": iso(now), **consent.model_dump(exclude_none=True)}
    return [trail.Line(trail.GIVE_CONSENT, submitter.id, consent.model_dump(exclude_none=True))]


def _text(raw: str | None, path: str, problems: Problems) -> str | None:
    text = addresses.text(raw) if raw else ""
    if len(text) > LONGEST_TEXT:
        problems.add(path, f"must not be longer than {LONGEST_TEXT} characters")
    return text or None


def _url(raw: str | None, path: str, problems: Problems) -> str | None:
    try:
        return addresses.web_url(raw)
    except addresses.BadAddress as bad:
        problems.add(path, bad.reason)
        return None
