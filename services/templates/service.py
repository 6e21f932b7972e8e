"""Entrypoints: contract in, one call, contract out."""

from dataclasses import replace

from contracts import events
from contracts.errors import ServiceError
from contracts.events import Envelope, PreferencesGiven
from contracts.rpc import health
from contracts.rpc import templates as rpc
from contracts.runtime import outbox
from contracts.runtime.clock import now
from contracts.runtime.worker import Context, handles, subscribes
from contracts.types import Page, Removed, Role, Template
from services.templates import commands, domain, preparing, queries
from services.templates.access import require_writer
from services.templates.links import LinkMaker
from services.templates.settings import Settings

PREFIX = "templates/"


class TemplatesService:
    name = "templates"
    context = Context(Settings)

    @handles(rpc.CREATE)
    def create(self, command: rpc.CreateTemplate) -> Template:
        settings: Settings = self.context.settings
        done = self.context.database.look_up(outbox.answered, rpc.CREATE, command.request_id)
        if done is not None:
            return done
        self._refuse_early(command)
        ready = preparing.prepare(
            self.context.bus,
            preparing.sources(command),
            concurrency=settings.prepare_concurrency,
            seconds=settings.prepare_seconds,
        )
        adopted = [self._adopted(one) for one in ready]
        try:
            return self.context.database.write(commands.create, command, adopted, self._links, settings.limits(), now())
        except ServiceError as refused:
            if refused.status < 500:
                self._discard(adopted)
            raise

    def _adopted(self, one: preparing.Ready) -> preparing.Ready:
        """With files of our own. What rendering made stays where it made it until the sweep, the uploads are the caller's."""
        original = self.context.blobs.adopt(one.original, PREFIX)
        same = one.file.key == one.original.key
        return replace(one, original=original, file=original if same else self.context.blobs.adopt(one.file, PREFIX))

    def _discard(self, adopted: list[preparing.Ready]) -> None:
        """Nobody will refer to them."""
        for key in {file.key for one in adopted for file in (one.file, one.original)}:
            self.context.blobs.delete(key)

    @handles(rpc.GET)
    def get(self, request: rpc.GetTemplate) -> Template:
        return self.context.database.look_up(queries.template, request, self._links, now())

    @handles(rpc.LIST)
    def list(self, request: rpc.ListTemplates) -> Page[Template]:
        return self.context.database.read(queries.templates, request, self._links, now())

    @handles(rpc.UPDATE)
    def update(self, command: rpc.UpdateTemplate) -> Template:
        limits = self.context.settings.limits()
        return self.context.database.write(commands.update, command, self._links, limits, now())

    @handles(rpc.REMOVE)
    def remove(self, command: rpc.RemoveTemplate) -> Removed:
        return self.context.database.write(commands.remove, command, now())

    @handles(rpc.CLONE)
    def clone(self, command: rpc.CloneTemplate) -> Template:
        return self.context.database.write(commands.clone, command, self._links, now())

    @handles(rpc.SNAPSHOT)
    def snapshot(self, request: rpc.GetTemplate) -> rpc.TemplateSnapshot:
        return self.context.database.look_up(queries.snapshot, request)

    @subscribes(events.PREFERENCES_GIVEN)
    def on_preferences_given(self, envelope: Envelope, data: PreferencesGiven) -> None:
        self.context.database.write(commands.keep_preferences, envelope.id, data, self._links, now())

    @handles(health.PING["templates"])
    def ping(self, request: health.Ping) -> health.Pong:
        return self.context.pong()

    @property
    def _links(self) -> LinkMaker:
        settings: Settings = self.context.settings
        return LinkMaker(settings.base_url, settings.link_secret.get_secret_value(), settings.file_link_ttl)

    def _refuse_early(self, command: rpc.CreateTemplate) -> None:
        """What is certain to be refused should not keep rendering busy first. The transaction checks again."""
        require_writer(command.actor)
        documents = len(command.documents) + len(command.html_documents)
        domain.check_documents(documents, self.context.settings.limits())
        if command.external_id and command.actor.role != Role.ADMIN:
            holder = self.context.database.look_up(queries.holder_of, command.external_id.strip())
            if holder not in (None, command.actor.user_id):
                raise ServiceError("forbidden", "Only its author or an admin may change this template")
