"""Write the table of scopes in docs/keys.md: ``python -m docs.programs.make_keys``.

Which operation needs which is in openapi.yaml.
"""

from pathlib import Path
from typing import Any

from contracts.types import Role
from services.gateway.http.openapi import specification
from services.gateway.http.openapi.specification import ANY_SCOPE, Operation
from services.gateway.rights import Scope

PAGE = Path(__file__).parents[1] / "keys.md"
BEGINNING, END = "<!-- scopes -->\n", "<!-- /scopes -->\n"
MEANINGS = {
    Scope.READ: "look at templates, submissions, documents, evidence and events; open links in events; merge and verify files",
    Scope.SEND: "make, change, delete submissions, act for signers as the API can, and read their mails in test mode",
    Scope.TEMPLATES: "make, change, delete templates",
    Scope.WEBHOOKS: "manage webhooks, and so be told everything that happens",
    Scope.ADMIN: "manage users, their keys, the account and test mode",
    Scope.AGENT_SEND: "let an agent send without a person's confirming ([mcp.md](mcp.md)); nothing in the REST API",
}
AT_MCP = "`send_submission` and `remind_signer` of `/mcp`"


def table() -> str:
    """Return the rows: each scope, what it is for, the operations that need it, and those that every key may call."""
    document = specification.document()
    head = ["| Scope | To | Operations |", "|---|---|---|"]
    rows = [f"| `{scope}` | {MEANINGS[scope]} | {_operations(document, scope.value) or AT_MCP} |" for scope in Scope]
    return "\n".join([*head, *rows, f"| every key | ask whose key it is | {_operations(document, ANY_SCOPE)} |"]) + "\n"


def with_table(page: str) -> str:
    """Return the page with the table as it is now."""
    before, _, rest = page.partition(BEGINNING)
    return before + BEGINNING + table() + END + rest.partition(END)[2]


def _operations(document: dict[str, Any], word: str) -> str:
    return "<br>".join(
        _line(operation)
        for operation in specification.operations(document)
        if operation.definition.get("x-scope") == word
    )


def _line(operation: Operation) -> str:
    """A line of the table, with the roles where they are not all, the mode where it is not for both, and a dagger where keys of
    folders may call it."""
    roles = [role.value for role in Role if role in operation.roles]
    only = [f"{operation.mode} keys only"] if operation.mode else []
    limits = [*([] if len(roles) == len(Role) else roles), *only]
    who = f" ({', '.join(limits)})" if limits else ""
    return f"`{operation.method.upper()} {operation.path}`{' †' if operation.by_folder else ''}{who}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
