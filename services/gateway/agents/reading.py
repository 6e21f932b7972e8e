"""Tools that read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from services.gateway.agents.operations import Caller, Operations
from services.gateway.agents.schemas import Shape, cut


@dataclass(frozen=True)
class Link:
    """A file that an answer leads to."""

    name: str
    url: str
    media_type: str


@dataclass(frozen=True)
class Result:
    """What a tool has found: ``data`` as its schema says; pictures as PNG; links to files; a ``note`` in words."""

    data: dict[str, Any]
    pictures: Sequence[bytes] = ()
    links: Sequence[Link] = ()
    note: str | None = None


async def answer(
    operations: Operations, caller: Caller, operation: str, arguments: dict[str, Any], shape: Shape | None
) -> Result:
    """Return what the operation answers, cut to ``shape``."""
    return Result(cut(await operations.call(caller, operation, arguments), shape))


async def template(operations: Operations, caller: Caller, arguments: dict[str, Any], shape: Shape) -> Result:
    """Return a template with the schema of its values."""
    template_found = await operations.call(caller, "templates.get", arguments)
    schema = await operations.call(caller, "templates.schema", arguments)
    return Result({"template": cut(template_found, shape), "values_schema": schema})


async def documents(operations: Operations, caller: Caller, arguments: dict[str, Any], shape: Shape) -> Result:
    """Return links to the documents of a submission, for programs and as resources."""
    answer = cut(await operations.call(caller, "submissions.documents", arguments), shape)
    links = [Link(document["name"], document["url"], "application/pdf") for document in answer["documents"]]
    return Result(answer, links=links)
