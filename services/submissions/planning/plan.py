"""A submission and its parties as they will be stored: what ``creation`` works out and one transaction writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from contracts.providers import CertsignOrder
from contracts.rpc.templates import Composition, TemplateSnapshot
from contracts.types import FieldDefinition, Order, Party
from services.submissions.rules.overrides import Source
from services.submissions.storage.branding import Branding

Basis = TemplateSnapshot | Composition
"""What a submission is made from: a template, or the documents of a one-off submission."""


@dataclass(frozen=True)
class PlannedSubmitter:
    """One party as it will be stored. ``group`` is its place in the order; ``invited_by`` the uuid of the role that names it
    later (``invites``); ``warnings`` what of its values is ignored."""

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
    warnings: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True)
class Plan:
    """A submission as it will be stored. ``given_preferences`` are those of the request alone. ``details``: ``send_email``,
    ``message``, ``reply_to``, ``bcc_completed``, ``completed_redirect_url``, as the submission itself has them, and
    ``first_page`` (``first_pages``)."""

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
    certsign: CertsignOrder | None = None
