"""Which duty stamps a submission gets, on which of its files, and whether they have room there. Pure.

``positions`` list the stamps: each is one. Without any, each document gets one, and so does the combined file. Where they are
given they are places in the documents; only when nothing but the combined file is stamped they are places in that one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from contracts.fields.kinds import WITHOUT_CONTENT
from contracts.providers import StampPosition, StampTarget
from contracts.rpc.rendering import ConfirmationOrder, FieldValue, FillRequest, SealRequest
from contracts.stored_documents import StoredDocument, pages_before
from contracts.types import Area, FieldDefinition, FieldType, PageSize
from services.rendering.rules.free_places import Rectangle, at, is_within, overlap

_MAY_BE_UNDER_A_STAMP = WITHOUT_CONTENT | {FieldType.SIGNATURE}
"""A duty stamp belongs onto the signature that it is owed for; the others have no value that could be hidden."""

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class StampWish:
    """One stamp as it was ordered: on one of the pages ``first`` to ``last`` (from 1) of its file; ``x`` and ``y`` of its lower
    left corner on the first of them, in points of the visible page, or None where the place is to be found."""

    first: int
    last: int
    x: float | None = None
    y: float | None = None
    code_document: str | None = None


@dataclass(frozen=True)
class FileToStamp:
    """A file that gets stamps. ``document`` is the uuid of one of the submission's documents and ``document_index`` its number
    from 0; both are None for the combined file. ``anchors`` are where stamps go that were given no place, the best first;
    ``values`` are the places of all that was filled in. Pages of areas are those of the file."""

    target: StampTarget
    document: str | None
    document_index: int | None
    wishes: list[StampWish] = field(default_factory=list)
    anchors: list[Area] = field(default_factory=list)
    values: list[Area] = field(default_factory=list)


def files_to_stamp(request: SealRequest) -> list[FileToStamp]:
    """The files that the submission's order has stamped, in order, each with at least one wish: the documents, then the
    combined file. A document that conditions leave out of the submission gets no stamp. Empty without an order."""
    order = request.dutystamp
    if order is None:
        return []
    numbers = {
        uuid: number for number, uuid in enumerate(order.documents or [document.uuid for document in request.documents])
    }
    before = pages_before(request.documents)
    by_document = {
        document.uuid: [
            position for position in order.positions if position.document_index == numbers.get(document.uuid)
        ]
        for document in request.documents
    }
    files = []
    if "documents" in order.targets:
        for document in request.documents:
            positions = by_document[document.uuid] if order.positions else [StampPosition()]
            if positions:
                wishes = [_wish(position, document, 0) for position in positions]
                areas = _areas(request, {document.uuid: 0}, by_page=False)
                files.append(FileToStamp("documents", document.uuid, numbers.get(document.uuid), wishes, *areas))
    if "combined" in order.targets:
        wishes = [
            _wish(position, document, before[document.uuid])
            for document in request.documents
            for position in by_document[document.uuid]
            if "documents" not in order.targets
        ]
        pages = sum(len(document.pages) for document in request.documents)
        areas = _areas(request, before, by_page=True)
        files.append(FileToStamp("combined", None, None, wishes or [StampWish(1, pages)], *areas))
    return files


def may_certify(request: FillRequest) -> bool:
    """Return whether the seals of the documents may say that nothing may be changed afterwards, as the account wants it. Not
    where a stamp follows, which would break them, and never a provider's: it does not know what follows. Signers who sign at a
    provider sign one after the other."""
    if isinstance(request, ConfirmationOrder):
        return False
    if not isinstance(request, SealRequest):
        return request.account.with_certification
    stamped = request.dutystamp is not None and "documents" in request.dutystamp.targets
    by_provider = request.certsign is not None or bool(request.confirmations)
    return request.account.with_certification and not stamped and not by_provider


def _wish(position: StampPosition, document: StoredDocument, before: int) -> StampWish:
    """``before``: pages of the file that come before the document. A place without a page is on the document's first one."""
    only = position.page if position.page is not None or position.x is None else 1
    first, last = (only, only) if only is not None else (1, len(document.pages))
    return StampWish(before + first, before + last, position.x, position.y, position.code_document)


def _areas(request: SealRequest, before: Mapping[str, int], *, by_page: bool) -> tuple[list[Area], list[Area]]:
    """Anchors and values on the documents of ``before``: fields of type ``dutystamp``, then signatures, those of who signed
    last first, or ``by_page`` those of the last page first."""
    first = request.documents[0].uuid
    completed = {party.id: party.completed_at or _LONG_AGO for party in request.parties}
    stamps, signatures, values = [], [], []
    for item in request.values:
        for area in item.field.areas:
            document = area.attachment_uuid or first
            if document not in before:
                continue
            placed = area.model_copy(update={"page": area.page + before[document], "attachment_uuid": ""})
            if item.field.type is FieldType.DUTYSTAMP:
                stamps.append(placed)
            elif item.field.type not in WITHOUT_CONTENT:
                values.append(placed)
                if item.field.type is FieldType.SIGNATURE:
                    signatures.append((item, placed))

    def rank(signature: tuple[FieldValue, Area]) -> float:
        item, placed = signature
        return -placed.page if by_page else -completed.get(item.submitter_id, _LONG_AGO).timestamp()

    return [*stamps, *(placed for _, placed in sorted(signatures, key=rank))], values


def problems(
    documents: Sequence[StoredDocument],
    fields: Sequence[FieldDefinition],
    targets: Sequence[StampTarget],
    positions: Sequence[StampPosition],
    size: tuple[float, float],
) -> dict[str, str]:
    """Return why stamps of that size (points) cannot be put there, by the name of the parameter, as a sentence goes on that
    begins with that name. No files are looked at, only the sizes of pages and the places of fields."""
    problem_by_name: dict[str, str] = {}
    boxes_by_page: dict[tuple[int, int], list[tuple[int, Rectangle]]] = {}
    for number, position in enumerate(positions):
        name = f"positions[{number}]"
        if (problem := _problem(documents, fields, targets, position, size)) is not None:
            problem_by_name[f"{name}.{problem[0]}"] = problem[1]
        elif position.x is not None and position.y is not None:
            page, box = (position.document_index, position.page or 1), at((position.x, position.y), size)
            boxes_on_page = boxes_by_page.setdefault(page, [])
            if (other := next((other for other, place in boxes_on_page if overlap(place, box)), None)) is not None:
                problem_by_name[f"{name}.x"] = f"puts the stamp over the one of positions[{other}]"
            boxes_on_page.append((number, box))
    if not positions:
        for document in documents if "documents" in targets else ():
            if _keeps_to_its_form(document):
                problem_by_name["targets"] = (
                    f"has documents, and the signatures that “{document.name}” came with allow no stamp"
                )
            elif not any(_has_room(page, size) for page in document.pages):
                problem_by_name["targets"] = _too_small(document, size)
        if not any(_has_room(page, size) for document in documents for page in document.pages):
            problem_by_name["targets"] = _too_small(documents[0], size)
    return problem_by_name


def _problem(
    documents: Sequence[StoredDocument],
    fields: Sequence[FieldDefinition],
    targets: Sequence[StampTarget],
    position: StampPosition,
    size: tuple[float, float],
) -> tuple[str, str] | None:
    """The parameter of the position that is at fault, and why."""
    count = len(documents)
    if not 0 <= position.document_index < count:
        return "document_index", f"must be {_range(0, count - 1)}, as there {_are(count, 'document')}"
    document = documents[position.document_index]
    pages = document.pages
    if "documents" in targets and _keeps_to_its_form(document):
        return "document_index", f"names “{document.name}”, and the signatures that it came with allow no stamp"
    if position.page is not None and not 1 <= position.page <= len(pages):
        return "page", f"must be {_range(1, len(pages))}, as “{document.name}” has {_count(len(pages), 'page')}"
    if (position.x is None) != (position.y is None):
        return ("x", "is missing, as y is given") if position.x is None else ("y", "is missing, as x is given")
    if position.x is None or position.y is None:
        candidate_pages = pages if position.page is None else [pages[position.page - 1]]
        if not any(_has_room(page, size) for page in candidate_pages):
            where = "document_index" if position.page is None else "page"
            return where, f"names what is too small for a stamp of {_points(size)}"
        return None
    return _problem_of_place(
        documents, fields, position.document_index, position.page or 1, at((position.x, position.y), size)
    )


def _problem_of_place(
    documents: Sequence[StoredDocument], fields: Sequence[FieldDefinition], index: int, number: int, box: Rectangle
) -> tuple[str, str] | None:
    document = documents[index]
    page = document.pages[number - 1]
    if not is_within(box, (page.width, page.height)):
        size = (box[2] - box[0], box[3] - box[1])
        word = "x" if box[0] < 0 or box[2] > page.width else "y"
        most = page.width - size[0] if word == "x" else page.height - size[1]
        if most < 0:
            return word, f"names a page that is too small for a stamp of {_points(size)}"
        return word, f"must be between 0 and {_rounded(most)}, so that a stamp of {_points(size)} is on the page"
    for name, area in _hidden_by(documents, fields, document.uuid, number):
        if overlap(on_page(area, page), box):
            return "x", f"puts the stamp over the field “{name}”"
    return None


def _hidden_by(
    documents: Sequence[StoredDocument], fields: Sequence[FieldDefinition], uuid: str, page: int
) -> Iterator[tuple[str, Area]]:
    """The areas on a page where a value may be that no stamp may hide, with the names of their fields."""
    for form_field in fields:
        if form_field.type not in _MAY_BE_UNDER_A_STAMP:
            for area in form_field.areas:
                if (area.attachment_uuid or documents[0].uuid) == uuid and area.page == page:
                    yield form_field.name or form_field.title or form_field.type.value, area


def on_page(area: Area, page: PageSize) -> Rectangle:
    """The area in points of the visible page, from its lower left corner."""
    left, top = area.x * page.width, (1 - area.y) * page.height
    return left, top - area.h * page.height, left + area.w * page.width, top


def _keeps_to_its_form(document: StoredDocument) -> bool:
    """Return whether the signatures that the document came with allow its form to be filled in, and nothing else."""
    return any(page.places is not None for page in document.pages)


def _has_room(page: PageSize, size: tuple[float, float]) -> bool:
    return size[0] <= page.width and size[1] <= page.height


def _too_small(document: StoredDocument, size: tuple[float, float]) -> str:
    return f"has “{document.name}”, whose pages are too small for a stamp of {_points(size)}"


def _points(size: tuple[float, float]) -> str:
    return f"{_rounded(size[0])} x {_rounded(size[1])} points"


def _rounded(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _range(least: int, most: int) -> str:
    return f"{least}" if least == most else f"between {least} and {most}"


def _count(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _are(count: int, word: str) -> str:
    return f"is 1 {word}" if count == 1 else f"are {count} {word}s"
