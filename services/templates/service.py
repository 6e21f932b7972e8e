"""Entrypoints: contract in, one call, contract out."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from contracts import events
from contracts.detection import Detection
from contracts.dry_run import DryRun
from contracts.envelope import Envelope
from contracts.errors import ServiceError
from contracts.events import PreferencesGiven, TestModeWiped
from contracts.fields.boxes import FieldBoxes
from contracts.rpc import Rpc, health
from contracts.rpc import templates as rpc
from contracts.runtime.bus import outbox
from contracts.runtime.bus.told import tells_events
from contracts.runtime.clock import now
from contracts.runtime.data.files.staging import StagedFiles, files_of
from contracts.runtime.operations.operating import operated
from contracts.runtime.worker import Context, handles, subscribes
from contracts.types import Page, Removed, Role, Template
from services.templates import queries
from services.templates.access import require_writer
from services.templates.commands import documents as document_commands
from services.templates.commands import preferences, test_mode, trying
from services.templates.commands import templates as commands
from services.templates.intake import composing, detecting, filling, preparing
from services.templates.links import FileLinks, LinkMaker
from services.templates.rules import domain
from services.templates.settings import Settings

PREFIX = "templates/"
TRIES = 3
R = TypeVar("R")


@operated
@tells_events
class TemplatesService:
    name = "templates"
    context = Context(Settings)

    @handles(rpc.CREATE)
    def create(self, command: rpc.CreateTemplate) -> Template:
        if (done := self._answered(rpc.CREATE, command.request_id)) is not None:
            return done
        self._refuse_early(command)
        ready = self._prepared(command)
        with self._files() as files:
            adopted = [prepared.adopted(files) for prepared in ready]
            return self.context.database.write(
                commands.create, command, adopted, self._links, self.context.settings.limits(), now()
            )

    @handles(rpc.TRY_CREATE)
    def try_create(self, command: rpc.CreateTemplate) -> DryRun:
        self._refuse_early(command)
        with self._files() as files:
            with trying.telling_of_names(command):
                ready = self._prepared(command, trial=True)
            _throw_away(files, ready)
            pictures = self._detector(self._links.short(now())).pictures(ready) if command.detect_fields else None
            limits = self.context.settings.limits()
            return self.context.database.look_up(trying.create, command, ready, limits, pictures)

    @handles(rpc.COMPOSE)
    def compose(self, command: rpc.ComposeDocuments) -> rpc.Composition:
        return self._composed(command, trial=False)

    @handles(rpc.TRY_COMPOSE)
    def try_compose(self, command: rpc.ComposeDocuments) -> rpc.Composition:
        return self._composed(command, trial=True)

    def _composed(self, command: rpc.ComposeDocuments, *, trial: bool) -> rpc.Composition:
        require_writer(command.actor)
        snapshots = self.context.database.look_up(queries.snapshots, command)
        limits = self.context.settings.limits()
        count = (
            sum(len(snapshot.documents) for snapshot in snapshots)
            + len(command.documents)
            + len(command.html_documents)
        )
        domain.check_documents(count, limits)
        render = self._renderer(command.docx_variables or {})
        snapshots = [filling.filled(snapshot, render, limits) for snapshot in snapshots]
        ready = self._prepared(command, trial=trial)
        return composing.composed(command, snapshots, ready, self._joiner.joined, limits, trial=trial)

    @handles(rpc.GET)
    def get(self, request: rpc.GetTemplate) -> Template:
        return self.context.database.look_up(queries.template, request, self._links, now())

    @handles(rpc.DETECT)
    def detect(self, request: rpc.GetTemplate) -> Detection:
        snapshot = self.context.database.look_up(queries.snapshot, request)
        return self._detector(self._links.expiring(now())).of_template(snapshot)

    @handles(rpc.LIST)
    def list(self, request: rpc.ListTemplates) -> Page[Template]:
        return self.context.database.read(queries.templates, request, self._links, now())

    @handles(rpc.UPDATE)
    def update(self, command: rpc.UpdateTemplate) -> Template:
        limits = self.context.settings.limits()
        return self.context.database.write(commands.update, command, self._links, limits, now())

    @handles(rpc.REMOVE)
    def remove(self, command: rpc.RemoveTemplate) -> Removed:
        return self.context.database.write(commands.remove, command, self._links, now())

    @handles(rpc.CLONE)
    def clone(self, command: rpc.CloneTemplate) -> Template:
        return self.context.database.write(commands.clone, command, self._links, now())

    @handles(rpc.TRY_CLONE)
    def try_clone(self, command: rpc.CloneTemplate) -> DryRun:
        return self.context.database.look_up(trying.clone, command)

    @handles(rpc.MERGE)
    def merge(self, command: rpc.MergeTemplates) -> Template:
        limits = self.context.settings.limits()
        return self.context.database.write(document_commands.merge, command, self._links, limits, now())

    @handles(rpc.TRY_MERGE)
    def try_merge(self, command: rpc.MergeTemplates) -> DryRun:
        return self.context.database.look_up(trying.merge, command, self.context.settings.limits())

    @handles(rpc.CHANGE_DOCUMENTS)
    def change_documents(self, command: rpc.ChangeDocuments) -> Template:
        ready: Sequence[preparing.Ready | None] | None = None
        for _ in range(TRIES):
            if (done := self._answered(rpc.CHANGE_DOCUMENTS, command.request_id)) is not None:
                return done
            template = self.context.database.look_up(document_commands.present, command)
            if ready is None:
                document_commands.refuse_early(command, template)
                ready = self._prepared_changes(command)
            if (changed := self._changed(command, template, ready)) is not None:
                return changed
        raise ServiceError("unavailable", "The template is being changed by others. Try again.")

    def _changed(
        self, command: rpc.ChangeDocuments, template: rpc.TemplateSnapshot, ready: Sequence[preparing.Ready | None]
    ) -> Template | None:
        """None when the template was changed in the meantime."""
        exchange = document_commands.plan_exchange(command, template, ready, self.context.settings.limits())
        if command.merge and len(exchange.documents) > 1:
            exchange = document_commands.in_one(
                exchange, self._joiner.joined(exchange.documents, template.name, "merge")
            )
        with self._files() as files:
            adopted = replace(exchange, documents=files.adopt_documents(exchange.documents))
            changed = self.context.database.write(document_commands.change, command, adopted, self._links, now())
            if changed is None:
                files.discard_copies()
            return changed

    @handles(rpc.TRY_CHANGE_DOCUMENTS)
    def try_change_documents(self, command: rpc.ChangeDocuments) -> DryRun:
        template = self.context.database.look_up(document_commands.present, command)
        document_commands.refuse_early(command, template)
        with self._files() as files:
            ready = self._prepared_changes(command, trial=True)
            _throw_away(files, [prepared for prepared in ready if prepared is not None])
            limits = self.context.settings.limits()
            exchange = document_commands.plan_exchange(command, template, ready, limits, trial=True)
            if command.merge and len(exchange.documents) > 1:
                whole = self._joiner.joined(exchange.documents, template.name, "merge")
                for file in files_of([whole]):
                    files.track(file)
                exchange = document_commands.in_one(exchange, whole)
            return self.context.database.look_up(trying.change, command, exchange)

    @handles(rpc.SHARED)
    def shared(self, request: rpc.GetSharedLink) -> rpc.TemplateSnapshot:
        return self.context.database.look_up(queries.shared, request)

    @handles(rpc.SNAPSHOT)
    def snapshot(self, request: rpc.GetTemplate) -> rpc.TemplateSnapshot:
        return self.context.database.look_up(queries.snapshot, request)

    @handles(rpc.FIELD_BOXES)
    def field_boxes(self, request: rpc.GetFieldBoxes) -> FieldBoxes:
        if not request.detected:
            return self.context.database.look_up(queries.field_boxes, request)
        snapshot = self.context.database.look_up(queries.snapshot_for_link, request)
        return self._detector(self._links.expiring(now())).boxes(snapshot, request.document_uuid)

    @handles(rpc.FILL)
    def fill(self, request: rpc.FillTemplate) -> rpc.TemplateSnapshot:
        snapshot = self.context.database.look_up(queries.snapshot, request)
        return filling.filled(snapshot, self._renderer(request.variables), self.context.settings.limits())

    @subscribes(events.PREFERENCES_GIVEN)
    def on_preferences_given(self, envelope: Envelope, data: PreferencesGiven) -> None:
        self.context.database.write(preferences.keep, envelope.id, data, self._links, now())

    @subscribes(events.TEST_MODE_WIPED)
    def on_test_mode_wiped(self, envelope: Envelope, data: TestModeWiped) -> None:
        self.context.database.write(test_mode.wipe, envelope.id, data, now())

    @handles(health.PING["templates"])
    def ping(self, request: health.Ping) -> health.Pong:
        return self.context.pong()

    def _prepared(self, intake: rpc.Intake, *, trial: bool = False) -> Sequence[preparing.Ready]:
        return self._prepare(preparing.sources(intake), trial=trial)

    def _prepared_changes(
        self, command: rpc.ChangeDocuments, *, trial: bool = False
    ) -> Sequence[preparing.Ready | None]:
        """One for each entry; None where a document is removed."""
        sources = preparing.sources_of_changes(command.documents)
        ready = iter(self._prepare([source for source in sources if source is not None], trial=trial))
        return [None if source is None else next(ready) for source in sources]

    def _prepare(self, sources: Sequence[preparing.Source], *, trial: bool) -> Sequence[preparing.Ready]:
        settings: Settings = self.context.settings
        return preparing.prepare(
            self.context.bus,
            sources,
            concurrency=settings.prepare_concurrency,
            seconds=settings.prepare_seconds,
            trial=trial,
        )

    def _files(self) -> StagedFiles:
        """Stage files. What rendering made stays where it made it until the sweep, the uploads are the caller's."""
        return StagedFiles(self.context.blobs, PREFIX)

    def _answered(self, call: Rpc[Any, R], request_id: str) -> R | None:
        return self.context.database.look_up(outbox.answered, call, request_id)

    def _renderer(self, variables: dict[str, Any]) -> filling.Render:
        return filling.renderer(self.context.bus, self.context.blobs, variables)

    def _detector(self, links: FileLinks) -> detecting.Detector:
        return detecting.Detector(self.context.bus, links)

    @property
    def _joiner(self) -> composing.Joiner:
        return composing.Joiner(self.context.bus, self.context.blobs)

    @property
    def _links(self) -> LinkMaker:
        settings: Settings = self.context.settings
        return LinkMaker(settings.base_url, settings.link_secret.get_secret_value(), settings.file_link_ttl)

    def _refuse_early(self, command: rpc.CreateTemplate) -> None:
        """Refuse what is certain to be refused, before it keeps rendering busy. The transaction checks again."""
        require_writer(command.actor)
        documents = len(command.documents) + len(command.html_documents)
        domain.check_documents(documents, self.context.settings.limits())
        if command.external_id and command.actor.role != Role.ADMIN:
            holder = self.context.database.look_up(queries.holder_of, command.external_id.strip(), command.actor)
            if holder not in (None, command.actor.user_id):
                raise ServiceError("forbidden", "Only its author or an admin may change this template.")


def _throw_away(files: StagedFiles, ready: Sequence[preparing.Ready]) -> None:
    """Remove what rendering made of the uploads with a dry run; those are the caller's."""
    for prepared in ready:
        if prepared.file.key != prepared.original.key:
            files.track(prepared.file)
