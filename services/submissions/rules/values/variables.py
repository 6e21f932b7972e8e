"""The variables of a submission (specification 4.3.1): what the documents of DOCX templates are filled with."""

import json
from typing import Any

from contracts.errors import invalid
from contracts.rpc import templates
from contracts.rpc.submissions.api import NewSubmission
from contracts.rpc.templates import TemplateSnapshot


def merged(command: NewSubmission, most_bytes: int) -> dict[str, Any]:
    """Those of the request and of each submitter as one map; later submitters override. Raises ServiceError above the limit."""
    variables = dict(command.variables)
    for submitter in command.submitters:
        variables.update(submitter.variables)
    if len(json.dumps(variables, ensure_ascii=False).encode("utf-8", "surrogatepass")) > most_bytes:
        reason = f"must not have more than {most_bytes} bytes in all"
        raise invalid(f"variables {reason}", "variables", reason)
    return variables


def has_variables(template: TemplateSnapshot) -> bool:
    """Return whether the template has documents that are filled for each submission."""
    return any(document.docx is not None for document in template.documents)


def fill(command: NewSubmission, template: TemplateSnapshot, variables: dict[str, Any]) -> templates.FillTemplate:
    """Return what the templates service is asked for then."""
    return templates.FillTemplate(actor=command.actor, id=template.id, variables=variables)
