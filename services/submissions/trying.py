"""``dry_run``: what a creating call would make, with everything that it would be refused for. Nothing is stored."""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from contracts.dry_run import DryRun, DryRunDocument, DryRunSubmitter
from contracts.errors import ServiceError
from contracts.rpc.submissions.api import NewSubmission
from contracts.rpc.templates import Composition
from contracts.runtime.data.staging import StagedFiles
from services.submissions import bulk, fitting, stamping
from services.submissions.planning import creation
from services.submissions.planning.creation import Limits
from services.submissions.planning.plan import Basis, Plan
from services.submissions.planning.preparing import Preparer


def try_out(
    preparer: Preparer,
    stage: Callable[[], StagedFiles],
    requests: Sequence[tuple[NewSubmission, Basis]],
    limits: Limits,
    now: datetime,
    named: Callable[[int], contextlib.AbstractContextManager[None]] = lambda _: contextlib.nullcontext(),
) -> DryRun:
    """Refusals that name fields become ``problems``; pictures are fetched and drawn, and thrown away. Of several submissions in
    one request all submitters are told; ``named`` gives the keys of one of them their names in the request."""
    basis = requests[0][1]
    problems = list(basis.problems) if isinstance(basis, Composition) else []
    plans: list[Plan] = []
    for number, (command, its_basis) in enumerate(requests):
        try:
            with named(number):
                plan = creation.plan_submission(command, its_basis, limits, now)
                plans.append(plan)
                fitting.refuse(preparer.bus, fitting.of_plan(plan, its_basis, command.account, now), plan.texts)
                stamping.refuse(preparer.bus, command.dutystamp, its_basis.documents, plan.fields)
                with stage() as files:
                    preparer.prepare(files, plan.sources)
        except ServiceError as refused:
            if refused.code != "invalid":
                raise
            details = [{key: str(value) for key, value in detail.items()} for detail in refused.details]
            problems += details or [{"field": "", "reason": refused.message}]
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
