"""The documents of a request, made ready by rendering before anything is stored.

Several at once, but only so many: a request with thirty documents must not keep everybody else's waiting. When one is
refused nothing is kept, and the refusal names it as the API user wrote it.
"""

import contextvars
import re
import time
import unicodedata
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

from pydantic import BaseModel

from contracts.blobs import DOCX, BlobRef
from contracts.detection import DetectedField
from contracts.errors import ServiceError
from contracts.fields.rules import LONGEST_TEXT
from contracts.problems import Problems
from contracts.rpc import Rpc, rendering
from contracts.rpc.templates import DocumentChange, DocumentInput, FieldInput, HtmlDocumentInput, Intake
from contracts.runtime.data.files.staging import StagedFiles
from contracts.stored_documents import DocxSource, StoredDocument, WrittenField
from contracts.types import Condition, FieldContent, Notice
from services.templates.rules import detected as rules_of_detection
from services.templates.rules import names
from services.templates.rules.domain import DocumentFields

_DRAWABLE = re.compile("[\t\n -~\u00a0-\u00ac\u00ae-\u024f]*")
"""Texts that every font of ours has for certain; rendering is asked about others."""
_MOST_NAMED = 10


@dataclass(frozen=True)
class Source:
    """A document as it was sent. ``path`` and ``part`` say where its content is in the request body. ``least``: the confidence
    from which detected fields are taken, None when none are looked for."""

    name: str
    path: str
    part: str
    ask: Callable[["Bus"], rendering.PreparedDocument]
    fields: Sequence[FieldInput] = ()
    position: int | None = None
    remove_tags: bool = True
    filled: bool = True
    conditions: Sequence[Condition] = ()
    least: float | None = None


@dataclass(frozen=True)
class Answer:
    """What rendering made of a document, and what it proposes for it; ``skipped`` is why it was not asked for that."""

    prepared: rendering.PreparedDocument
    detected: rendering.DetectedFields | None = None
    skipped: str | None = None


@dataclass(frozen=True)
class Ready:
    """A document that can be stored: ``uuid`` is new. ``detected`` are all proposals for it, None when none were asked for."""

    name: str
    file: BlobRef
    original: BlobRef
    signed: bool
    fields: DocumentFields
    report: list[Notice] = field(default_factory=list)
    position: int | None = None
    docx: DocxSource | None = None
    detected: list[DetectedField] | None = None

    @property
    def stored(self) -> StoredDocument:
        """The same as a submission keeps it."""
        return StoredDocument(
            uuid=self.fields.uuid,
            name=self.name,
            file=self.file,
            original=self.original,
            pages=self.fields.pages,
            signed=self.signed,
            docx=self.docx,
        )

    def adopted(self, files: StagedFiles) -> "Ready":
        """Return the same with files that a record may name."""
        (document,) = files.adopt_documents([self.stored])
        return replace(self, original=document.original, file=document.file)


class Bus(Protocol):
    """What this module needs of ``context.bus``: the response, or a ServiceError."""

    def call(self, rpc: Rpc[Any, Any], request: Any) -> Any: ...


def sources(intake: Intake) -> list[Source]:
    """The documents of a request, in order."""
    problems = Problems()
    results = [_of_file(document, f"documents[{i}]", intake, problems) for i, document in enumerate(intake.documents)]
    results += [_of_html(page, f"documents[{i}]", problems) for i, page in enumerate(intake.html_documents)]
    problems.refuse()
    least = intake.min_confidence if intake.detect_fields else None
    return [replace(source, least=least) for source in results]


def sources_of_changes(changes: Sequence[DocumentChange]) -> list[Source | None]:
    """Return what PUT /templates/:id/documents sends in, entry by entry; None where nothing is: a document is removed."""
    problems = Problems()
    results: list[Source | None] = []
    for i, change in enumerate(changes):
        path = f"documents[{i}]"
        if change.remove:
            results.append(None)
        elif change.html is not None:
            results.append(_of_html(HtmlDocumentInput(html=change.html, name=change.name), path, problems))
        elif change.file is not None:
            document = DocumentInput(name=change.name or "", file=change.file)
            results.append(_of_file(document, path, Intake(docx=True), problems))
        else:
            problems.add(f"{path}.file", "is required, unless html is given or the document is removed")
    problems.refuse()
    return results


def _of_file(document: DocumentInput, path: str, intake: Intake, problems: Problems) -> Source:
    """A document that came as a file. Which kind it is decides how rendering is asked."""
    name = names.document(names.title(document.name, f"{path}.name", problems)) or str(uuid.uuid4())
    if intake.docx and document.file.media_type == DOCX:
        docx = rendering.PrepareDocx(
            name=name, file=document.file, variables=intake.docx_variables, remove_tags=intake.remove_tags
        )
        ask = _asks(rendering.PREPARE_DOCX, docx)
        now = intake.docx_variables is not None
        source = Source(name, path, "file", ask, document.fields, document.position, intake.remove_tags, filled=now)
        return replace(source, conditions=document.conditions)
    pdf = rendering.PreparePdf(name=name, file=document.file, remove_tags=intake.remove_tags, flatten=intake.flatten)
    ask = _asks(rendering.PREPARE_PDF, pdf)
    return Source(name, path, "file", ask, document.fields, document.position, conditions=document.conditions)


def _of_html(page: HtmlDocumentInput, path: str, problems: Problems) -> Source:
    name = names.document(names.title(page.name or "", f"{path}.name", problems)) or str(uuid.uuid4())
    html = rendering.PrepareHtml(
        name=name, html=page.html, html_header=page.html_header, html_footer=page.html_footer, size=page.size
    )
    return Source(name, path, "html", _asks(rendering.PREPARE_HTML, html), position=page.position)


def prepare(
    bus: Bus, documents: Sequence[Source], *, concurrency: int, seconds: float, trial: bool = False
) -> list[Ready]:
    """All documents, prepared. Raises ServiceError naming the refused ones; ``seconds`` bounds the whole. After a refusal no
    further document is begun, unless it is a ``trial``, which tells of all of them."""
    deadline = time.monotonic() + seconds
    with ThreadPoolExecutor(max_workers=min(concurrency, len(documents)) or 1) as pool:
        running = [
            pool.submit(contextvars.copy_context().run, _prepare_one, bus, source, deadline) for source in documents
        ]
        wait(running, return_when=ALL_COMPLETED if trial else FIRST_EXCEPTION)
        for future in running:
            future.cancel()
    _refuse(documents, running)
    answers = [future.result() for future in running]
    ready = [_ready(source, answer.prepared) for source, answer in zip(documents, answers, strict=True)]
    return _with_undrawable(bus, _with_detected(documents, answers, ready))


def _asks(
    rpc: Rpc[Any, rendering.PreparedDocument], request: BaseModel
) -> Callable[["Bus"], rendering.PreparedDocument]:
    return lambda bus: cast("rendering.PreparedDocument", bus.call(rpc, request))


def _prepare_one(bus: Bus, source: Source, deadline: float) -> Answer:
    if time.monotonic() > deadline:
        raise ServiceError("unavailable", "Preparing the documents takes too long. Try again, or send fewer at once.")
    prepared = source.ask(bus)
    if source.least is None:
        return Answer(prepared)
    has_variables = not source.filled and bool(prepared.variables)
    if (reason := rules_of_detection.why_not(prepared.pages, has_variables=has_variables)) is not None:
        return Answer(prepared, skipped=reason)
    occupied = [area for field in prepared.fields for area in field.areas]
    occupied += rules_of_detection.explicit_areas(source.fields, prepared.pages)
    request = rendering.DetectFields(file=prepared.file, taken=occupied)
    return Answer(prepared, bus.call(rendering.DETECT_FIELDS, request))


def _with_detected(sources: Sequence[Source], answers: Sequence[Answer], documents: Sequence[Ready]) -> list[Ready]:
    """With the fields that were detected: names are told apart over all documents."""
    groups = [ready.fields for ready in documents]
    keys_in_use = {rules_of_detection.key_of(field.name, field.role) for group in groups for field in group.explicit}
    keys_in_use |= {rules_of_detection.key_of(tag.name, tag.role) for group in groups for tag in group.tag_fields}
    results = []
    for source, answer, ready in zip(sources, answers, documents, strict=True):
        if source.least is None:
            results.append(ready)
        elif answer.detected is None:
            skipped = rules_of_detection.skipped(answer.skipped or "", ready.name)
            results.append(replace(ready, report=[*ready.report, skipped], detected=[]))
        else:
            proposals = rules_of_detection.on_document(answer.detected.fields, ready.fields.uuid)
            sure = rules_of_detection.sure(proposals, source.least)
            accepted = rules_of_detection.with_distinct_names(sure, keys_in_use)
            unsure = [proposal for proposal in proposals if proposal.confidence < source.least]
            tag_fields = [*ready.fields.tag_fields, *map(rules_of_detection.as_found, accepted)]
            notices = [notice.model_copy(update={"document": ready.name}) for notice in answer.detected.report]
            report = [*ready.report, *notices, *rules_of_detection.notices(accepted, ready.name)]
            fields = replace(ready.fields, tag_fields=tag_fields)
            results.append(replace(ready, fields=fields, report=report, detected=[*accepted, *unsure]))
    return results


def _refuse(documents: Sequence[Source], done: Sequence[Future[Answer]]) -> None:
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
    return [{"field": _place(source, detail["field"]), "reason": str(detail.get("reason"))} for detail in inner]


def _place(source: Source, field: str) -> str:
    """Variables are those of the whole request."""
    return field if field == "variables" else f"{source.path}.{field}"


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
            tag_fields=prepared.fields,
            conditions=source.conditions,
        ),
        report=[
            notice if notice.document else notice.model_copy(update={"document": source.name})
            for notice in prepared.report
        ],
        position=source.position,
        docx=None if source.filled or not prepared.variables else _docx_source(source, prepared),
    )


def _docx_source(source: Source, prepared: rendering.PreparedDocument) -> DocxSource:
    return DocxSource(
        variables=prepared.variables,
        remove_tags=source.remove_tags,
        written=[WrittenField(name=field.name, role=field.role, areas=field.areas) for field in prepared.fields],
    )


def _with_undrawable(bus: Bus, documents: Sequence[Ready]) -> list[Ready]:
    """With a notice for each field that has a text with characters that no font can draw: whoever makes the template can mend
    it, who signs cannot. Rendering is asked for the characters, each once."""
    doubtful = [
        [(field.name, _doubtful(field)) for field in (*r.fields.explicit, *r.fields.tag_fields)] for r in documents
    ]
    all_of_them = sorted({character for fields in doubtful for _, characters in fields for character in characters})
    if not all_of_them:
        return list(documents)
    answer = bus.call(rendering.CHECK_TEXT, rendering.CheckText(texts=["\n".join(all_of_them)]))
    without_font = set(answer.characters[0])
    return [
        replace(ready, report=[*ready.report, *_undrawable(fields, without_font, ready.name)])
        for ready, fields in zip(documents, doubtful, strict=True)
    ]


def _undrawable(fields: Sequence[tuple[str, set[str]]], without_font: set[str], document: str) -> list[Notice]:
    return [
        Notice(
            code="undrawable_characters",
            message=f"field {name!r} has characters that no font can draw: {_shown(sorted(characters & without_font))}",
            document=document,
        )
        for name, characters in fields
        if characters & without_font
    ]


def _doubtful(content: FieldContent) -> set[str]:
    """The characters of its texts that not every font has for certain."""
    return {
        character
        for text in _printed(content)
        if not _DRAWABLE.fullmatch(text)
        for character in unicodedata.normalize("NFC", text)
        if not _DRAWABLE.fullmatch(character)
    }


def _printed(content: FieldContent) -> list[str]:
    """The texts of a field that end up on paper, whoever fills it in."""
    reasons = content.preferences.get("reasons")
    texts = [content.default_value, *content.options, *(reasons if isinstance(reasons, list) else ())]
    return [text for text in texts if isinstance(text, str) and len(text) <= LONGEST_TEXT]


def _shown(characters: Sequence[str]) -> str:
    described = [f"{character!r} (U+{ord(character):04X})" for character in characters[:_MOST_NAMED]]
    return ", ".join(described) + (", ..." if len(characters) > _MOST_NAMED else "")
