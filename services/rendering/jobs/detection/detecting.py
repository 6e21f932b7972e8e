"""Proposes the fields of a PDF that has none, or not all: by the lines, boxes and leaders on its pages and their labels.

The same file gives the same fields, on any machine: how much is read of it is counted, not timed.
"""

import io
from collections.abc import Sequence

import pikepdf
import pypdfium2 as pdfium

from contracts.detection import DetectedField
from contracts.types import Area, Notice
from services.rendering.jobs.detection.candidates import Candidate
from services.rendering.jobs.detection.labels.labels import language_of
from services.rendering.jobs.detection.page.page_marks import page_marks
from services.rendering.jobs.detection.page.rulings import TooManyRules
from services.rendering.jobs.detection.page_fields import PageFields
from services.rendering.jobs.detection.proposals import proposals, without_occupied
from services.rendering.jobs.pdf.geometry import visible_page
from services.rendering.jobs.pdf.pdfium_paths import TooManyObjects
from services.rendering.jobs.pdf.pdfium_text import open_document
from services.rendering.jobs.pdf.refused import Refused

MOST_PAGES = 200
MOST_FIELDS = 1_000
MOST_OF_DOCUMENT = 500_000
"""Objects, corners of paths and characters that are read of a document; the page at which that is reached is the last one."""

_COST = 60
"""What looking at a place takes, in those."""

_LABELS = 400
"""By which the language of a document is guessed."""


def detect(data: bytes, occupied: Sequence[Area] = ()) -> tuple[list[DetectedField], list[Notice]]:
    """The fields of a PDF, in the order of reading, without those in places that are ``occupied``; and what could not be looked
    at. Raises Refused. Must run where memory and time are limited."""
    report: list[Notice] = []
    read: list[tuple[int, PageFields]] = []
    left = MOST_OF_DOCUMENT
    with pikepdf.open(io.BytesIO(data)) as pdf, open_document(data) as document:
        if len(document) != len(pdf.pages):
            raise Refused("The PDF is damaged: readers disagree about how many pages it has.")
        for index, page in enumerate(pdf.pages):
            if index == MOST_PAGES or left <= 0:
                report.append(_stopped(index + 1, len(document)))
                break
            try:
                marks, spent = page_marks(document, index, visible_page(page))
            except (TooManyObjects, TooManyRules):
                left -= MOST_OF_DOCUMENT // 10
                report.append(_too_full(index + 1))
                continue
            except pdfium.PdfiumError as error:
                raise Refused(f"The PDF is damaged: page {index + 1} cannot be read.") from error
            left -= spent
            read.append((index + 1, PageFields(marks)))
    language = language_of([label for _, page in read for label in page.labels][:_LABELS])
    pages: list[tuple[int, PageFields, list[Candidate]]] = []
    left = MOST_OF_DOCUMENT
    for number, page_fields in read:
        if left <= 0:
            report.append(_stopped(number, read[-1][0]))
            break
        try:
            places, count = page_fields.candidates(language)
        except TooManyRules:
            left -= MOST_OF_DOCUMENT // 10
            report.append(_too_full(number))
            continue
        left -= _COST * count
        pages.append((number, page_fields, places))
    fields = without_occupied(proposals(pages, language), occupied)
    if len(fields) > MOST_FIELDS:
        fields = fields[:MOST_FIELDS]
        message = f"More than {MOST_FIELDS:,} fields were detected; those after them are left out."
        report.append(Notice(code="detection_stopped", message=message))
    return fields, report


def _too_full(page: int) -> Notice:
    message = "The page has too many lines or characters to be a form; no fields were looked for on it."
    return Notice(code="detection_skipped", message=message, page=page)


def _stopped(page: int, pages: int) -> Notice:
    message = f"No fields were looked for on pages {page:,} to {pages:,}: the document is too long."
    return Notice(code="detection_stopped", message=message, page=page)
