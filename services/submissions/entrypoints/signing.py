"""Calls of the signing page: its form, its one-time codes, its checks of identity."""

from collections.abc import Callable
from typing import Any

from contracts.providers import ConfirmationView
from contracts.rpc import rendering
from contracts.rpc.rendering import FillRequest
from contracts.rpc.submissions import visit
from contracts.rpc.submissions.signing import codes, form, identity, ways
from contracts.rpc.submissions.signing import confirmation as confirming
from contracts.runtime.clock import now
from contracts.runtime.worker import handles
from contracts.types import Attachment, FieldType
from services.submissions.commands.signing import codes as code_commands
from services.submissions.commands.signing import confirmation as confirmation_commands
from services.submissions.commands.signing import form as form_commands
from services.submissions.commands.signing import identity as identity_commands
from services.submissions.commands.signing import returning
from services.submissions.commands.signing import ways as way_commands
from services.submissions.creating.fitting import Doubtful
from services.submissions.entrypoints.base import Entrypoints
from services.submissions.models import SubmitterRow
from services.submissions.planning.preparing import adopted, check_texts, drawn_name, texts_in
from services.submissions.rules.confirming import KeptConfirmation
from services.submissions.storage.store import LoadedSubmission
from services.submissions.views import form_news, forms


class Signing(Entrypoints):
    """Calls of signers."""

    @handles(form.OPEN_FORM)
    def open_form(self, request: form.OpenForm) -> form.SigningForm:
        return self._look_up(forms.form, request)

    @handles(form.WATCH_FORM)
    def watch_form(self, query: form.WatchForm) -> form.FormNews:
        return self._look_up(form_news.news, query)

    @handles(form.FORM_FILE)
    def form_file(self, query: form.FormPage) -> form.FormFile:
        return self._look_up(forms.file_of, query)

    @handles(form.FORM_COPY)
    def form_copy(self, query: form.FormPage) -> form.FormCopy:
        return self._look_up(forms.copy_of, query)

    @handles(form.FORM_DRAWING)
    def form_drawing(self, query: form.DrawForm) -> FillRequest:
        return self._look_up(forms.drawing, query, self.context.settings)

    @handles(form.VIEW_FORM)
    def view_form(self, request: visit.Visit) -> form.Done:
        return self._write(form_commands.view, request)

    @handles(form.SAVE_VALUES)
    def save_values(self, command: form.SaveValues) -> form.Done:
        return self._write_drawable(form_commands.save, command)

    @handles(form.COMPLETE_FORM)
    def complete_form(self, command: form.CompleteForm) -> form.Done:
        return self._write_drawable(form_commands.complete, command)

    @handles(form.INVITE_AND_COMPLETE)
    def invite_and_complete(self, command: form.InviteAndComplete) -> form.Done:
        return self._write_drawable(form_commands.complete, command)

    @handles(form.DECLINE_FORM)
    def decline_form(self, command: form.DeclineForm) -> form.Done:
        return self._write(form_commands.decline, command)

    @handles(form.REPORT_WRONG_RECIPIENT)
    def report_wrong_recipient(self, command: form.ReportWrongRecipient) -> form.Done:
        return self._write(form_commands.report_wrong_recipient, command)

    @handles(ways.DELEGATE_FORM)
    def delegate_form(self, command: ways.DelegateForm) -> form.Done:
        texts = [("name", command.name)] if command.name else []
        check_texts(self.context.bus, texts, lambda: self._look_up(forms.labels, command))
        return self._write(way_commands.delegate, command)

    @handles(ways.SEND_LINK)
    def send_link(self, command: ways.SendLink) -> ways.LinkSent:
        return self._write(way_commands.send_link, command)

    @handles(ways.ASK_SENDER)
    def ask_sender(self, command: ways.AskSender) -> form.Done:
        return self._write(way_commands.ask, command)

    @handles(ways.RETURN_FORM)
    def return_form(self, command: ways.ReturnForm) -> form.Done:
        return self._write(returning.send_back, command)

    @handles(form.CHOOSE_LANGUAGE)
    def choose_language(self, command: form.ChooseLanguage) -> form.Done:
        return self._write(form_commands.choose_language, command)

    @handles(form.ATTACH_FILE)
    def attach_file(self, command: form.AttachFile) -> Attachment:
        if (done := self._remembered(form.ATTACH_FILE, command)) is not None:
            return done
        with self._files() as files:
            files.receive(command.file)
            if command.drawn and command.type in forms.STROKES:  # whether they may is seen in the transaction
                prepared = drawn_name(command.file, command.filename, FieldType(command.type))
            else:
                party, kind = self._look_up(forms.check_upload, command)
                prepared = self._preparer.prepare_upload(files, command.file, command.filename, party, kind)
            (attachment,) = adopted(files, [prepared])
            return self._write(form_commands.attach, command, attachment, self.context.settings)

    @handles(codes.SEND_CODE)
    def send_code(self, command: codes.SendCode) -> codes.CodeSent:
        return self._write(code_commands.send, command, self.context.settings)

    @handles(codes.CHECK_CODE)
    def check_code(self, command: codes.CheckCode) -> codes.PassedCode:
        judged, passed = self._write(code_commands.check, command)
        return judged.passed(passed)

    @handles(identity.START_IDENTITY_CHECK)
    def start_identity_check(self, command: identity.StartIdentityCheck) -> identity.IdentityCheckStarted:
        return self._write(identity_commands.start, command)

    @handles(identity.CLAIM_IDENTITY_CHECK)
    def claim_identity_check(self, command: identity.ClaimIdentityCheck) -> identity.IdentityCheckClaimed:
        return self.context.database.write(identity_commands.claim, command, now())

    @handles(identity.FINISH_IDENTITY_CHECK)
    def finish_identity_check(self, command: identity.FinishIdentityCheck) -> identity.IdentityCheckFinished:
        return self._write(identity_commands.finish, command)

    @handles(confirming.START_CONFIRMATION)
    def start_confirmation(self, command: confirming.StartConfirmation) -> ConfirmationView:
        self._refuse_undrawable(command)
        return self._write(confirmation_commands.start, command, self.context.settings)

    @handles(confirming.CONFIRMATION)
    def confirmation(self, request: visit.Visit) -> ConfirmationView:
        confirmation, state = self._look_up(forms.confirmation, request)
        if confirmation is None:
            return ConfirmationView(step=confirmation_commands.ended(state))
        query = rendering.FindConfirmation(confirmation_id=confirmation.id, round=confirmation.round)
        return self._with_provider(confirmation, self.context.bus.call(rendering.CONFIRMATION, query))

    @handles(confirming.ANSWER_CONFIRMATION)
    def answer_confirmation(self, command: confirming.AnswerConfirmation) -> ConfirmationView:
        return self._answer(command, command.request_id, {"ask": command.ask, "answers": command.answers})

    @handles(confirming.RETURN_CONFIRMATION)
    def return_confirmation(self, command: confirming.ReturnConfirmation) -> ConfirmationView:
        return self._answer(command, command.request_id, {"state": command.state, "answers": command.answers})

    @handles(confirming.TRY_CONFIRMATION_AGAIN)
    def try_confirmation_again(self, command: confirming.LeaveConfirmation) -> ConfirmationView:
        return self._write(confirmation_commands.ask_again, command)

    @handles(confirming.LEAVE_CONFIRMATION)
    def leave_confirmation(self, command: confirming.LeaveConfirmation) -> form.Done:
        return self._write(confirmation_commands.leave, command)

    def _answer(self, visitor: visit.Visit, request_id: str, answer_fields: dict[str, Any]) -> ConfirmationView:
        """Hand on what the person has given; rendering takes it once."""
        confirmation, state = self._look_up(forms.confirmation, visitor)
        if confirmation is None:
            return ConfirmationView(step=confirmation_commands.ended(state))
        command = rendering.AnswerConfirmation(
            request_id=request_id, confirmation_id=confirmation.id, round=confirmation.round, **answer_fields
        )
        return self._with_provider(confirmation, self.context.bus.call(rendering.ANSWER_CONFIRMATION, command))

    def _with_provider(self, confirmation: KeptConfirmation, view: ConfirmationView) -> ConfirmationView:
        return view if view.provider else view.model_copy(update={"provider": confirmation.provider})

    def _refuse_undrawable(self, command: form.SaveValues) -> None:
        """Refuse what a signer sends in characters that no font has, or that does not fit."""
        self._refuse_unknown_characters(command)
        question = self._look_up(forms.drawn, command)
        if question is not None:
            self._refuse_misfits(question)

    def _write_drawable(self, use_case: Callable[..., form.Done], command: form.SaveValues) -> form.Done:
        """The same, and write it. Whether it fits is mostly certain, and then seen in the transaction that writes; else that is
        left, rendering is asked, and it begins anew."""
        self._refuse_unknown_characters(command)
        site, moment, settings = self._site, now(), self.context.settings
        write = self.context.database.write

        def check(submission: LoadedSubmission, submitter: SubmitterRow) -> None:
            forms.refuse_doubtful(command, submission, submitter, moment)

        try:
            return write(use_case, command, settings, site, moment, check)
        except Doubtful as doubtful:
            self._refuse_misfits(doubtful.question)
        return write(use_case, command, settings, site, now())

    def _refuse_unknown_characters(self, command: form.SaveValues) -> None:
        invited = command.submitters if isinstance(command, form.InviteAndComplete) else []
        names = [(f"submitters[{index}].name", party.name) for index, party in enumerate(invited) if party.name]
        texts = [*texts_in(command.values), *names]
        check_texts(self.context.bus, texts, lambda: self._look_up(forms.labels, command))
