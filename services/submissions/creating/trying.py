"""``dry_run``: what a creating call would make, with everything that it would be refused for. Nothing is stored."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from contracts.dry_run import DryRun, DryRunDocument, DryRunSubmitter
from contracts.errors import ServiceError
from contracts.rpc.submissions.api import NewSubmission
from contracts.rpc.templates import Composition
from contracts.runtime.data.files.staging import StagedFiles
from services.submissions.creating import bulk, fitting, stamping
from services.submissions.planning import creation
from services.submissions.planning.creation import Limits
from services.submissions.planning.plan import Basis, Plan
from services.submissions.planning.preparing import Preparer, check_texts


def try_out(
    preparer: Preparer,
    stage: Callable[[], StagedFiles],
    requests: Sequence[tuple[NewSubmission, Basis]],
    limits: Limits,
    now: datetime,
    naming_keys: Callable[[int], contextlib.AbstractContextManager[None]] = lambda _: contextlib.nullcontext(),
    with_places: Callable[[int, Plan], Plan] = lambda _, plan: plan,
) -> DryRun:
    """Refusals that name fields become ``problems``, all of them: one does not keep the others from being looked for. Pictures
    are fetched and drawn, and thrown away. Of several submissions in one request all submitters are told; ``naming_keys`` and
    ``with_places`` give the keys of one of them their names in the request."""
    basis = requests[0][1]
    problems = list(basis.problems) if isinstance(basis, Composition) else []
    plans: list[Plan] = []
    for number, (command, its_basis) in enumerate(requests):
        telling = _Telling(problems, naming_keys, number)
        plan: Plan | None = None
        with telling.refusals():
            plan, faults = creation.plan_with_problems(command, its_basis, limits, now)
            faults.refuse()
            plans.append(with_places(number, plan))
        if plan is None:
            continue
        with telling.refusals():
            check_texts(preparer.bus, plan.texts)
        with telling.refusals():
            question = fitting.of_plan(plan, its_basis, command.account, now)
            fitting.refuse(preparer.bus, question.without(telling.fields))
        with telling.refusals():
            stamping.refuse(preparer.bus, command.dutystamp, its_basis.documents, plan.fields)
        for source in plan.sources[: limits.max_attachments]:
            with telling.refusals(), stage() as files:
                preparer.prepare(files, [source])
    problems = bulk.distinct(problems)
    fields = plans[0].fields if plans else basis.fields
    return DryRun(
        accepted=not problems,
        problems=problems,
        warnings=[dict(warning) for plan in plans for submitter in plan.submitters for warning in submitter.warnings],
        report=basis.report if isinstance(basis, Composition) else [],
        name=plans[0].name if plans and plans[0].name else basis.name,
        roles=[party.name for party in basis.parties],
        fields=fields,
        documents=[
            DryRunDocument(
                name=document.name, pages=document.pages, signed=document.signed, sha256=document.original.sha256
            )
            for document in basis.documents
        ],
        submitters=[submitter for plan in plans for submitter in _submitters(plan)],
    )


def also_refused(
    refused: ServiceError, command: NewSubmission, basis: Basis | None, limits: Limits, now: datetime
) -> ServiceError:
    """Add to ``refused``, which is about what the submission is made from, what is wrong with the request whatever that is.
    ``basis`` None: nothing is known of its parties."""
    nothing = Composition(parties=[], fields=[], documents=[])
    try:
        _, faults = creation.plan_with_problems(command, basis or nothing, limits, now)
    except ServiceError:
        return refused
    more = [fault for fault in faults.entries if basis is not None or fault["field"] != creation.field_of(nothing)]
    return ServiceError(refused.code, refused.message, [*refused.details, *more])


class _Telling:
    """Collects what one submission would be refused for in ``problems``; ``fields`` are those that it is about, called as the
    submission itself calls them."""

    def __init__(
        self,
        problems: list[dict[str, str]],
        naming_keys: Callable[[int], contextlib.AbstractContextManager[None]],
        number: int,
    ) -> None:
        self.fields: set[str] = set()
        self._problems, self._naming_keys, self._number = problems, naming_keys, number

    @contextlib.contextmanager
    def refusals(self) -> Iterator[None]:
        try:
            with self._naming_keys(self._number), self._noting():
                yield
        except ServiceError as refused:
            if refused.code != "invalid":
                raise
            details = [{key: str(value) for key, value in detail.items()} for detail in refused.details]
            self._problems += details or [{"field": "", "reason": refused.message}]

    @contextlib.contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except ServiceError as refused:
            self.fields.update(str(detail.get("field", "")) for detail in refused.details)
            raise


def _submitters(plan: Plan) -> Iterable[DryRunSubmitter]:
    return [
        DryRunSubmitter(
            role=submitter.party.name,
            email=submitter.email,
            name=submitter.name,
            phone=submitter.phone,
            order=submitter.group,
            completed=submitter.completed,
            fields=[field.name for field in plan.fields if field.submitter_uuid == submitter.party.uuid],
        )
        for submitter in plan.submitters
    ]
