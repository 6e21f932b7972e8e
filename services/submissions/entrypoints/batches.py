"""Calls of API users about batches (docs/bulk.md)."""

from datetime import timedelta

from contracts.errors import invalid
from contracts.rpc import templates
from contracts.rpc.submissions import batches as rpc
from contracts.rpc.submissions import people as people_rpc
from contracts.rpc.templates import TemplateSnapshot
from contracts.runtime.clock import now
from contracts.runtime.worker import handles
from contracts.types import Actor, Page
from services.submissions.batches import checking, commands, people, queries
from services.submissions.entrypoints.base import Entrypoints, refuse_impossible_ids
from services.submissions.storage.access import require_writer


class Batches(Entrypoints):
    """Batches, from the file that the gateway has read on."""

    @handles(rpc.CHECK_ROWS)
    def check_batch_rows(self, command: rpc.CheckRows) -> rpc.CheckedRows:
        require_writer(command.actor)
        self._rate(command.rate)
        template = self._template_of(command.actor, command.settings)
        return checking.check(command, template, self.context.settings, now())

    @handles(rpc.CREATE)
    def create_batch(self, command: rpc.CreateBatch) -> rpc.Batch:
        require_writer(command.actor)

        def make() -> rpc.Batch:
            rate = self._rate(command.rate)
            template = self._template_of(command.actor, command.settings)
            drafts = commands.read(self.context.blobs.get(command.rows))
            return self.context.database.write(commands.create, command, drafts, template, rate, now())

        return self._once(rpc.CREATE, command, make)

    @handles(rpc.LIST)
    def list_batches(self, query: rpc.ListBatches) -> Page[rpc.Batch]:
        require_writer(query.actor)
        return self.context.database.read(queries.batches, query)

    @handles(rpc.GET)
    def get_batch(self, query: rpc.GetBatch) -> rpc.Batch:
        require_writer(query.actor)
        refuse_impossible_ids(query, id="Batch")
        return self.context.database.read(queries.batch, query)

    @handles(rpc.LIST_ROWS)
    def list_batch_rows(self, query: rpc.ListBatchRows) -> Page[rpc.BatchRow]:
        require_writer(query.actor)
        refuse_impossible_ids(query, id="Batch")
        return self.context.database.read(queries.rows, query, self._site)

    @handles(rpc.CANCEL)
    def cancel_batch(self, command: rpc.ChangeBatch) -> rpc.Batch:
        require_writer(command.actor)
        refuse_impossible_ids(command, id="Batch")
        keep_for = timedelta(days=self.context.settings.batches_kept_days)
        return self.context.database.write(commands.cancel, command, keep_for, now())

    @handles(rpc.RETRY)
    def retry_batch(self, command: rpc.ChangeBatch) -> rpc.Batch:
        require_writer(command.actor)
        refuse_impossible_ids(command, id="Batch")
        return self.context.database.write(commands.retry, command, now())

    @handles(people_rpc.UNSENT_OF_PERSON)
    def unsent_of_person(self, query: people_rpc.FindUnsent) -> people_rpc.UnsentRows:
        return self.context.database.read(people.unsent, query)

    @handles(people_rpc.REMOVE_UNSENT)
    def remove_unsent(self, command: people_rpc.RemoveUnsent) -> people_rpc.RemovedUnsent:
        return self.context.database.write(people.remove, command, now())

    def _template_of(self, actor: Actor, settings: rpc.BatchSettings) -> TemplateSnapshot:
        refuse_impossible_ids(settings, template_id="Template")
        return self.context.bus.call(templates.SNAPSHOT, templates.GetTemplate(actor=actor, id=settings.template_id))

    def _rate(self, requested: int | None) -> int:
        most = self.context.settings.batch_rows_per_minute
        if requested is not None and not 1 <= requested <= most:
            reason = f"must be from 1 to {most}"
            raise invalid(f"rate {reason}", "rate", reason)
        return most if requested is None else requested
