"""The documents of a request, made ready by rendering before anything is stored.

Several at once, but only so many: a request with thirty documents must not keep everybody else's waiting. When one is
refused nothing is kept, and the refusal names it as the API user wrote it.
"""

import contextvars
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from pydantic import BaseModel

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.rpc import Rpc, rendering
from contracts.rpc.templates import CreateTemplate, FieldInput
from contracts.types import Notice
from services.templates import names
from services.templates.domain import DocumentFields
from services.templates.problems import Problems


@dataclass(frozen=True)
class Source:
    """A document as it was sent. ``path`` and ``part`` say where its content is in the request body."""

    name: str
    path: str
    part: str
    ask: Callable[["Bus"], rendering.PreparedDocument]
    fields: Sequence[FieldInput] = ()


@dataclass(frozen=True)
class Ready:
    """A document that can be stored: ``uuid`` is new."""

    name: str
    file: BlobRef
    original: BlobRef
    signed: bool
    fields: DocumentFields
    report: list[Notice] = field(default_factory=list)


class Bus(Protocol):
    """What this module needs of ``context.bus``: the response, or a ServiceError."""

    def call(self, rpc: Rpc[Any, Any], request: Any) -> Any: ...


def sources(command: CreateTemplate) -> list[Source]:
    """The documents of the command, in order."""
    problems = Problems()
    found = []
    for i, document in enumerate(command.documents):
        path = f"documents[{i}]"
        name = names.document(names.title(document.name, f"{path}.name", problems)) or str(uuid.uuid4())
        pdf = rendering.PreparePdf(
            name=name, file=document.file, remove_tags=command.remove_tags, flatten=command.flatten
        )
        found.append(Source(name, path, "file", _asks(rendering.PREPARE_PDF, pdf), document.fields))
    for i, page in enumerate(command.html_documents):
        path = f"documents[{i}]"
        name = names.document(names.title(page.name or "", f"{path}.name", problems)) or str(uuid.uuid4())
        html = rendering.PrepareHtml(
            name=name, html=page.html, html_header=page.html_header, html_footer=page.html_footer, size=page.size
        )
        found.append(Source(name, path, "html", _asks(rendering.PREPARE_HTML, html)))
    problems.refuse()
    return found


def prepare(bus: Bus, documents: Sequence[Source], *, concurrency: int, seconds: float) -> list[Ready]:
    """All documents, prepared. Raises ServiceError naming the refused ones; ``seconds`` bounds the whole."""
    deadline = time.monotonic() + seconds
    with ThreadPoolExecutor(max_workers=min(concurrency, len(documents)) or 1) as pool:
        running = [pool.submit(contextvars.copy_context().run, _one, bus, source, deadline) for source in documents]
        wait(running, return_when=FIRST_EXCEPTION)
        for future in running:
            future.cancel()
    _refuse(documents, running)
    return [_ready(source, future.result()) for source, future in zip(documents, running, strict=True)]


def _asks(
    rpc: Rpc[Any, rendering.PreparedDocument], request: BaseModel
) -> Callable[["Bus"], rendering.PreparedDocument]:
    return lambda bus: cast("rendering.PreparedDocument", bus.call(rpc, request))


def _one(bus: Bus, source: Source, deadline: float) -> rendering.PreparedDocument:
    if time.monotonic() > deadline:
        raise ServiceError("unavailable", "Preparing the documents takes too long, try again or send fewer at once")
    return source.ask(bus)


def _refuse(documents: Sequence[Source], done: Sequence[Future[rendering.PreparedDocument]]) -> None:
    refusals = []
    for source, future in zip(documents, done, strict=True):
        error = None if future.cancelled() else future.exception()
        if isinstance(error, ServiceError) and error.status < 500:
            refusals.append((source, error))
        elif error is not None:
            raise error
    if refusals:
        details = [detail for source, refusal in refusals for detail in _details(source, refusal)]
        first = refusals[0][1]
        raise ServiceError(first.code, f"{details[0]['field']}: {first.message}", details)


def _details(source: Source, error: ServiceError) -> list[dict[str, str]]:
    """Rendering knows one document: its ``size`` is our ``documents[2].size``."""
    inner = [detail for detail in error.details if detail.get("field") and detail["field"] != "file"]
    if not inner:
        return [{"field": f"{source.path}.{source.part}", "reason": error.message}]
    return [{"field": f"{source.path}.{detail['field']}", "reason": str(detail.get("reason"))} for detail in inner]


def _ready(source: Source, prepared: rendering.PreparedDocument) -> Ready:
    return Ready(
        name=source.name,
        file=prepared.file,
        original=prepared.original,
        signed=prepared.signed,
        fields=DocumentFields(
            uuid=str(uuid.uuid4()),
            name=source.name,
            path=source.path,
            part=source.part,
            pages=prepared.pages,
            explicit=source.fields,
            found=prepared.fields,
        ),
        report=[
            notice if notice.document else notice.model_copy(update={"document": source.name})
            for notice in prepared.report
        ],
    )
