"""One-off submissions (specification 4.3.1): made of documents that come along, without a template.

The templates service prepares the documents and finds their fields; from then on they are the submission's own.
"""

from dataclasses import replace
from datetime import datetime

from contracts.problems import Problems
from contracts.rpc.submissions import api as rpc
from contracts.rpc.templates import ComposeDocuments, Composition
from services.submissions.planning import creation
from services.submissions.planning.creation import Limits
from services.submissions.planning.plan import Plan
from services.submissions.rules.values import variables


def refuse_early(command: rpc.CreateOneOff) -> None:
    """Refuse what is certain to be refused, before it keeps rendering busy."""
    problems = Problems()
    if not command.submitters:
        problems.add("submitters", "is required", "submitters is required")
    creation.checked_name(command.name, "name", problems)
    problems.refuse()


def compose_request(command: rpc.CreateOneOff, limits: Limits) -> ComposeDocuments:
    """Return what the templates service is asked for."""
    return ComposeDocuments(
        actor=command.actor,
        documents=command.documents,
        html_documents=command.html_documents,
        flatten=command.flatten,
        remove_tags=command.remove_tags,
        template_ids=command.template_ids,
        docx=command.docx,
        docx_variables=variables.merged(command, limits.max_values_bytes),
        merge_documents=command.merge_documents,
        name=command.name or _first_document_name(command),
    )


def plan_submission(command: rpc.CreateOneOff, composition: Composition, limits: Limits, now: datetime) -> Plan:
    """As any other submission, but it is called like its first document with a name when the request gives none."""
    plan = creation.plan_submission(command, composition, limits, now)
    return plan if plan.name else replace(plan, name=_first_document_name(command))


def _first_document_name(command: rpc.CreateOneOff) -> str | None:
    """The name of the first document that was given one, without the extension that the published clients send with it."""
    names = [
        *(document.name for document in command.documents),
        *(document.name for document in command.html_documents),
    ]
    first_name = next((name for name in names if name and name.strip()), None)
    name_ = creation.checked_name(first_name, "name", Problems())
    for extension in (".pdf", ".docx"):
        if name_ and name_.lower().endswith(extension):
            return name_[: -len(extension)] or name_
    return name_
