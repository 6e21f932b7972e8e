"""Creating submissions: find what they are made from, plan, check that values fit, prepare files, adopt them, write.

Up to the transaction everything may be done in vain; ``StagedFiles`` removes what then nobody needs.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import BaseModel

from contracts.dry_run import DryRun
from contracts.errors import ServiceError
from contracts.rpc import Rpc, templates
from contracts.rpc.submissions import api as rpc
from contracts.rpc.templates import Composition, TemplateSnapshot
from contracts.runtime.clock import now
from contracts.runtime.data.staging import StagedFiles, files_of
from contracts.runtime.worker import handles
from contracts.types import Submission
from services.submissions import bulk, fitting, stamping, trying
from services.submissions.commands import submissions
from services.submissions.entrypoints.base import Entrypoints, refuse_impossible_ids
from services.submissions.planning import creation, one_off, plan
from services.submissions.planning.first_pages import FirstPages
from services.submissions.planning.preparing import adopted
from services.submissions.rules.values import variables
from services.submissions.storage.access import require_writer

Basis = TypeVar("Basis", Composition, TemplateSnapshot)
R = TypeVar("R")


class Creation(Entrypoints):
    """Calls of API users that make submissions, and their dry runs."""

    first_pages = FirstPages()

    @handles(rpc.CREATE)
    def create(self, command: rpc.CreateSubmission) -> Submission:
        require_writer(command.actor)

        def make() -> Submission:
            template = self._template(command)
            with self._staged(template) as files:
                plan = creation.plan_submission(command, template, self.context.settings, now())
                return self._created(files, command, template, plan)

        return self._once(rpc.CREATE, command, make)

    @handles(rpc.CREATE_ONE_OFF)
    def create_one_off(self, command: rpc.CreateOneOff) -> Submission:
        require_writer(command.actor)

        def make() -> Submission:
            one_off.refuse_early(command)
            composition = self.context.bus.call(
                templates.COMPOSE, one_off.compose_request(command, self.context.settings)
            )
            with self._staged(composition) as files:
                plan = one_off.plan_submission(command, composition, self.context.settings, now())
                return self._created(files, command, composition, plan)

        return self._once(rpc.CREATE_ONE_OFF, command, make)

    @handles(rpc.CREATE_MANY)
    def create_many(self, command: rpc.CreateSubmissions) -> rpc.Submissions:
        require_writer(command.actor)
        requests = bulk.single_requests(command)
        if (done := self.context.database.look_up(bulk.remembered, requests)) is not None:
            return rpc.Submissions(data=done)
        snapshots = self._templates(command, requests)
        with self._staged(*snapshots) as files:
            plans = bulk.plan_all(command, requests, snapshots, self.context.settings, now())
            for number, (request, template, plan) in enumerate(zip(requests, snapshots, plans, strict=True)):
                with bulk.named(command, number):
                    self._refuse_misfits(fitting.of_plan(plan, template, request.account, now()), plan.texts)
                    stamping.refuse(self.context.bus, request.dutystamp, template.documents, plan.fields)
            prepared = bulk.prepare(self._preparer, files, command, plans)
            self.first_pages.note(self.context.bus, zip(plans, snapshots, strict=True), requests[0].account)
            adopted_templates = [_with_adopted_documents(files, template) for template in snapshots]
            return rpc.Submissions(
                data=self._write(bulk.create, requests, adopted_templates, plans, adopted(files, prepared))
            )

    @handles(rpc.TRY_CREATE)
    def try_create(self, command: rpc.CreateSubmission) -> DryRun:
        require_writer(command.actor)
        template = self._template(command, trial=True)
        with self._thrown_away(template):
            return trying.try_out(self._preparer, self._files, [(command, template)], self.context.settings, now())

    @handles(rpc.TRY_ONE_OFF)
    def try_one_off(self, command: rpc.CreateOneOff) -> DryRun:
        require_writer(command.actor)
        settings = self.context.settings
        try:
            composition = self.context.bus.call(templates.TRY_COMPOSE, one_off.compose_request(command, settings))
        except ServiceError as refused:
            if refused.code != "invalid":
                raise
            raise trying.also_refused(refused, command, None, settings, now()) from refused
        with self._thrown_away(composition):
            return trying.try_out(self._preparer, self._files, [(command, composition)], self.context.settings, now())

    @handles(rpc.TRY_MANY)
    def try_many(self, command: rpc.CreateSubmissions) -> DryRun:
        require_writer(command.actor)
        requests = bulk.single_requests(command)
        snapshots = self._templates(command, requests)
        with self._thrown_away(*snapshots):
            return trying.try_out(
                self._preparer,
                self._files,
                list(zip(requests, snapshots, strict=True)),
                self.context.settings,
                now(),
                lambda number: bulk.named(command, number),
            )

    def _created(
        self, files: StagedFiles, command: rpc.CreateSubmission | rpc.CreateOneOff, basis: Basis, plan: plan.Plan
    ) -> Submission:
        self._refuse_misfits(fitting.of_plan(plan, basis, command.account, now()), plan.texts)
        stamping.refuse(self.context.bus, command.dutystamp, basis.documents, plan.fields)
        prepared = self._preparer.prepare(files, plan.sources)
        self.first_pages.note(self.context.bus, [(plan, basis)], command.account)
        adopted_basis = _with_adopted_documents(files, basis)
        return self._write(submissions.create, command, adopted_basis, plan, adopted(files, prepared))

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

    @contextmanager
    def _thrown_away(self, *bases: Composition | TemplateSnapshot) -> Iterator[None]:
        """Remove what came with a dry run, or was made for it, however it ends."""
        with self._files() as files:
            for basis in bases:
                for file in files_of(basis.documents):
                    files.made(file)
            yield

    def _template(self, command: rpc.CreateSubmission, *, trial: bool = False) -> TemplateSnapshot:
        """The template, filled with the request's variables where its documents ask for some. With ``trial`` a refusal of these
        names what else is wrong with the request."""
        template, settings = self._snapshot(command), self.context.settings
        if template.archived or not variables.has_variables(template):
            return template
        try:
            return self._filled(command, template, variables.merged(command, settings.max_values_bytes))
        except ServiceError as refused:
            if not trial or refused.code != "invalid":
                raise
            raise trying.also_refused(refused, command, template, settings, now()) from refused

    def _templates(
        self, command: rpc.CreateSubmissions, requests: Sequence[rpc.CreateSubmission]
    ) -> Sequence[TemplateSnapshot]:
        return bulk.bases(command, requests, self.context.settings, self._snapshot, self._filled)

    def _snapshot(self, command: rpc.CreateSubmission) -> TemplateSnapshot:
        refuse_impossible_ids(command, template_id="Template")
        request = templates.GetTemplate(actor=command.actor, id=command.template_id)
        return self.context.bus.call(templates.SNAPSHOT, request)

    def _filled(
        self, command: rpc.CreateSubmission, template: TemplateSnapshot, values: dict[str, Any]
    ) -> TemplateSnapshot:
        return self.context.bus.call(templates.FILL, variables.fill(command, template, values))


def _with_adopted_documents(files: StagedFiles, basis: Basis) -> Basis:
    """Return the same with documents that the submission may name."""
    return basis.model_copy(update={"documents": files.adopt_documents(basis.documents)})
