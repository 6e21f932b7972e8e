"""Templates: documents with fields assigned to roles (specification 4.2)."""

from typing import Any

from pydantic import Field, field_validator

from contracts.blobs import BlobRef
from contracts.detection import SURE, Detection
from contracts.dry_run import DryRun
from contracts.fields.boxes import FieldBoxes
from contracts.rpc import Rpc
from contracts.stored_documents import StoredDocument
from contracts.types import (
    Actor,
    Condition,
    FieldContent,
    FieldDefinition,
    Moment,
    Notice,
    Page,
    PageRequest,
    Party,
    Removed,
    Template,
    Tolerant,
)


class AreaInput(Tolerant):
    """As the API user writes it: fractions of the page, or points when any value is above 1; origin top left."""

    x: float
    y: float
    w: float
    h: float
    page: int = 1
    option: str | None = None
    attachment_uuid: str | None = None
    cell_w: float | None = None

    @field_validator("option")
    @classmethod
    def _without_blanks(cls, option: str | None) -> str | None:
        """Options are kept so, and a value is compared with them."""
        return (option or "").strip() or None


class FieldInput(FieldContent):
    """The full definition of specification 2.7 as an API user writes it. ``role`` None means the first role."""

    uuid: str | None = None
    submitter_uuid: str | None = None
    role: str | None = None
    conditions: list[Condition] = Field(default_factory=list)
    areas: list[AreaInput] = Field(default_factory=list)


class DocumentInput(Tolerant):
    """One document of POST /templates/pdf. The gateway has put the bytes into the blob store.

    ``position`` (from 0) is used where documents can be put somewhere, such as in one-off submissions. The document is shown
    and sealed only when its ``conditions`` hold; they name fields of the request by the uuid that it gives them.
    """

    name: str
    file: BlobRef
    fields: list[FieldInput] = Field(default_factory=list)
    position: int | None = None
    conditions: list[Condition] = Field(default_factory=list)


class HtmlDocumentInput(Tolerant):
    """One document of POST /templates/html; ``size`` is Letter, Legal, Tabloid, Ledger or A0..A6."""

    html: str
    name: str | None = None
    html_header: str | None = None
    html_footer: str | None = None
    size: str = "Letter"
    position: int | None = None


class Intake(Tolerant):
    """Documents as they are sent in: either ``documents`` or ``html_documents``.

    ``docx``: files may be Word documents, too. ``docx_variables`` fill their placeholders; None leaves them for later.
    ``detect_fields``: places to fill in that have no field become fields, those of ``min_confidence`` at least.
    """

    docx: bool = False
    docx_variables: dict[str, Any] | None = None

    flatten: bool = False
    remove_tags: bool = True
    detect_fields: bool = False
    min_confidence: float = Field(default=SURE, ge=0, le=1)
    documents: list[DocumentInput] = Field(default_factory=list)
    html_documents: list[HtmlDocumentInput] = Field(default_factory=list)


class TemplateOptions(Tolerant):
    """The keys of every template, new or changed, that the gateway hands on as a caller wrote them (specification 4.2), and
    nothing that a caller may not say. So are those of the options and changes below."""

    name: str | None = None
    folder_name: str | None = None


class NewTemplateOptions(TemplateOptions):
    """Those of a new template, unless it is a clone."""

    shared_link: bool = True


class CreateTemplate(NewTemplateOptions, Intake):
    """A template of these documents. An existing template of the same ``external_id`` is updated instead.

    ``request_id`` makes the call idempotent: the same id returns the first answer. ``refuse_breaking``: an update after which
    values that are taken now no longer would be is refused; so it is below.
    """

    request_id: str
    actor: Actor
    external_id: str | None = None
    refuse_breaking: bool = False


class ComposeDocuments(Intake):
    """Compose the documents of a one-off submission (specification 4.3.1); nothing of it is kept here.

    The documents of the templates come first, then those of the request, unless their ``position`` says otherwise.
    ``merge_documents`` makes one PDF of all, called ``name``.
    """

    actor: Actor
    template_ids: list[int] = Field(default_factory=list)
    merge_documents: bool = False
    name: str | None = None


class GetTemplate(Tolerant):
    actor: Actor
    id: int


class ListTemplates(PageRequest):
    actor: Actor
    q: str | None = None
    folder: str | None = None
    archived: bool = False
    external_id: str | None = None
    slug: str | None = None
    shared: bool = False


class FillTemplate(GetTemplate):
    """The snapshot of a template with DOCX documents, filled with ``variables``; what was made is among the incoming files."""

    variables: dict[str, Any] = Field(default_factory=dict)


class ConditionsOfDocument(Tolerant):
    attachment_uuid: str
    conditions: list[Condition] = Field(default_factory=list)


class TemplateChange(TemplateOptions):
    """The body of PUT /templates/:id. Only what is set changes (``model_fields_set``). ``roles`` renames by position and
    appends; ``fields`` replaces; ``preferences`` merge, None takes one away."""

    roles: list[str] | None = None
    fields: list[FieldInput] | None = None
    submitters: list[Party] | None = None
    archived: bool | None = None
    shared_link: bool | None = None
    preferences: dict[str, Any] | None = None


class UpdateTemplate(TemplateChange):
    """``document_schema`` replaces the conditions of the documents that it names."""

    request_id: str
    actor: Actor
    id: int
    external_id: str | None = None
    refuse_breaking: bool = False
    document_schema: list[ConditionsOfDocument] | None = None
    expected_state: str | None = None


class RemoveTemplate(Tolerant):
    """Archives, or removes for good with ``permanently``. The submissions made from it live on."""

    request_id: str
    actor: Actor
    id: int
    permanently: bool = False
    expected_state: str | None = None


class CloneTemplate(TemplateOptions):
    """``document_names`` by position; a document that has none there keeps its own."""

    request_id: str
    actor: Actor
    id: int
    external_id: str | None = None
    document_names: list[str | None] = Field(default_factory=list)


class MergeOptions(NewTemplateOptions):
    """Those of a template that is made of several. ``roles`` names the combined roles by position."""

    template_ids: list[int]
    roles: list[str] | None = None


class MergeTemplates(MergeOptions):
    """A new template with the documents, roles and fields of several."""

    request_id: str
    actor: Actor
    external_id: str | None = None


class DocumentChange(Tolerant):
    """One entry of PUT /templates/:id/documents: either ``file`` or ``html``, or ``remove``.

    ``position`` (from 0) of what is removed or replaced is that before the call, of what is added that after it.
    """

    name: str | None = None
    file: BlobRef | None = None
    html: str | None = None
    position: int | None = None
    replace: bool = False
    remove: bool = False


class ChangeDocuments(Tolerant):
    """Adds, replaces and removes documents of a template; ``merge`` makes one PDF of all that there are then."""

    request_id: str
    actor: Actor
    id: int
    documents: list[DocumentChange] = Field(default_factory=list)
    merge: bool = False
    refuse_breaking: bool = False


class Composition(Tolerant):
    """Documents with fields and roles, for a submission. Files that came with the request are still among the incoming ones:
    whoever keeps them takes them over.

    ``problems`` (``field`` and ``reason``) are what it would be refused for; empty unless it is only tried out.
    """

    name: str | None = None
    parties: list[Party]
    fields: list[FieldDefinition]
    documents: list[StoredDocument]
    report: list[Notice] = Field(default_factory=list)
    problems: list[dict[str, str]] = Field(default_factory=list)


class GetSharedLink(Tolerant):
    """The template of a shared link ``/d/<slug>``, for anybody who has it; not found while its sharing is off."""

    slug: str


class TemplateSnapshot(Tolerant):
    """All that a submission needs of a template, copied so that later edits never touch signing. ``test``: it was made in test
    mode, and so is all that is made from it."""

    id: int
    name: str
    external_id: str | None = None
    folder_name: str
    slug: str
    archived: bool
    shared_link: bool
    author_id: int
    parties: list[Party]
    fields: list[FieldDefinition]
    documents: list[StoredDocument]
    preferences: dict[str, Any] = Field(default_factory=dict)
    test: bool = False
    created_at: Moment
    updated_at: Moment


class GetFieldBoxes(Tolerant):
    """For whoever has a signed link to the document's pictures: no actor is asked for. ``detected``: not the fields that are
    there, but those that are proposed."""

    id: int
    document_uuid: str
    detected: bool = False


CREATE = Rpc("templates", "create", CreateTemplate, Template, timeout=90)
GET = Rpc("templates", "get", GetTemplate, Template)
DETECT = Rpc("templates", "detect", GetTemplate, Detection, timeout=90)
LIST = Rpc("templates", "list", ListTemplates, Page[Template])
UPDATE = Rpc("templates", "update", UpdateTemplate, Template)
REMOVE = Rpc("templates", "remove", RemoveTemplate, Removed)
CLONE = Rpc("templates", "clone", CloneTemplate, Template)
SHARED = Rpc("templates", "shared", GetSharedLink, TemplateSnapshot)
FIELD_BOXES = Rpc("templates", "field_boxes", GetFieldBoxes, FieldBoxes, timeout=60)
FILL = Rpc("templates", "fill", FillTemplate, TemplateSnapshot, timeout=90)
SNAPSHOT = Rpc("templates", "snapshot", GetTemplate, TemplateSnapshot)
MERGE = Rpc("templates", "merge", MergeTemplates, Template)
CHANGE_DOCUMENTS = Rpc("templates", "change_documents", ChangeDocuments, Template, timeout=90)
COMPOSE = Rpc("templates", "compose", ComposeDocuments, Composition, timeout=90)
TRY_CREATE = Rpc("templates", "try_create", CreateTemplate, DryRun, timeout=90)
TRY_CHANGE_DOCUMENTS = Rpc("templates", "try_change_documents", ChangeDocuments, DryRun, timeout=90)
TRY_MERGE = Rpc("templates", "try_merge", MergeTemplates, DryRun)
TRY_CLONE = Rpc("templates", "try_clone", CloneTemplate, DryRun)
TRY_COMPOSE = Rpc("templates", "try_compose", ComposeDocuments, Composition, timeout=90)
