"""What notifications gets: everything a mail says, so that it need not ask back. Masked values stay masked."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from contracts.blobs import BlobRef
from contracts.events import (
    CompletionMails,
    DeclineMail,
    HandedOver,
    InvitationDue,
    MailContext,
    MailedFile,
    Recipient,
    SentCopyMails,
)
from contracts.rpc.submissions.api import Message
from contracts.runtime.clock import uuid7
from contracts.types import Account, DocumentLink, FieldDefinition, FieldType
from services.submissions.evidence import statements
from services.submissions.models import AttachmentRow, SubmitterRow
from services.submissions.reading import present
from services.submissions.rules import preferences
from services.submissions.rules.parties import addresses
from services.submissions.site import Site
from services.submissions.storage import branding
from services.submissions.storage.signers import one_time_codes
from services.submissions.storage.store import LoadedSubmission

FIRST_PAGE = "first_page"
"""The key of a submission's ``details`` with the picture of its first page (``planning.first_pages``): the SHA-256 of the
``document`` that it is of, and the ``picture``, a BlobRef."""


def context(submission: LoadedSubmission, site: Site, attachments: Sequence[AttachmentRow]) -> MailContext:
    row, snapshot = submission.row, submission.snapshot
    links = site.lasting(row.id)
    shown = present.ValuesView(submission.fields, {attachment.uuid: attachment for attachment in attachments}, links)
    account = Account.model_validate(snapshot.account)
    return MailContext(
        submission_id=row.id,
        submission_name=present.called(row, snapshot),
        submission_link=site.submission_page(row.slug),
        template_id=row.template_id,
        template_name=snapshot.template_name,
        expire_at=row.expire_at,
        account=account,
        sender_id=row.created_by_id,
        sender_name=row.created_by_name,
        sender_first_name=row.created_by_first_name,
        sender_email=row.created_by_email,
        reply_to=row.details.get("reply_to"),
        test=row.test,
        parties=[
            Recipient(
                submitter_id=submitter.id,
                role=submitter.role,
                name=submitter.name,
                email=submitter.email,
                link=site.signing_page(submitter.slug),
                slug=submitter.slug,
                lang=submitter.preferences.get("lang"),
                send_email=bool(submitter.preferences.get("send_email")),
                status=submitter.status,
                acts_as=present.acts_as(submitter).value,
                opened=submitter.opened_at is not None,
                completed_by_api=submitter.completed_by_api is not None,
                values={**dict.fromkeys(shown.names_of(submitter)), **shown.of(submitter)},
                **_brand(submitter, account),
            )
            for submitter in submission.submitters
        ],
    )


def _brand(submitter: SubmitterRow, account: Account) -> dict[str, Any]:
    brand = branding.shown(submitter, account)
    return {"company_name": brand.name, "logo": brand.logo}


def wants_mail(submitter: SubmitterRow) -> bool:
    return bool(submitter.email and submitter.preferences.get("send_email"))


def sender_wants_mail(submission: LoadedSubmission) -> bool:
    return bool(submission.row.created_by_email and submission.row.details.get("send_email", True))


def opens_at_once(preferences: Mapping[str, Any], fields: Iterable[FieldDefinition]) -> bool:
    """Tell if whoever has the link sees the documents at once: no code is asked for. Where an identity is to be proved, the
    sender does not want to rely on the link either."""
    if any(preferences.get(preference) for preference in one_time_codes.REQUIRED_BY.values()):
        return False
    return all(field.type is not FieldType.VERIFICATION for field in fields)


def first_page(submission: LoadedSubmission, submitter: SubmitterRow) -> BlobRef | None:
    """The picture of the first page for this party's mail: there is one, it is of the document as it is now, and the link
    would show no less."""
    noted, documents = submission.row.details.get(FIRST_PAGE), submission.snapshot.documents
    if noted is None or not documents or documents[0]["file"]["sha256"] != noted["document"]:
        return None
    if not opens_at_once(submitter.preferences, submission.fields_of(submitter)):
        return None
    return BlobRef.model_validate(noted["picture"])


def invitation(
    submission: LoadedSubmission,
    submitter: SubmitterRow,
    context: MailContext,
    handed_over: HandedOver | None = None,
) -> InvitationDue:
    """The mail that invites this party. Whom another signer has named reads that in our words: the sender's are for those whom
    they have named themselves."""
    message = None if handed_over else submitter.message or submission.row.details.get("message")
    kinds = {field.type for field in submission.fields_of(submitter)}
    return InvitationDue(
        invitation_id=uuid7(),
        context=context,
        submitter_id=submitter.id,
        reply_to=submitter.preferences.get("reply_to"),
        message=Message.model_validate(message) if message else None,
        needs_signature=bool(kinds & {FieldType.SIGNATURE, FieldType.INITIALS}),
        handed_over=handed_over,
        first_page=first_page(submission, submitter),
    )


def sent_copy(submission: LoadedSubmission, site: Site, context: MailContext, now: datetime) -> SentCopyMails | None:
    """The mails to those who get a copy of what is sent, or None when nobody does."""
    cc = submission.row.details.get("cc_sent")
    if not cc:
        return None
    links = site.mailed(now)
    documents = []
    for stored in submission.snapshot.documents:
        file, name = stored["file"], stored["name"]
        link = DocumentLink(name=name, url=links.to_pdf(file, name), sha256=file["sha256"])
        documents.append(MailedFile(name=name, file=BlobRef.model_validate(file), link=link))
    return SentCopyMails(context=context, documents=documents, cc=addresses.emails(cc))


def completion(submission: LoadedSubmission, site: Site, context: MailContext, now: datetime) -> CompletionMails | None:
    """The mails of specification 2.8, or None when nobody is to get one."""
    row = submission.row
    chosen = preferences.mailing(
        context.account,
        row.preferences,
        send_email=bool(row.details.get("send_email", True)),
        sender=row.created_by_email,
        copied=[str(submitter.email) for submitter in submission.submitters if wants_mail(submitter)],
        bcc=row.details.get("bcc_completed"),
        cc=row.details.get("cc_completed"),
    )
    results, links = row.results or {}, site.mailed(now)
    copied = chosen.copy_signers and any(wants_mail(submitter) for submitter in submission.submitters)
    if not (chosen.notify_sender or chosen.bcc or chosen.cc or copied):
        return None
    audit_name = present.audit_trail_name(row, submission.template, context.account.locale)
    audit = results["audit_trail"]
    receipts = statements.receipts(submission.session, row.id)
    parties = [_with_receipt(party, receipts.get(party.submitter_id), site) for party in context.parties]
    return CompletionMails(
        context=context.model_copy(update={"parties": parties}),
        completed_at=row.completed_at or now,
        documents=[
            MailedFile(name=link.name, file=BlobRef.model_validate(document["file"]), link=link)
            for document, link in zip(results["documents"], present.result_links(row, links), strict=True)
        ],
        audit_trail=MailedFile(
            name=audit_name,
            file=BlobRef.model_validate(audit),
            link=DocumentLink(name=audit_name, url=links.to_pdf(audit, audit_name), sha256=audit["sha256"]),
        ),
        notify_sender=chosen.notify_sender,
        bcc=chosen.bcc,
        cc=chosen.cc,
        sender_attach_documents=chosen.sender_attach_documents,
        sender_attach_audit=chosen.sender_attach_audit,
        copy_signers=copied,
        copy_attach_documents=chosen.copy_attach_documents,
        copy_attach_audit=chosen.copy_attach_audit,
    )


def _with_receipt(party: Recipient, receipt: str | None, site: Site) -> Recipient:
    if receipt is None:
        return party
    return party.model_copy(update={"receipt": receipt, "receipt_url": site.receipt_page(receipt)})


def declined(submitter: SubmitterRow, context: MailContext) -> DeclineMail:
    return DeclineMail(context=context, submitter_id=submitter.id, reason=submitter.decline_reason or "")
