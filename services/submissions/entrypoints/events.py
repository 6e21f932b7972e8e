"""What other services told: of sealed documents, mails, text messages, templates."""

from contracts import events
from contracts.envelope import Envelope
from contracts.events import (
    DocumentArchived,
    DocumentsFailed,
    DocumentsSealed,
    DocumentsStamped,
    ErasureConfirmed,
    ErasureReceiptSigned,
    MailOutcome,
    PhoneOutcome,
    PublicData,
    StatementSigned,
)
from contracts.providers import CertsignChanged, ConfirmationChanged, DutystampChanged
from contracts.runtime.clock import now
from contracts.runtime.worker import subscribes
from services.submissions.commands import erasures, followups, providers
from services.submissions.commands.signing import confirmation
from services.submissions.entrypoints.base import Entrypoints
from services.submissions.storage import known_templates


class Events(Entrypoints):
    """Each may come again, and in any order: its id is kept with its effect."""

    @subscribes(events.DOCUMENTS_SEALED)
    def on_documents_sealed(self, envelope: Envelope, data: DocumentsSealed) -> None:
        self._write(followups.accept_sealed, envelope.id, data)

    @subscribes(events.DOCUMENT_ARCHIVED)
    def on_document_archived(self, envelope: Envelope, data: DocumentArchived) -> None:
        self._write(followups.accept_archived, envelope.id, data)

    @subscribes(events.DOCUMENTS_FAILED)
    def on_documents_failed(self, envelope: Envelope, data: DocumentsFailed) -> None:
        self._write(followups.accept_failure, envelope.id, data)

    @subscribes(events.CERTSIGN_CHANGED)
    def on_certsign_changed(self, envelope: Envelope, data: CertsignChanged) -> None:
        self._write(providers.accept_certsign, envelope.id, data)

    @subscribes(events.CONFIRMATION_CHANGED)
    def on_confirmation_changed(self, envelope: Envelope, data: ConfirmationChanged) -> None:
        self._write(confirmation.accept, envelope.id, data, self.context.settings)

    @subscribes(events.DUTYSTAMP_CHANGED)
    def on_dutystamp_changed(self, envelope: Envelope, data: DutystampChanged) -> None:
        self._write(providers.accept_dutystamp, envelope.id, data)

    @subscribes(events.DOCUMENTS_STAMPED)
    def on_documents_stamped(self, envelope: Envelope, data: DocumentsStamped) -> None:
        self._write(followups.accept_stamped, envelope.id, data)

    @subscribes(events.STATEMENT_SIGNED)
    def on_statement_signed(self, envelope: Envelope, data: StatementSigned) -> None:
        self.context.in_turn.write(data.submission_id, followups.accept_statement, envelope.id, data, now())

    @subscribes(events.MAILS_ERASED)
    def on_mails_erased(self, envelope: Envelope, data: ErasureConfirmed) -> None:
        self.context.database.write(erasures.confirm, envelope.id, envelope.source, data)

    @subscribes(events.RENDERINGS_ERASED)
    def on_renderings_erased(self, envelope: Envelope, data: ErasureConfirmed) -> None:
        self.context.database.write(erasures.confirm, envelope.id, envelope.source, data)

    @subscribes(events.EVENT_LOG_ERASED)
    def on_event_log_erased(self, envelope: Envelope, data: ErasureConfirmed) -> None:
        self.context.database.write(erasures.confirm, envelope.id, envelope.source, data)

    @subscribes(events.ERASURE_RECEIPT_SIGNED)
    def on_erasure_receipt_signed(self, envelope: Envelope, data: ErasureReceiptSigned) -> None:
        self.context.database.write(erasures.accept_signature, envelope.id, data)

    @subscribes(events.MAIL_SENT)
    def on_mail_sent(self, envelope: Envelope, data: MailOutcome) -> None:
        about, site = data.submission_id, self._site
        self.context.in_turn.write(about, followups.accept_mail_sent, envelope.id, data, site, now())

    @subscribes(events.MAIL_FAILED)
    def on_mail_failed(self, envelope: Envelope, data: MailOutcome) -> None:
        self.context.database.write(followups.accept_mail_failed, envelope.id, data, now())

    @subscribes(events.SMS_SENT)
    def on_sms_sent(self, envelope: Envelope, data: PhoneOutcome) -> None:
        self._write(followups.accept_sms_sent, envelope.id, data)

    @subscribes(events.SMS_FAILED)
    def on_sms_failed(self, envelope: Envelope, data: PhoneOutcome) -> None:
        self.context.database.write(followups.accept_sms_failed, envelope.id, data, now())

    @subscribes(events.TEMPLATE_UPDATED)
    def on_template_updated(self, envelope: Envelope, data: PublicData) -> None:
        news = known_templates.TemplateNews.model_validate(data.data)
        self.context.database.write(known_templates.accept, envelope.id, news)
