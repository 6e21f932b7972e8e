"""``dry_run``: what a creating call would make, with everything that it would be refused for. Nothing is stored."""

from datetime import datetime

from contracts.errors import ServiceError
from contracts.rpc.submissions import NewSubmission
from contracts.rpc.templates import Composition
from contracts.types import DryRun, DryRunDocument, DryRunSubmitter
from services.submissions import creation, fitting
from services.submissions.creation import Basis, Limits, Plan
from services.submissions.preparing import Workshop


def tried(workshop: Workshop, command: NewSubmission, basis: Basis, limits: Limits, now: datetime) -> DryRun:
    """Refusals that name fields become ``problems``; pictures are fetched and drawn, and thrown away."""
    problems = list(basis.problems) if isinstance(basis, Composition) else []
    plan = None
    try:
        plan = creation.planned(command, basis, limits, now)
        fitting.refuse(workshop.bus, fitting.of_plan(plan, basis, command.account, now), plan.texts)
        workshop.discard(workshop.prepared(plan.sources))
    except ServiceError as refused:
        if refused.code != "invalid":
            raise
        found = [{key: str(value) for key, value in detail.items()} for detail in refused.details]
        problems += found or [{"field": "", "reason": refused.message}]
    fields = plan.fields if plan else basis.fields
    return DryRun(
        accepted=not problems,
        problems=problems,
        report=basis.report if isinstance(basis, Composition) else [],
        name=plan.name if plan and plan.name else basis.name,
        roles=[party.name for party in basis.parties],
        fields=fields,
        documents=[
            DryRunDocument(name=one.name, pages=one.pages, signed=one.signed, sha256=one.original.sha256)
            for one in basis.documents
        ],
        submitters=_submitters(plan) if plan else [],
    )


def _submitters(plan: Plan) -> list[DryRunSubmitter]:
    return [
        DryRunSubmitter(
            role=one.party.name,
            email=one.email,
            name=one.name,
            phone=one.phone,
            order=one.group,
            completed=one.completed,
            fields=[field.name for field in plan.fields if field.submitter_uuid == one.party.uuid],
        )
        for one in plan.submitters
    ]
