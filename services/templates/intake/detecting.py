"""Fields proposed for documents: those of a template that is there, and pictures of those of one that is only tried out."""

from collections.abc import Sequence
from dataclasses import dataclass

from contracts.detection import DetectedField, Detection, DetectionDocument, PagePicture
from contracts.fields.boxes import FieldBox, FieldBoxes
from contracts.links import FieldsOf
from contracts.rpc import rendering
from contracts.rpc.templates import TemplateSnapshot
from contracts.stored_documents import StoredDocument
from contracts.types import Area, Notice
from services.templates.intake.preparing import Bus, Ready
from services.templates.links import FileLinks
from services.templates.rules import detected

MOST_PICTURES = 20
"""Pages that are drawn for a dry run, the first ones with proposals."""

_WIDTH = 1000


@dataclass(frozen=True)
class Detector:
    """Asks rendering for proposals, and for pictures of them."""

    bus: Bus
    links: FileLinks

    def of_template(self, snapshot: TemplateSnapshot) -> Detection:
        """Return what could be filled in on the documents and has no field yet."""
        keys_in_use = {detected.key_of(field.name, field.role) for field in snapshot.fields}
        fields: list[DetectedField] = []
        documents, report = [], []
        for document in snapshot.documents:
            proposals, notices = self._of_document(snapshot, document)
            named_fields = detected.with_distinct_names(detected.on_document(proposals, document.uuid), keys_in_use)
            fields += named_fields
            report += notices
            owner = FieldsOf("templates", snapshot.id, document.uuid)
            pictures = [
                PagePicture(page=page, url=self.links.to_detected(document.file, document.name, owner, page))
                for page in _pages(named_fields)
            ]
            documents.append(DetectionDocument(uuid=document.uuid, name=document.name, pictures=pictures))
        return Detection(fields=fields, documents=documents, report=report)

    def boxes(self, snapshot: TemplateSnapshot, document_uuid: str) -> FieldBoxes:
        """Return where the proposals for a document are; of none that the template does not have."""
        documents = [document for document in snapshot.documents if document.uuid == document_uuid]
        proposals = [field for document in documents for field in self._of_document(snapshot, document)[0]]
        return FieldBoxes(boxes=_boxes(proposals))

    def pictures(self, documents: Sequence[Ready]) -> list[list[PagePicture]]:
        """Draw the pages of documents that are only tried out, with the proposals over them."""
        results: list[list[PagePicture]] = []
        left = MOST_PICTURES
        for ready in documents:
            boxes = _boxes(ready.detected or ())
            pages = _pages(ready.detected or ())[: max(left, 0)]
            left -= len(pages)
            pictures = []
            for page in pages:
                request = rendering.DrawPage(
                    file=ready.file,
                    page=page,
                    width=_WIDTH,
                    boxes=[box for box in boxes if box.page == page],
                    keep=False,
                )
                drawn = self.bus.call(rendering.DRAW_PAGE, request)
                pictures.append(PagePicture(page=page, url=self.links.to_picture(drawn, ready.name, page)))
            results.append(pictures)
        return results

    def _of_document(
        self, snapshot: TemplateSnapshot, document: StoredDocument
    ) -> tuple[list[DetectedField], list[Notice]]:
        if (reason := detected.why_not(document.pages, has_variables=document.docx is not None)) is not None:
            return [], [detected.skipped(reason, document.name)]
        request = rendering.DetectFields(file=document.file, taken=_places_of_fields(snapshot, document), keep=True)
        answer: rendering.DetectedFields = self.bus.call(rendering.DETECT_FIELDS, request)
        return answer.fields, [notice.model_copy(update={"document": document.name}) for notice in answer.report]


def _places_of_fields(snapshot: TemplateSnapshot, document: StoredDocument) -> list[Area]:
    """The places of fields that are there; an area that names no document is on the first one."""
    first = snapshot.documents[0].uuid
    return [
        area for field in snapshot.fields for area in field.areas if (area.attachment_uuid or first) == document.uuid
    ]


def _pages(proposals: Sequence[DetectedField]) -> list[int]:
    return sorted({area.page for proposal in proposals for area in proposal.areas})


def _boxes(proposals: Sequence[DetectedField]) -> list[FieldBox]:
    """As pictures show them: in a box is its name, and how sure it is; the colour is that of its role."""
    roles = list(dict.fromkeys(proposal.role for proposal in proposals))
    return [
        FieldBox(
            x=area.x,
            y=area.y,
            w=area.w,
            h=area.h,
            page=area.page,
            label=f"{proposal.name or proposal.type.value} {proposal.confidence:.2f}",
            role=roles.index(proposal.role),
        )
        for proposal in proposals
        for area in proposal.areas
    ]
