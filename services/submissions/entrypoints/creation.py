"""Calls that make submissions; how one is made is in ``creating.single``."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from contracts.dry_run import DryRun
from contracts.errors import ServiceError
from contracts.rpc import templates
from contracts.rpc.submissions import api as rpc
from contracts.rpc.templates import Composition, TemplateSnapshot
from contracts.runtime.clock import now
from contracts.runtime.data.files.staging import files_of
from contracts.runtime.worker import handles
from contracts.types import Submission
from services.submissions.commands import submissions
from services.submissions.creating import bulk, fitting, prepared, stamping, trying
from services.submissions.creating.single import with_adopted_documents
from services.submissions.entrypoints.base import Entrypoints, refuse_impossible_ids
from services.submissions.planning import one_off
from services.submissions.planning.plan import Basis, Plan
from services.submissions.planning.preparing import Prepared, adopted
from services.submissions.storage.access import require_writer

R = TypeVar("R")


class Creation(Entrypoints):
    """Calls of API users that make submissions, and their dry runs."""

    @handles(rpc.CREATE)
    def create(self, command: rpc.CreateSubmission) -> Submission:
        require_writer(command.actor)

        def make() -> Submission:
            refuse_impossible_ids(command, template_id="Template")
            creator = self._creator
            unfilled_template = creator.snapshot(command)
            prepared.require_same(command, unfilled_template)
            template = creator.with_variables(command, unfilled_template)
            return creator.from_template(command, template, self._written(command))

        return self._once(rpc.CREATE, command, make)

    @handles(rpc.CREATE_ONE_OFF)
    def create_one_off(self, command: rpc.CreateOneOff) -> Submission:
        require_writer(command.actor)

        def make() -> Submission:
            one_off.refuse_early(command)
            composition = self.context.bus.call(
                templates.COMPOSE, one_off.compose_request(command, self.context.settings)
            )
            creator = self._creator
            with creator.staged(composition) as files:
                plan = one_off.plan_submission(command, composition, self.context.settings, now())
                return creator.create_planned(files, command, composition, plan, self._written(command))

        return self._once(rpc.CREATE_ONE_OFF, command, make)

    @handles(rpc.CREATE_MANY)
    def create_many(self, command: rpc.CreateSubmissions) -> rpc.Submissions:
        require_writer(command.actor)
        requests = bulk.single_requests(command)
        if (done := self.context.database.look_up(bulk.remembered, requests)) is not None:
            return rpc.Submissions(data=done)
        snapshots = self._templates(command, requests)
        with self._creator.staged(*snapshots) as files:
            plans = bulk.plan_all(command, requests, snapshots, self.context.settings, now())
            for number, (request, template, plan) in enumerate(zip(requests, snapshots, plans, strict=True)):
                with bulk.naming_keys(command, number):
                    self._refuse_misfits(fitting.of_plan(plan, template, request.account, now()), plan.texts)
                    stamping.refuse(self.context.bus, request.dutystamp, template.documents, plan.fields)
            ready = bulk.prepare(self._preparer, files, command, plans)
            self.first_pages.note(self.context.bus, zip(plans, snapshots, strict=True), requests[0].account)
            adopted_templates = [with_adopted_documents(files, template) for template in snapshots]
            return rpc.Submissions(
                data=self._write(bulk.create, requests, adopted_templates, plans, adopted(files, ready))
            )

    @handles(rpc.TRY_CREATE)
    def try_create(self, command: rpc.CreateSubmission) -> DryRun:
        require_writer(command.actor)
        template = self._template_to_try(command, self._snapshot(command))
        with self._thrown_away(template):
            return trying.try_out(self._preparer, self._files, [(command, template)], self.context.settings, now())

    @handles(rpc.PREPARE)
    def prepare(self, command: rpc.CreateSubmission) -> rpc.PreparedSubmission:
        require_writer(command.actor)
        unfilled_template = self._snapshot(command)
        template = self._template_to_try(command, unfilled_template)
        with self._thrown_away(template):
            settings = self.context.settings
            return prepared.prepared(self._preparer, self._files, command, unfilled_template, template, settings, now())

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
                partial(bulk.naming_keys, command),
                partial(bulk.with_places, command),
            )

    def _written(
        self, command: rpc.CreateSubmission | rpc.CreateOneOff
    ) -> Callable[[Basis, Plan, Sequence[Prepared]], Submission]:
        """Return what writes the submission that ``command`` asks for."""
        return lambda basis, plan, prepared: self._write(submissions.create, command, basis, plan, prepared)

    @contextmanager
    def _thrown_away(self, *bases: Composition | TemplateSnapshot) -> Iterator[None]:
        """Remove what came with a dry run, or was made for it, however it ends."""
        with self._files() as files:
            for basis in bases:
                for file in files_of(basis.documents):
                    files.track(file)
            yield

    def _template_to_try(self, command: rpc.CreateSubmission, template: TemplateSnapshot) -> TemplateSnapshot:
        """The template, filled with the request's variables where its documents ask for some. A refusal of these names what
        else is wrong with the request."""
        try:
            return self._creator.with_variables(command, template)
        except ServiceError as refused:
            if refused.code != "invalid":
                raise
            raise trying.also_refused(refused, command, template, self.context.settings, now()) from refused

    def _templates(
        self, command: rpc.CreateSubmissions, requests: Sequence[rpc.CreateSubmission]
    ) -> Sequence[TemplateSnapshot]:
        return bulk.bases(command, requests, self.context.settings, self._snapshot, self._creator.filled)

    def _snapshot(self, command: rpc.CreateSubmission) -> TemplateSnapshot:
        refuse_impossible_ids(command, template_id="Template")
        return self._creator.snapshot(command)
