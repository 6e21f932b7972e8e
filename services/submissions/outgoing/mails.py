"""What notifications gets: everything a mail says, so that it need not ask back. Masked values stay masked."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from contracts.blobs import BlobRef
from contracts.events import CompletionMails, DeclineMail, InvitationDue, MailContext, MailedFile, Recipient
from contracts.rpc.submissions.api import Message
from contracts.runtime.clock import uuid7
from contracts.types import Account, DocumentLink, FieldType
from services.submissions.evidence import statements
from services.submissions.models import AttachmentRow, SubmitterRow
from services.submissions.reading import present
from services.submissions.rules import preferences
from services.submissions.site import Site
from services.submissions.storage import branding
from services.submissions.storage.store import Loaded


def context(found: Loaded, site: Site, attachments: Sequence[AttachmentRow]) -> MailContext:
    row, snapshot = found.row, found.snapshot
    links = site.lasting()
    shown = present.ValuesView(found.fields, {one.uuid: one for one in attachments}, links)
    account = Account.model_validate(snapshot.account)
    return MailContext(
        submission_id=row.id,
        submission_name=row.name or snapshot.template_name or f"Submission {row.id}",
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
        parties=[
            Recipient(
                submitter_id=one.id,
                role=one.role,
                name=one.name,
                email=one.email,
                link=site.signing_page(one.slug),
                slug=one.slug,
                send_email=bool(one.preferences.get("send_email")),
                status=one.status,
                values={**dict.fromkeys(shown.names_of(one)), **shown.of(one)},
                **_brand(one, account),
            )
            for one in found.submitters
        ],
    )


def _brand(one: SubmitterRow, account: Account) -> dict[str, Any]:
    brand = branding.shown(one, account)
    return {"company_name": brand.name, "logo": brand.logo}


def wants_mail(submitter: SubmitterRow) -> bool:
    return bool(submitter.email and submitter.preferences.get("send_email"))


def sender_wants_mail(found: Loaded) -> bool:
    return bool(found.row.created_by_email and found.row.details.get("send_email", True))


def invitation(found: Loaded, submitter: SubmitterRow, told: MailContext) -> InvitationDue:
    message = submitter.message or found.row.details.get("message")
    kinds = {field.type for field in found.fields_of(submitter)}
    return InvitationDue(
        invitation_id=uuid7(),
        context=told,
        submitter_id=submitter.id,
        reply_to=submitter.preferences.get("reply_to"),
        message=Message.model_validate(message) if message else None,
        needs_signature=bool(kinds & {FieldType.SIGNATURE, FieldType.INITIALS}),
    )


def completion(found: Loaded, site: Site, told: MailContext, now: datetime) -> CompletionMails | None:
    """The mails of specification 2.8, or None when nobody is to get one."""
    row = found.row
    chosen = preferences.mailing(
        told.account,
        row.preferences,
        send_email=bool(row.details.get("send_email", True)),
        sender=row.created_by_email,
        copied=[str(one.email) for one in found.submitters if wants_mail(one)],
        bcc=row.details.get("bcc_completed"),
    )
    results, links = row.results or {}, site.mailed(now)
    copied = chosen.copy_signers and any(wants_mail(one) for one in found.submitters)
    if not (chosen.notify_sender or chosen.bcc or copied):
        return None
    audit_name = f"Audit Log - {present.title(row, found.template)}"
    audit = results["audit_trail"]
    receipts = statements.receipts(found.session, row.id)
    parties = [_with_receipt(one, receipts.get(one.submitter_id), site) for one in told.parties]
    return CompletionMails(
        context=told.model_copy(update={"parties": parties}),
        completed_at=row.completed_at or now,
        documents=[
            MailedFile(name=link.name, file=BlobRef.model_validate(one["file"]), link=link)
            for one, link in zip(results["documents"], present.result_links(row, links), strict=True)
        ],
        audit_trail=MailedFile(
            name=audit_name,
            file=BlobRef.model_validate(audit),
            link=DocumentLink(name=audit_name, url=links.to_pdf(audit, audit_name), sha256=audit["sha256"]),
        ),
        notify_sender=chosen.notify_sender,
        bcc=chosen.bcc,
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


def declined(submitter: SubmitterRow, told: MailContext) -> DeclineMail:
    return DeclineMail(context=told, submitter_id=submitter.id, reason=submitter.decline_reason or "")
