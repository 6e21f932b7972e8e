"""Entrypoints: contract in, one call, contract out. What is slow (other services, files, HTTP) is done before the write."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from contracts import events
from contracts.dry_run import DryRun
from contracts.envelope import Envelope
from contracts.errors import ServiceError, not_found
from contracts.events import DocumentsFailed, DocumentsSealed, MailOutcome, PhoneOutcome, PublicData, StatementSigned
from contracts.fields.boxes import FieldBoxes
from contracts.rpc import Rpc, health, templates
from contracts.rpc import submissions as rpc
from contracts.rpc.rendering import FillRequest
from contracts.rpc.templates import GetFieldBoxes
from contracts.runtime.bus.told import tells_events
from contracts.runtime.clock import now, uuid7
from contracts.runtime.outbound import Outbound
from contracts.runtime.worker import Context, handles, subscribes
from contracts.types import (
    IMAGE_TYPES,
    Attachment,
    Page,
    Removed,
    Submission,
    SubmissionDocuments,
    SubmissionEvent,
    Submitter,
)
from services.submissions import bulk, fitting, forms, trying
from services.submissions.background import site_of
from services.submissions.commands import (
    branding_pictures,
    codes,
    followups,
    form,
    identity,
    shared_links,
    submissions,
    submitters,
)
from services.submissions.documents import Documents, field_boxes
from services.submissions.evidence import bundle, statements
from services.submissions.planning import creation, one_off, preparing
from services.submissions.planning.preparing import Prepared, Workshop
from services.submissions.reading import queries
from services.submissions.rules import variables
from services.submissions.rules.overrides import Source
from services.submissions.settings import Settings
from services.submissions.site import Site, file_name
from services.submissions.storage import known_templates
from services.submissions.storage.access import require_writer

LARGEST_ID = 2**63 - 1
R = TypeVar("R")


@tells_events
class SubmissionsService:
    name = "submissions"
    context = Context(Settings)

    @handles(rpc.api.CREATE)
    def create(self, command: rpc.api.CreateSubmission) -> Submission:
        require_writer(command.actor)

        def make() -> Submission:
            template = self._template(command)
            with preparing.unless_refused(self._workshop, template):
                plan = creation.planned(command, template, self.context.settings, now())
                return self._created(command, template, plan)

        return self._once(rpc.api.CREATE, command, make)

    @handles(rpc.api.CREATE_ONE_OFF)
    def create_one_off(self, command: rpc.api.CreateOneOff) -> Submission:
        require_writer(command.actor)

        def make() -> Submission:
            one_off.refuse_early(command)
            composition = self.context.bus.call(templates.COMPOSE, one_off.wanted(command, self.context.settings))
            plan = one_off.planned(command, composition, self.context.settings, now())
            return self._created(command, composition, plan)

        return self._once(rpc.api.CREATE_ONE_OFF, command, make)

    @handles(rpc.api.TRY_CREATE)
    def try_create(self, command: rpc.api.CreateSubmission) -> DryRun:
        require_writer(command.actor)
        template = self._template(command)
        with preparing.throwing_away(self._workshop, template):
            return trying.tried(self._workshop, [(command, template)], self.context.settings, now())

    @handles(rpc.api.TRY_ONE_OFF)
    def try_one_off(self, command: rpc.api.CreateOneOff) -> DryRun:
        require_writer(command.actor)
        composition = self.context.bus.call(templates.TRY_COMPOSE, one_off.wanted(command, self.context.settings))
        with preparing.throwing_away(self._workshop, composition):
            return trying.tried(self._workshop, [(command, composition)], self.context.settings, now())

    @handles(rpc.api.CREATE_MANY)
    def create_many(self, command: rpc.api.CreateSubmissions) -> rpc.api.Submissions:
        require_writer(command.actor)
        asked, database = bulk.each(command), self.context.database
        if (done := database.look_up(bulk.remembered, asked)) is not None:
            return rpc.api.Submissions(data=done)
        bases = self._bases(command, asked)
        with preparing.unless_refused(self._workshop, *bases):
            plans = bulk.planned(command, asked, bases, self.context.settings, now())
            for number, (one, basis, plan) in enumerate(zip(asked, bases, plans, strict=True)):
                with bulk.named(command, number):
                    self._check_fit(fitting.of_plan(plan, basis, one.account, now()), plan.texts)
            made = bulk.prepared(self._workshop, command, plans)
            with preparing.keeping_all(self._workshop, bases) as kept:
                created = preparing.taken_over(
                    self._workshop,
                    made,
                    lambda files: database.write(bulk.create, asked, kept, plans, files, self._site, now()),
                )
        return rpc.api.Submissions(data=created)

    @handles(rpc.api.TRY_MANY)
    def try_many(self, command: rpc.api.CreateSubmissions) -> DryRun:
        require_writer(command.actor)
        asked = bulk.each(command)
        bases = self._bases(command, asked)
        with preparing.throwing_away(self._workshop, *bases):
            return trying.tried(
                self._workshop,
                list(zip(asked, bases, strict=True)),
                self.context.settings,
                now(),
                lambda number: bulk.named(command, number),
            )

    @handles(rpc.api.GET)
    def get(self, query: rpc.api.GetSubmission) -> Submission:
        _known(query, id="Submission")
        if "combined_document_url" in query.include:
            self._documents.combined(query)
        return self.context.database.look_up(queries.submission, query, self._site, now())

    @handles(rpc.api.LIST)
    def list(self, query: rpc.api.ListSubmissions) -> Page[Submission]:
        reads = self.context.database.look_up if queries.is_quick(query) else self.context.database.read
        return reads(queries.submissions, query, self._site, now())

    @handles(rpc.api.LIST_EVENTS)
    def list_events(self, query: rpc.api.ListEvents) -> Page[SubmissionEvent]:
        _known(query, id="Submission")
        return self.context.database.look_up(queries.events, query)

    @handles(rpc.api.UPDATE)
    def update(self, command: rpc.api.UpdateSubmission) -> Submission:
        _known(command, id="Submission")
        return self.context.database.write(submissions.update, command, self._site, now())

    @handles(rpc.api.REMOVE)
    def remove(self, command: rpc.api.RemoveSubmission) -> Removed:
        _known(command, id="Submission")
        return self.context.database.write(submissions.remove, command, self._site, now())

    @handles(rpc.api.DOCUMENTS)
    def documents(self, query: rpc.api.GetDocuments) -> SubmissionDocuments:
        _known(query, id="Submission")
        return self._documents.of(query)

    @handles(rpc.api.EVIDENCE)
    def evidence(self, query: rpc.api.GetEvidence) -> rpc.api.Evidence:
        require_writer(query.actor)
        _known(query, id="Submission")
        return self.context.database.look_up(bundle.of, query)

    @handles(rpc.receipts.SEALED_FILE)
    def sealed_file(self, query: rpc.receipts.FindSealed) -> rpc.receipts.FoundSealed:
        return self.context.database.look_up(bundle.sealed_file, query)

    @handles(rpc.api.FIELD_BOXES)
    def field_boxes(self, request: GetFieldBoxes) -> FieldBoxes:
        return self.context.database.look_up(field_boxes, request)

    @handles(rpc.api.RETRY_SEAL)
    def retry_seal(self, command: rpc.api.RetrySeal) -> Submission:
        _known(command, id="Submission")
        return self.context.database.write(submissions.retry_seal, command, self._site, now())

    @handles(rpc.api.PICTURES_IN_USE)
    def pictures_in_use(self, query: rpc.api.AccountPictures) -> rpc.api.AccountPictures:
        return rpc.api.AccountPictures(keys=self.context.database.read(branding_pictures.in_use, query.keys))

    @handles(rpc.api.GET_SUBMITTER)
    def get_submitter(self, query: rpc.api.GetSubmitter) -> Submitter:
        _known(query, id="Submitter")
        return self.context.database.look_up(queries.submitter, query, self._site, now())

    @handles(rpc.api.LIST_SUBMITTERS)
    def list_submitters(self, query: rpc.api.ListSubmitters) -> Page[Submitter]:
        return self.context.database.read(queries.submitters, query, self._site, now())

    @handles(rpc.api.UPDATE_SUBMITTER)
    def update_submitter(self, command: rpc.api.UpdateSubmitter) -> Submitter:
        require_writer(command.actor)
        _known(command, id="Submitter")
        if (done := self._remembered(rpc.api.UPDATE_SUBMITTER, command)) is not None:
            return done
        known = self.context.database.look_up(queries.own_fields, command.actor, command.id)
        change = submitters.planned(command, *known)
        self._check_fit(self.context.database.look_up(fitting.of_change, command, change, now()), change.texts)
        made = self._workshop.prepared([*change.overrides.sources, *change.branding.sources])
        settings: Settings = self.context.settings
        return preparing.taken_over(
            self._workshop,
            made,
            lambda files: self.context.database.write(
                submitters.update, command, change, files, settings, self._site, now()
            ),
        )

    @handles(rpc.form.OPEN_FORM)
    def open_form(self, visit: rpc.form.OpenForm) -> rpc.form.SigningForm:
        return self.context.database.look_up(forms.form, visit, self._site, now())

    @handles(rpc.form.FORM_FILE)
    def form_file(self, query: rpc.form.FormPage) -> rpc.form.FormFile:
        return self.context.database.look_up(forms.file_of, query, self._site, now())

    @handles(rpc.form.FORM_DRAWING)
    def form_drawing(self, query: rpc.form.DrawForm) -> FillRequest:
        return self.context.database.look_up(forms.drawing, query, self.context.settings, self._site, now())

    @handles(rpc.form.VIEW_FORM)
    def view_form(self, visit: rpc.visit.Visit) -> rpc.form.Done:
        return self.context.database.write(form.view, visit, self._site, now())

    @handles(rpc.form.SAVE_VALUES)
    def save_values(self, command: rpc.form.SaveValues) -> rpc.form.Done:
        self._check_texts(command)
        return self.context.database.write(form.save, command, self.context.settings, self._site, now())

    @handles(rpc.form.COMPLETE_FORM)
    def complete_form(self, command: rpc.form.CompleteForm) -> rpc.form.Done:
        self._check_texts(command)
        return self.context.database.write(form.complete, command, self.context.settings, self._site, now())

    @handles(rpc.form.INVITE_AND_COMPLETE)
    def invite_and_complete(self, command: rpc.form.InviteAndComplete) -> rpc.form.Done:
        self._check_texts(command)
        return self.context.database.write(form.complete, command, self.context.settings, self._site, now())

    @handles(rpc.form.DECLINE_FORM)
    def decline_form(self, command: rpc.form.DeclineForm) -> rpc.form.Done:
        return self.context.database.write(form.decline, command, self._site, now())

    @handles(rpc.form.REPORT_WRONG_RECIPIENT)
    def report_wrong_recipient(self, command: rpc.form.ReportWrongRecipient) -> rpc.form.Done:
        return self.context.database.write(form.report_wrong_recipient, command, self._site, now())

    @handles(rpc.form.ATTACH_FILE)
    def attach_file(self, command: rpc.form.AttachFile) -> Attachment:
        if (done := self._remembered(rpc.form.ATTACH_FILE, command)) is not None:
            return done
        made = self._uploaded(command)
        return preparing.taken_over(
            self._workshop,
            [made],
            lambda files: self.context.database.write(
                form.attach, command, files[0], self.context.settings, self._site, now()
            ),
        )

    @handles(rpc.links.START_FROM_LINK)
    def start_from_link(self, command: rpc.links.StartFromLink) -> rpc.links.LinkStarted:
        template = self._shared(command)
        party, contact = shared_links.party_of(template), shared_links.contact_of(command, template)
        shared_links.require_code(command, shared_links.asked_code(template, contact), self._site, now())
        creating = shared_links.wanted(command, template, party, contact)
        plan = creation.planned(creating, template, self.context.settings, now())
        self._check_fit(fitting.of_plan(plan, template, command.account, now()), plan.texts)
        made = self._workshop.prepared(plan.sources)
        more = (creating, template, plan)
        return preparing.taken_over(
            self._workshop,
            made,
            lambda files: self.context.database.write(
                shared_links.start, command, *more, files, self.context.settings, self._site, now()
            ),
        )

    @handles(rpc.links.SEND_LINK_CODE)
    def send_link_code(self, command: rpc.links.SendLinkCode) -> rpc.codes.CodeSent:
        template = self._shared(command)
        shared_links.party_of(template)
        return self.context.database.write(shared_links.send_code, command, template, self._site, now())

    @handles(rpc.links.CHECK_LINK_CODE)
    def check_link_code(self, command: rpc.links.CheckLinkCode) -> rpc.codes.PassedCode:
        template = self._shared(command)
        judged, passed = self.context.database.write(shared_links.check_code, command, template, self._site, now())
        return judged.passed(passed)

    @handles(rpc.codes.SEND_CODE)
    def send_code(self, command: rpc.codes.SendCode) -> rpc.codes.CodeSent:
        return self.context.database.write(codes.send, command, self.context.settings, self._site, now())

    @handles(rpc.codes.CHECK_CODE)
    def check_code(self, command: rpc.codes.CheckCode) -> rpc.codes.PassedCode:
        judged, passed = self.context.database.write(codes.check, command, self._site, now())
        return judged.passed(passed)

    @handles(rpc.identity.START_IDENTITY_CHECK)
    def start_identity_check(self, command: rpc.identity.StartIdentityCheck) -> rpc.identity.IdentityCheckStarted:
        return self.context.database.write(identity.start, command, self._site, now())

    @handles(rpc.identity.CLAIM_IDENTITY_CHECK)
    def claim_identity_check(self, command: rpc.identity.ClaimIdentityCheck) -> rpc.identity.IdentityCheckClaimed:
        return self.context.database.write(identity.claim, command, now())

    @handles(rpc.identity.FINISH_IDENTITY_CHECK)
    def finish_identity_check(self, command: rpc.identity.FinishIdentityCheck) -> rpc.identity.IdentityCheckFinished:
        return self.context.database.write(identity.finish, command, self._site, now())

    @handles(rpc.receipts.RECEIPT)
    def receipt(self, query: rpc.receipts.FindReceipt) -> rpc.receipts.FoundReceipt:
        return self.context.database.look_up(statements.find, query)

    @handles(health.PING["submissions"])
    def ping(self, request: health.Ping) -> health.Pong:
        return self.context.pong()

    @subscribes(events.DOCUMENTS_SEALED)
    def on_documents_sealed(self, envelope: Envelope, data: DocumentsSealed) -> None:
        self.context.database.write(followups.accept_sealed, envelope.id, data, self._site, now())

    @subscribes(events.DOCUMENTS_FAILED)
    def on_documents_failed(self, envelope: Envelope, data: DocumentsFailed) -> None:
        self.context.database.write(followups.accept_failure, envelope.id, data, self._site, now())

    @subscribes(events.STATEMENT_SIGNED)
    def on_statement_signed(self, envelope: Envelope, data: StatementSigned) -> None:
        self.context.database.write(followups.accept_statement, envelope.id, data, now())

    @subscribes(events.MAIL_SENT)
    def on_mail_sent(self, envelope: Envelope, data: MailOutcome) -> None:
        self.context.database.write(followups.accept_mail_sent, envelope.id, data, self._site, now())

    @subscribes(events.MAIL_FAILED)
    def on_mail_failed(self, envelope: Envelope, data: MailOutcome) -> None:
        self.context.database.write(followups.accept_mail_failed, envelope.id, data, now())

    @subscribes(events.SMS_SENT)
    def on_sms_sent(self, envelope: Envelope, data: PhoneOutcome) -> None:
        self.context.database.write(followups.accept_sms_sent, envelope.id, data, self._site, now())

    @subscribes(events.SMS_FAILED)
    def on_sms_failed(self, envelope: Envelope, data: PhoneOutcome) -> None:
        self.context.database.write(followups.accept_sms_failed, envelope.id, data, now())

    @subscribes(events.TEMPLATE_UPDATED)
    def on_template_updated(self, envelope: Envelope, data: PublicData) -> None:
        news = known_templates.TemplateNews.model_validate(data.data)
        self.context.database.write(known_templates.accept, envelope.id, news)

    def _shared(self, visit: rpc.links.LinkVisit) -> templates.TemplateSnapshot:
        return self.context.bus.call(templates.SHARED, templates.GetSharedLink(slug=visit.slug))

    def _created(
        self, command: rpc.api.CreateSubmission | rpc.api.CreateOneOff, basis: preparing.B, plan: creation.Plan
    ) -> Submission:
        self._check_fit(fitting.of_plan(plan, basis, command.account, now()), plan.texts)
        made = self._workshop.prepared(plan.sources)
        with preparing.keeping(self._workshop, basis) as kept:
            return preparing.taken_over(
                self._workshop,
                made,
                lambda files: self.context.database.write(
                    submissions.create, command, kept, plan, files, self._site, now()
                ),
            )

    def _once(self, call: Rpc[Any, R], command: BaseModel, make: Callable[[], R]) -> R:
        """The first answer to a request that comes again, else that of ``make``.

        One request may be under way twice: the broker gave it to a new process, and its caller repeats it. The files of the
        second are gone as soon as the first has taken them over.
        """
        if (done := self._remembered(call, command)) is not None:
            return done
        try:
            return make()
        except ServiceError as error:
            if error.code != "not_found" or (done := self._remembered(call, command)) is None:
                raise
            return done

    def _remembered(self, call: Rpc[Any, R], command: BaseModel) -> R | None:
        """The first answer to a request that comes again: what is looked at beforehand may look different by now."""
        return self.context.database.look_up(queries.remembered, call, command)

    @property
    def _site(self) -> Site:
        return site_of(self.context.settings)

    def _template(self, command: rpc.api.CreateSubmission) -> templates.TemplateSnapshot:
        """The template, filled with the request's variables where its documents ask for some."""
        template = self._snapshot(command)
        if template.archived or not variables.asked_for(template):
            return template
        return self._filled(command, template, variables.merged(command, self.context.settings.max_values_bytes))

    def _bases(
        self, command: rpc.api.CreateSubmissions, asked: Sequence[rpc.api.CreateSubmission]
    ) -> Sequence[templates.TemplateSnapshot]:
        return bulk.bases(command, asked, self.context.settings, self._snapshot, self._filled)

    def _snapshot(self, command: rpc.api.CreateSubmission) -> templates.TemplateSnapshot:
        _known(command, template_id="Template")
        wanted = templates.GetTemplate(actor=command.actor, id=command.template_id)
        return self.context.bus.call(templates.SNAPSHOT, wanted)

    def _filled(
        self, command: rpc.api.CreateSubmission, template: templates.TemplateSnapshot, given: dict[str, Any]
    ) -> templates.TemplateSnapshot:
        return self.context.bus.call(templates.FILL, variables.fill(command, template, given))

    @property
    def _workshop(self) -> Workshop:
        settings = self.context.settings
        outbound = Outbound.configured(settings)
        return Workshop(self.context.bus, self.context.blobs, outbound, settings.max_file_size)

    @property
    def _documents(self) -> Documents:
        return Documents(self.context.bus, self.context.database, self._site)

    def _check_texts(self, command: rpc.form.SaveValues) -> None:
        """What a signer sends can be drawn, and fits."""
        named = command.submitters if isinstance(command, rpc.form.InviteAndComplete) else []
        names = [(f"submitters[{index}].name", one.name) for index, one in enumerate(named) if one.name]
        preparing.check_texts(
            self.context.bus,
            [*preparing.texts_in(command.values), *names],
            lambda: self.context.database.look_up(forms.labels, command, self._site, now()),
        )
        question = self.context.database.look_up(forms.drawn, command, self._site, now())
        if question is not None:
            self._check_fit(question)

    def _check_fit(self, question: fitting.Question, texts: Sequence[tuple[str, str]] = ()) -> None:
        fitting.refuse(self.context.bus, question, texts)

    def _uploaded(self, command: rpc.form.AttachFile) -> Prepared:
        """The upload as it will be kept: pictures encoded anew, other files as they are. One that is refused is removed."""
        file, name = command.file, file_name(command.filename)
        try:
            party_uuid, kind = self.context.database.look_up(forms.check_upload, command, self._site, now())
            if file.size > self.context.settings.max_file_size:
                raise ServiceError("too_large", f"Files may be at most {self.context.settings.max_file_size} bytes")
            preparing.refuse_dangerous(name)
        except ServiceError as error:
            if error.code != "unavailable":
                self.context.blobs.delete(file.key)
            raise
        source = Source(uuid7(), party_uuid, kind, "", "file")
        if kind not in IMAGE_TYPES:
            return Prepared(source, name, file)
        picture = self._workshop.picture(file, kind)
        name = f"{name.rpartition('.')[0] or name}.{preparing.extension(picture.media_type)}"
        return Prepared(source, name, picture, upload=file)


def _known(request: Any, **nouns: str) -> None:
    """An id that no database can hold is an id of nothing."""
    for field, noun in nouns.items():
        if not 0 < getattr(request, field) <= LARGEST_ID:
            raise not_found(noun)
