"""Make one submission, up to the transaction: find what it is made from, plan, check that values fit, prepare files, adopt
them.

Until the transaction everything may be done in vain; ``StagedFiles`` removes what then nobody needs. Whoever answers calls does
this, and whoever works through batches.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from contracts.rpc import templates
from contracts.rpc.submissions import api as rpc
from contracts.rpc.templates import Composition, TemplateSnapshot
from contracts.runtime.clock import now
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.data.files.staging import StagedFiles, files_of
from contracts.runtime.http.outbound import Outbound
from services.submissions.creating import fitting, stamping
from services.submissions.planning import creation
from services.submissions.planning.first_pages import FirstPages
from services.submissions.planning.plan import Plan
from services.submissions.planning.preparing import PREFIX, Bus, Prepared, Preparer, adopted
from services.submissions.rules.values import variables
from services.submissions.settings import Settings

Basis = TypeVar("Basis", Composition, TemplateSnapshot)
R = TypeVar("R")

Write = Callable[[Basis, Plan, Sequence[Prepared]], R]
"""Carries out the transaction: what it is made from, with documents that a record may name; the plan; the files."""


@dataclass(frozen=True)
class Creator:
    """Whom to ask, and where files are."""

    bus: Bus
    blobs: BlobStore
    settings: Settings
    first_pages: FirstPages

    @property
    def preparer(self) -> Preparer:
        return Preparer(self.bus, Outbound.configured(self.settings), self.settings.max_file_size)

    def snapshot(self, command: rpc.CreateSubmission) -> TemplateSnapshot:
        """Ask for the template as it is now. Raises ServiceError("not_found") where the actor may not use it."""
        request = templates.GetTemplate(actor=command.actor, id=command.template_id)
        return self.bus.call(templates.SNAPSHOT, request)

    def with_variables(self, command: rpc.CreateSubmission, template: TemplateSnapshot) -> TemplateSnapshot:
        """Return the template, filled with the request's variables where its documents ask for some."""
        if template.archived or not variables.has_variables(template):
            return template
        return self.filled(command, template, variables.merged(command, self.settings.max_values_bytes))

    def filled(
        self, command: rpc.CreateSubmission, template: TemplateSnapshot, values: dict[str, Any]
    ) -> TemplateSnapshot:
        return self.bus.call(templates.FILL, variables.fill(command, template, values))

    def from_template(
        self, command: rpc.CreateSubmission, template: TemplateSnapshot, write: Write[TemplateSnapshot, R]
    ) -> R:
        """Make the submission from the template as it is (``with_variables``); ``write`` has its transaction."""
        with self.staged(template) as files:
            plan = creation.plan_submission(command, template, self.settings, now())
            return self.create_planned(files, command, template, plan, write)

    def create_planned(
        self,
        files: StagedFiles,
        command: rpc.CreateSubmission | rpc.CreateOneOff,
        basis: Basis,
        plan: Plan,
        write: Write[Basis, R],
    ) -> R:
        """Make what is planned. Raises ServiceError for what nobody could draw, and for pictures that cannot be had."""
        fitting.refuse(self.bus, fitting.of_plan(plan, basis, command.account, now()), plan.texts)
        stamping.refuse(self.bus, command.dutystamp, basis.documents, plan.fields)
        prepared = self.preparer.prepare(files, plan.sources)
        self.first_pages.note(self.bus, [(plan, basis)], command.account)
        return write(with_adopted_documents(files, basis), plan, adopted(files, prepared))

    @contextmanager
    def staged(self, *bases: Composition | TemplateSnapshot) -> Iterator[StagedFiles]:
        """The files of a request, with the documents that came along or were filled for it."""
        with self.files() as files:
            for basis in bases:
                files.receive(*files_of(basis.documents))
            yield files

    def files(self) -> StagedFiles:
        return StagedFiles(self.blobs, PREFIX)


def with_adopted_documents(files: StagedFiles, basis: Basis) -> Basis:
    """Return the same with documents that the submission may name."""
    return basis.model_copy(update={"documents": files.adopt_documents(basis.documents)})
