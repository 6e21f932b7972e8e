"""Fields that were found in a document without anybody having placed them there: proposals, each with its reason."""

from pydantic import Field

from contracts.types import Area, FieldContent, Notice, Tolerant

SURE = 0.8
"""The confidence from which proposals become fields, unless a request says another one."""


class DetectedField(FieldContent):
    """A field that is proposed for a place of a document. ``reason`` says by what it was found there (line after “Name”), and
    ``confidence``, 0 to 1, how sure that is. ``role`` None: the document does not say whose it is."""

    role: str | None = None
    areas: list[Area] = Field(default_factory=list)
    reason: str
    confidence: float


class PagePicture(Tolerant):
    """A page (from 1) with the proposals drawn over it; ``url`` is of a PNG and expires."""

    page: int
    url: str


class DetectionDocument(Tolerant):
    """A document that was looked at, with a picture of each page that has proposals."""

    uuid: str
    name: str
    pictures: list[PagePicture] = Field(default_factory=list)


class Detection(Tolerant):
    """The proposals for the documents of a template, in the order of reading; nothing was changed. ``report``: what could not
    be looked at, and why."""

    fields: list[DetectedField]
    documents: list[DetectionDocument]
    report: list[Notice] = Field(default_factory=list)
