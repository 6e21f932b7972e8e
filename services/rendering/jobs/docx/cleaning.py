"""The text of a DOCX as it is meant to be signed: revisions accepted, nothing in it that loads or runs something.

python-docx opens and writes the parts, and knows nothing of revisions, notes, fields and included documents: it leaves them as
they are, so the elements are looked at here.
"""

from typing import Any

from contracts.types import Notice
from services.rendering.jobs.docx.blocks import is_bare, mend
from services.rendering.jobs.docx.html import insert_document
from services.rendering.jobs.docx.names import (
    PARAGRAPH,
    PARAGRAPH_PROPERTIES,
    RELATIONSHIP_ID,
    RUN,
    TABLE,
    TEXT_BOX,
    W,
    names,
)
from services.rendering.jobs.docx.package import STORIES, Package
from services.rendering.jobs.pdf.refused import Refused

_HARMLESS_FIELDS = names(
    "= ADVANCE AUTHOR AUTONUM AUTONUMLGL AUTONUMOUT BIBLIOGRAPHY CITATION COMMENTS COMPARE CREATEDATE DATE DOCPROPERTY"
    " DOCVARIABLE EDITTIME EQ"
    " FORMCHECKBOX FORMDROPDOWN FORMTEXT HYPERLINK IF INDEX INFO KEYWORDS LASTSAVEDBY"
    " LISTNUM MERGEFIELD NOTEREF NUMCHARS NUMPAGES NUMWORDS PAGE PAGEREF PRINTDATE QUOTE REF REVNUM SAVEDATE"
    " SECTION SECTIONPAGES SEQ SET STYLEREF SUBJECT SYMBOL TA TC TIME TITLE TOA TOC USERADDRESS USERINITIALS USERNAME XE"
)
"""Fields that take what they show from the document. Others keep the text that Word has stored for them."""

_DELETED = (f"{W}del", f"{W}moveFrom")
_DELETED_CELLS = {(f"{W}trPr", f"{W}del"), (f"{W}trPr", f"{W}moveFrom"), (f"{W}tcPr", f"{W}cellDel")}
_INSERTED = (f"{W}ins", f"{W}moveTo")
_REVISION_MARKS = tuple(
    f"{W}{name}"
    for name in names(
        "rPrChange pPrChange sectPrChange tblPrChange tblGridChange trPrChange tcPrChange tblPrExChange numberingChange"
        " moveFromRangeStart moveFromRangeEnd moveToRangeStart moveToRangeEnd cellIns cellDel cellMerge"
    )
)
_PROPERTIES = frozenset({f"{W}rPr", f"{W}trPr", f"{W}tcPr", f"{W}pPr", f"{W}sectPr"})
_COMMENTS = tuple(f"{W}{name}" for name in names("commentReference commentRangeStart commentRangeEnd annotationRef"))
_NOTES = {f"{W}footnoteReference": "footnotes", f"{W}endnoteReference": "endnotes"}
_HEADERS = (f"{W}headerReference", f"{W}footerReference")
_SETTINGS = (f"{W}mailMerge", f"{W}attachedTemplate", f"{W}trackRevisions", f"{W}linkStyles", f"{W}saveThroughXslt")
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_CHOICE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Choice"


def clean(package: Package, *, name: str) -> None:
    """Changes the parts; what the author should know is added to the report."""
    _include(package, name)
    revised = commented = False
    for root in package.stories():
        revised |= _accept_revisions(root)
        commented |= _remove_all(root, _COMMENTS)
        _drop_fallbacks(root)
        _disarm_fields(root)
    for settings in package.of_kind("settings"):
        _remove_all(settings.element, _SETTINGS)
    _drop_references(package)
    if commented:
        message = "Comments were left out: they are not part of the document's text."
        package.report.append(Notice(code="comments_removed", message=message, document=name))
    if revised:
        message = "Tracked changes were accepted: the document is shown as it reads with all of them."
        package.report.append(Notice(code="revisions_accepted", message=message, document=name))


def _include(package: Package, name: str) -> None:
    """Puts the documents that this one includes (``w:altChunk``) where it does: their text, with formatting as simple as that
    of a variable's value."""
    included = False
    for part in package.of_kind(*STORIES):
        for place in list(part.element.iter(f"{W}altChunk")):
            chunk = package.chunks.get((part.partname.membername, place.get(RELATIONSHIP_ID, "")))
            if chunk is None:
                _remove(place)
                continue
            included = True
            paragraph = place.makeelement(PARAGRAPH)
            run = place.makeelement(RUN)
            paragraph.append(run)
            place.getparent().replace(place, paragraph)
            try:
                insert_document(chunk.data, run, is_html=chunk.kind == "html")
            except Refused as refused:
                raise Refused("The document that the DOCX includes (altChunk) is too large or too deep.") from refused
    if not included:
        return
    message = "A document that is included in this one is shown with its text and simple formatting, without pictures."
    package.report.append(Notice(code="included_document", message=message, document=name))


def _accept_revisions(root: Any) -> bool:
    """Remove what was deleted, keep what was inserted. True when there was anything."""
    changed = False
    joined = [
        mark.getparent().getparent().getparent()
        for mark in root.iter(*_DELETED)
        if mark.getparent().tag == f"{W}rPr" and mark.getparent().getparent().tag == f"{W}pPr"
    ]
    for element in list(root.iter(*_DELETED, *_INSERTED, *_REVISION_MARKS)):
        parent = element.getparent()
        if parent is None:
            continue
        changed = True
        if parent.tag in _PROPERTIES:
            if (parent.tag, element.tag) in _DELETED_CELLS:
                _remove(parent.getparent())
            else:
                parent.remove(element)
        elif element.tag in _INSERTED:
            _unwrap(element)
        else:
            parent.remove(element)
    for paragraph in joined:
        _join(paragraph)
    if changed:
        mend(root)
    return changed


def _join(paragraph: Any) -> None:
    """Its mark was deleted: its text stands at the beginning of the paragraph behind it, whose mark stays."""
    behind = next(paragraph.itersiblings(PARAGRAPH, TABLE), None)
    if behind is None or (behind.tag == TABLE and not is_bare(paragraph)):
        return
    if behind.tag == PARAGRAPH:
        content = [child for child in paragraph if child.tag != PARAGRAPH_PROPERTIES]
        place = 0 if behind.pPr is None else 1
        behind[place:place] = content
    _remove(paragraph)


def _unwrap(element: Any) -> None:
    parent = element.getparent()
    place = parent.index(element)
    for child in reversed(list(element)):
        parent.insert(place + 1, child)
    parent.remove(element)


def _drop_fallbacks(root: Any) -> None:
    """A text box comes twice, for Word of today and of old; what is drawn is the first."""
    for fallback in list(root.iter(_FALLBACK)):
        parent = fallback.getparent()
        first = parent.find(_CHOICE) if parent is not None else None
        if first is not None and next(first.iter(TEXT_BOX), None) is not None:
            parent.remove(fallback)


def _disarm_fields(root: Any) -> None:
    for simple in list(root.iter(f"{W}fldSimple")):
        if not _is_harmless(simple.get(f"{W}instr", "")):
            _unwrap(simple)
    open_: list[list[Any]] = []
    for element in list(root.iter(f"{W}fldChar", f"{W}instrText")):
        if element.tag == f"{W}instrText":
            if open_:
                open_[-1].append(element)
            else:
                _remove(element)
        elif element.get(f"{W}fldCharType") == "begin":
            open_.append([])
        elif element.get(f"{W}fldCharType") == "end" and open_:
            _disarm(open_.pop())
    for unfinished in open_:
        _disarm(unfinished)


def _disarm(instructions: list[Any]) -> None:
    """An instruction may be spread over runs."""
    if _is_harmless("".join(element.text or "" for element in instructions)):
        return
    for element in instructions:
        element.text = ""
    if instructions:
        instructions[0].text = " QUOTE "


def _is_harmless(instruction: str) -> bool:
    word = (instruction.split() or ["="])[0].upper()
    return word in _HARMLESS_FIELDS or word.startswith("=")


def _drop_references(package: Package) -> None:
    """LibreOffice refuses a document that refers to notes, headers or footers that are not there."""
    missing = tuple(name for name, kind in _NOTES.items() if not any(package.of_kind(kind)))
    for root in package.stories():
        _remove_all(root, missing)
    main = package.document.part
    for reference in list(main.element.iter(*_HEADERS)):
        if reference.get(RELATIONSHIP_ID) not in main.rels:
            _remove(reference)


def _remove_all(root: Any, names: tuple[str, ...]) -> bool:
    """True when there were any."""
    elements = list(root.iter(*names)) if names else []
    for element in elements:
        _remove(element)
    return bool(elements)


def _remove(element: Any) -> None:
    parent = element.getparent()
    if parent is None:
        return
    parent.remove(element)
    if parent.tag == RUN and not len(parent) and parent.getparent() is not None:
        parent.getparent().remove(parent)
