"""The signing page: what one signer sees, fills in and completes."""

from datetime import datetime
from typing import Any

from pydantic import Field

from contracts.blobs import BlobRef
from contracts.rpc import Rpc
from contracts.rpc.rendering import FillRequest
from contracts.rpc.submissions.signing.codes import CodeAsked
from contracts.rpc.submissions.visit import Visit
from contracts.types import (
    Attachment,
    Condition,
    FieldDefinition,
    PageSize,
    SealedDocumentLink,
    SignerCertificate,
    Tolerant,
)


class OpenForm(Visit):
    """Only reads; a mail scanner's GET changes nothing. The page itself then reports the view (``view``).

    ``state_only``: who asks wants to know what the form shows, not what is in it: there are no fields, documents and results.
    """

    state_only: bool = False


class FormDocument(Tolerant):
    """``conditions``: it is shown only while these hold of what the signer fills in; others are decided already."""

    uuid: str
    name: str
    pages: list[PageSize]
    url: str | None = None
    conditions: list[Condition] = Field(default_factory=list)


class DrawnFrom(Tolerant):
    """The file of a document as it was sent to the signers. ``footer`` is the line that every page gets at its foot, empty for
    none."""

    file: BlobRef
    footer: str = ""


class FormField(FieldDefinition):
    """A field on the signing page: ``value`` as stored, ``mine`` when this signer fills it (others are shown only).

    ``display`` is how a value reads on paper (formatted date, number), masked where it must be. ``reasons`` are those that
    the signer of this signature must choose from, ``reason`` the one that they have chosen.
    ``confirmed`` is the stored number of a phone field that asks for a one-time code, when the code was passed.
    Of a verification field ``verified_as`` is whom the identity provider named (empty when it gave no name, None without a
    proof), ``verification_problem`` why the last attempt came to nothing (``IdentityProblem``).
    """

    value: Any = None
    display: str | None = None
    mine: bool = True
    reasons: list[str] = Field(default_factory=list)
    reason: str | None = None
    confirmed: str | None = None
    verified_as: str | None = None
    verification_problem: str | None = None


class ConsentAsked(Tolerant):
    """The words that a signer has to agree to before completing; ``url`` is where the terms can be read."""

    text: str
    url: str | None = None


class PartyToInvite(Tolerant):
    """A role whose signer this signer names on completing; with ``needs_phone`` they have to give a telephone number, too."""

    uuid: str
    role: str
    needs_phone: bool = False


class Copies(Tolerant):
    """What a party that has completed may have while others have not: ``documents`` as they stood when the party completed,
    with the values that they saw and gave. ``done`` of ``parties`` have completed by now."""

    documents: list[FormDocument]
    done: int
    parties: int


class SignedSummary(Tolerant):
    """What a signer has completed: when, in their time zone, by what name, which documents; the picture that they signed with,
    or their initials where there was no signature."""

    at: datetime
    time_zone: str
    name: str
    documents: list[str]
    picture: Attachment | None = None


class SigningForm(Tolerant):
    """The content of the signing page. ``account_name`` and ``logo_url`` are those that this signer is to see. ``state`` is
    ``open``, ``waiting``, ``completed``, ``declined``, ``expired``, ``archived``, ``returned`` or ``code``; everything but the
    names is empty unless ``open`` or ``completed``.

    Before the signer's one-time codes are passed, nothing of the submission is in it, not even its name: it is ``code``, with
    what is asked for, or the state in which no code is worth asking for.

    ``shown`` names all that is to be signed, as it is here (``services/submissions/evidence/shown.py``): whoever saves or
    completes sends it back, and is refused with ``changed_meanwhile`` when it is no longer so. None unless ``open``.
    ``lang`` is the language that this signer is spoken to in, as it was asked for; None when nobody has said.
    ``acts_as`` is what they are asked to do (contracts.types.ActsAs); None of an older version.
    ``receipt`` is what the signer may keep as a proof of their completion (contracts.evidence.statements), None before.
    ``confirm_with``: the signer's last step is a confirmation at this provider (``confirmation``), in place of completing.
    While it is under way ``state`` is ``confirming``: everything is as when it is ``open``, to be looked at only.
    ``identity`` is the certificate that they signed with, once the form is completed; ``signed`` what they have signed.
    ``copies``: what they may have of it until everybody has completed; None before, when it is sealed, and where the sender
    wants none.
    ``ways`` are those on from here that this signer has beside completing (``ways``), while it is ``open``.
    ``hand_to``: who has completed may hand the device to this party (its name, else its role), to sign in person
    (``handover``). ``test``: the submission was made in test mode.
    ``drawn_from``: what the pages of each document are drawn from, by its uuid; empty of an older version.
    """

    state: str
    submission_name: str
    account_name: str
    submitter_id: int
    submitter_name: str | None = None
    submitter_email: str | None = None
    role: str
    submission_id: int | None = None
    sender_name: str | None = None
    locale: str = "en-US"
    lang: str | None = None
    time_zone: str = "UTC"
    expire_at: datetime | None = None
    sealing_status: str | None = None
    waits_for_provider: bool = False
    returned_by: str | None = None
    return_reason: str | None = None
    test: bool = False
    declined_by: str | None = None
    decline_reason: str | None = None
    completed_redirect_url: str | None = None
    go_to_last: bool = False
    documents: list[FormDocument] = Field(default_factory=list)
    drawn_from: dict[str, DrawnFrom] = Field(default_factory=dict)
    fields: list[FormField] = Field(default_factory=list)
    attachments: list[Attachment] = Field(default_factory=list)
    results: list[SealedDocumentLink] = Field(default_factory=list)
    audit_log_url: str | None = None
    consent: ConsentAsked | None = None
    invites: list[PartyToInvite] = Field(default_factory=list)
    logo_url: str | None = None
    code: CodeAsked | None = None
    shown: str | None = None
    receipt: str | None = None
    confirm_with: str | None = None
    acts_as: str | None = None
    identity: SignerCertificate | None = None
    copies: Copies | None = None
    signed: SignedSummary | None = None
    ways: list[str] = Field(default_factory=list)
    delegate_needs_phone: bool = False
    hand_to: str | None = None


class SaveValues(Visit):
    """``values`` is keyed by field uuid, as are ``reasons``: the reason for signing that was chosen for a signature, None to
    take it back. Stored step by step; required is checked on completion only."""

    request_id: str
    values: dict[str, Any]
    reasons: dict[str, str | None] = Field(default_factory=dict)


class WordsAbove(Tolerant):
    """The words that stand above the Complete button, in ``language``: those of the gateway's own page. ``approves``: they
    are those for who approves and does not sign; None of an older version."""

    language: str
    words: str
    approves: bool | None = None


class CompleteForm(SaveValues):
    """The last step: saves, checks everything, completes. ``consent``: they have ticked what they were asked to agree to.
    ``statement``: what stood above the button; None where the page did not say that it showed any (an older one)."""

    consent: bool = False
    statement: WordsAbove | None = None


class Invited(Tolerant):
    """The person who is to sign for a role that this signer invites; the role by ``uuid`` or by name."""

    uuid: str | None = None
    role: str | None = None
    email: str | None = None
    name: str | None = None
    phone: str | None = None


class InviteAndComplete(CompleteForm):
    """The last step of a signer who invites others: they are added, then it completes, in one transaction."""

    submitters: list[Invited] = Field(default_factory=list)


class DeclineForm(Visit):
    request_id: str
    reason: str = ""


class ReportWrongRecipient(Visit):
    """Whoever has the link says that they are not the person it is for. It opens nothing any more afterwards."""

    request_id: str
    reason: str = ""


class ChooseLanguage(Visit):
    """Whoever has the link wants to be spoken to in this language (BCP 47), on the page and in mails from now on."""

    lang: str = Field(max_length=35)


class AttachFile(Visit):
    """``type`` is the field's type. Signatures and initials must be pictures with something on them. ``drawn``: rendering has
    drawn this one, of a typed name (``DRAW_SIGNATURE``), so that it needs no look at what it is."""

    request_id: str
    type: str
    filename: str
    file: BlobRef
    drawn: bool = False


class Done(Tolerant):
    """``state`` as in SigningForm, after the command; ``wrong_recipient``, ``delegated`` or ``handed_on`` when the link is no
    longer valid because of it.
    ``receipt`` as in SigningForm, of a completion."""

    state: str
    receipt: str | None = None


class WatchForm(Visit):
    """Asked again and again by a page that is open. ``known`` is the version that it knows, None at first; ``shown`` what it
    shows."""

    known: str | None = None


class FormNews(Tolerant):
    """What a page that is open has to know to be up to date. ``state`` as in SigningForm. Of the version that the page knows
    already, and before its codes are passed, nothing but ``version`` and ``state`` is told.

    ``shown`` is what the page would show if it were opened now, as the page that asks would compare it: the same that it sent
    when nothing is another, else ``changes`` names what is (``field`` and ``reason``, as the refusal ``changed_meanwhile``).
    ``values`` and ``reasons`` are the signer's own that are saved, by field uuid: another device of theirs may have sent them.
    """

    version: str
    state: str
    submission_name: str | None = None
    expire_at: datetime | None = None
    sealing_status: str | None = None
    shown: str | None = None
    changes: list[dict[str, str]] = Field(default_factory=list)
    values: dict[str, Any] = Field(default_factory=dict)
    reasons: dict[str, str] = Field(default_factory=dict)


class FormPage(Tolerant):
    """A page of a document of this signer's submission, ``page`` from 1."""

    slug: str
    document_uuid: str
    proofs: list[str] = Field(default_factory=list)


class FormFile(DrawnFrom):
    """With the sizes of its pages."""

    pages: list[PageSize]


class FormCopy(Tolerant):
    """What a party that has completed may have of one document (``Copies``), to be drawn; ``name`` is that of the document."""

    filled: FillRequest
    name: str
    done: int
    parties: int
    completed_at: datetime
    time_zone: str
    lang: str | None = None


class DrawForm(Visit):
    """Draw what the page shows right now: ``values`` and ``reasons`` as in SaveValues, of the signer's own fields and
    only those that are not saved yet; ``fields`` are the uuids of those that are wanted."""

    values: dict[str, Any] = Field(default_factory=dict)
    reasons: dict[str, str | None] = Field(default_factory=dict)
    fields: list[str]


OPEN_FORM = Rpc("submissions", "open_form", OpenForm, SigningForm)
WATCH_FORM = Rpc("submissions", "watch_form", WatchForm, FormNews)
VIEW_FORM = Rpc("submissions", "view_form", Visit, Done)
SAVE_VALUES = Rpc("submissions", "save_values", SaveValues, Done)
COMPLETE_FORM = Rpc("submissions", "complete_form", CompleteForm, Done, timeout=30)
INVITE_AND_COMPLETE = Rpc("submissions", "invite_and_complete", InviteAndComplete, Done, timeout=30)
DECLINE_FORM = Rpc("submissions", "decline_form", DeclineForm, Done)
REPORT_WRONG_RECIPIENT = Rpc("submissions", "report_wrong_recipient", ReportWrongRecipient, Done)
CHOOSE_LANGUAGE = Rpc("submissions", "choose_language", ChooseLanguage, Done)
ATTACH_FILE = Rpc("submissions", "attach_file", AttachFile, Attachment, timeout=30)
FORM_FILE = Rpc("submissions", "form_file", FormPage, FormFile)
FORM_COPY = Rpc("submissions", "form_copy", FormPage, FormCopy)
FORM_DRAWING = Rpc("submissions", "form_drawing", DrawForm, FillRequest)
