"""Entrypoints: contract in, one call, contract out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from contracts import events
from contracts.envelope import Envelope
from contracts.errors import ServiceError, not_found
from contracts.rpc import health
from contracts.rpc import notifications as rpc
from contracts.runtime.bus.told import tells_events
from contracts.runtime.clock import now
from contracts.runtime.operations.operating import operated
from contracts.runtime.worker import Context, handles, subscribes
from contracts.types import Page
from services.notifications import commands, queries
from services.notifications.channels.folder import FolderChannel
from services.notifications.messages import composing
from services.notifications.messages.composing import Mail
from services.notifications.sending import inline_pictures, phone_messages
from services.notifications.sending.mails import forget_files
from services.notifications.settings import Settings


@dataclass(frozen=True)
class _About:
    """Which submission a mail is about, and whether it is of test mode, for mails without a ``MailContext``."""

    submission_id: int | None = None
    test: bool = False


_NOTHING = _About()


@operated
@tells_events
class NotificationsService:
    name = "notifications"
    context = Context(Settings)

    @subscribes(events.INVITATION_DUE)
    def on_invitation_due(self, envelope: Envelope, data: events.InvitationDue) -> None:
        mails = composing.invitations(data)
        self._accept("invitation_due", envelope, mails, data.context, data.invitation_id)

    @subscribes(events.REMINDER_DUE)
    def on_reminder_due(self, envelope: Envelope, data: events.ReminderDue) -> None:
        self._accept("reminder_due", envelope, composing.reminders(data), data.context)

    @subscribes(events.SENT_COPY_MAILS_DUE)
    def on_sent_copy_mails_due(self, envelope: Envelope, data: events.SentCopyMails) -> None:
        mails = composing.sent_copies(data, self.context.settings.mail_attachment_bytes)
        self._accept("sent_copy_mails_due", envelope, mails, data.context)

    @subscribes(events.COMPLETION_MAILS_DUE)
    def on_completion_mails_due(self, envelope: Envelope, data: events.CompletionMails) -> None:
        mails = composing.completions(data, self.context.settings.mail_attachment_bytes)
        self._accept("completion_mails_due", envelope, mails, data.context)

    @subscribes(events.DECLINE_MAIL_DUE)
    def on_decline_mail_due(self, envelope: Envelope, data: events.DeclineMail) -> None:
        self._accept("decline_mail_due", envelope, composing.declines(data), data.context)

    @subscribes(events.WRONG_RECIPIENT_MAIL_DUE)
    def on_wrong_recipient_mail_due(self, envelope: Envelope, data: events.WrongRecipientMail) -> None:
        mails = composing.wrong_recipients(envelope.id, data)
        self._accept("wrong_recipient_mail_due", envelope, mails, data.context)

    @subscribes(events.DELEGATED_MAIL_DUE)
    def on_delegated_mail_due(self, envelope: Envelope, data: events.DelegatedMail) -> None:
        mails = composing.delegations(envelope.id, data)
        self._accept("delegated_mail_due", envelope, mails, data.context)

    @subscribes(events.RETURNED_MAIL_DUE)
    def on_returned_mail_due(self, envelope: Envelope, data: events.ReturnedMail) -> None:
        self._accept("returned_mail_due", envelope, composing.returns(envelope.id, data), data.context)

    @subscribes(events.LINK_MAIL_DUE)
    def on_link_mail_due(self, envelope: Envelope, data: events.LinkMail) -> None:
        self._accept("link_mail_due", envelope, composing.links(envelope.id, data), data.context)

    @subscribes(events.QUESTION_MAIL_DUE)
    def on_question_mail_due(self, envelope: Envelope, data: events.QuestionMail) -> None:
        self._accept("question_mail_due", envelope, composing.questions(envelope.id, data), data.context)

    @subscribes(events.LINK_REPLACED)
    def on_link_replaced(self, envelope: Envelope, data: events.LinkReplaced) -> None:
        self.context.database.write(commands.replace_link, envelope.id, data, now())

    @subscribes(events.CODE_DUE)
    def on_code_due(self, envelope: Envelope, data: events.CodeDue) -> None:
        if data.method == "phone":
            self.context.database.write(phone_messages.accept_code, envelope.id, data, now())
            return
        mails = composing.one_time_codes(data, self.context.settings.link_secret.get_secret_value())
        self._accept("code_due", envelope, mails, data)

    @subscribes(events.SMS_DUE)
    def on_sms_due(self, envelope: Envelope, data: events.SmsDue) -> None:
        pause = timedelta(seconds=self.context.settings.sms_resend_seconds)
        self.context.database.write(phone_messages.accept_invitation, envelope.id, data, pause, now())

    @subscribes(events.WEBHOOK_DISABLED)
    def on_webhook_disabled(self, envelope: Envelope, data: events.WebhookDisabled) -> None:
        mails = composing.webhooks_disabled(envelope.id, data, self.context.settings.base_url)
        self._accept("webhook_disabled", envelope, mails, _About(test=data.test))

    @subscribes(events.PROVIDER_PROBLEM_DUE)
    def on_provider_problem_due(self, envelope: Envelope, data: events.ProviderProblem) -> None:
        base_url = self.context.settings.base_url
        mails = composing.provider_problems(data, self._admins(), envelope.occurred_at, base_url)
        self._accept("provider_problem_due", envelope, mails, _About(data.submission_id))

    @subscribes(events.STAMP_BALANCE_LOW)
    def on_stamp_balance_low(self, envelope: Envelope, data: events.StampBalanceLow) -> None:
        mails = composing.stamp_balances_low(envelope.id, data, self._admins())
        self._accept("stamp_balance_low", envelope, mails)

    @subscribes(events.ADMINS_CHANGED)
    def on_admins_changed(self, envelope: Envelope, data: events.Admins) -> None:
        self.context.database.write(commands.keep_admins, envelope.id, data)

    @subscribes(events.SUBMISSION_ERASED)
    def on_submission_erased(self, envelope: Envelope, data: events.Erased) -> None:
        self._erase(envelope, data)

    @subscribes(events.TEST_MODE_WIPED)
    def on_test_mode_wiped(self, envelope: Envelope, data: events.TestModeWiped) -> None:
        self.context.database.write(commands.wipe_test_mode, envelope.id, data, now())

    @subscribes(events.ERASURE_ASKED)
    def on_erasure_asked(self, envelope: Envelope, data: events.Erased) -> None:
        self._erase(envelope, data)

    def _erase(self, envelope: Envelope, data: events.Erased) -> None:
        self.context.database.write(commands.erase, envelope.id, data.submission_id, now(), phone_messages.erase)
        if self.context.settings.var_dir is not None:
            forget_files(self.context.database, FolderChannel(self.context.settings.mail_folder))

    @handles(rpc.LIST)
    def list(self, request: rpc.ListMails) -> Page[rpc.Mail]:
        return self.context.database.read(queries.mails, request)

    @handles(rpc.GET)
    def get(self, request: rpc.GetMail) -> rpc.MailText:
        """Mails hold signing links: they are shown only where they are kept instead of sent."""
        if self.context.settings.server is not None and not request.test:
            raise not_found("Mail")
        mail = self.context.database.read(queries.mail, request)
        pictures = inline_pictures.data(self.context.blobs, self.context.database.read(queries.pictures, request.id))
        return mail.model_copy(update={"html": inline_pictures.within(mail.html, pictures)})

    @handles(rpc.TEST_MAILS)
    def test_mails(self, request: rpc.ListMails) -> Page[rpc.MailText]:
        return self.context.database.read(queries.mails_of_tests, request)

    @handles(rpc.LIST_PHONE_MESSAGES)
    def list_phone_messages(self, request: rpc.ListMails) -> Page[rpc.PhoneMessage]:
        return self.context.database.read(queries.phone_messages, request)

    @handles(rpc.FIND_RECIPIENT)
    def find_recipient(self, request: rpc.FindRecipient) -> rpc.FoundRecipient:
        return self.context.database.read(queries.recipient, request)

    @handles(rpc.RECIPIENT)
    def recipient(self, request: rpc.DescribeRecipient) -> rpc.WrittenMessages:
        return self.context.database.read(queries.written, request)

    @handles(health.PING["notifications"])
    def ping(self, request: health.Ping) -> health.Pong:
        return self.context.pong()

    def _admins(self) -> Sequence[str]:
        """Their addresses. Raises ServiceError while the gateway has not said who they are: the event comes again."""
        if (emails := self.context.database.read(queries.admins)) is None:
            raise ServiceError("unavailable", "The gateway has not yet told who the admins are.")
        return emails

    def _accept(
        self,
        handler: str,
        envelope: Envelope,
        mails: Sequence[Mail],
        about: events.MailContext | events.CodeDue | _About = _NOTHING,
        invitation_id: str | None = None,
    ) -> None:
        """Take the mails up, once for each event; ``about`` says which submission they are about, and whether of test mode."""
        settings = self.context.settings
        self.context.in_turn.write(
            about.submission_id or 0,
            commands.accept,
            handler,
            envelope.id,
            mails,
            now(),
            sender=settings.sender,
            kept_in_folder=settings.server is None,
            submission_id=about.submission_id,
            invitation_id=invitation_id,
            resend_after=timedelta(seconds=settings.mail_resend_seconds),
            test=about.test,
        )
