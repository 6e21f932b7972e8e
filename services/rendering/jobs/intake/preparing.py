"""What happens to every PDF that comes in, before anybody is asked to sign it.

The file is opened, measured against limits, repaired, freed of what acts instead of being read, and searched for field
tags; or it is refused in one sentence. What was changed is in the report. A file that is already signed is not changed at
all. The result is what is shown, filled and sealed: nobody ever works on the original.
"""

import io
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pikepdf

from contracts.rpc.rendering import TagField
from contracts.types import Area, Box, Notice, PageSize
from services.rendering.jobs.annotations.appearances import draw_missing_appearances, is_without_appearance
from services.rendering.jobs.annotations.hidden_layers import hide_annotations_of_hidden_layers
from services.rendering.jobs.archival.claim import claim_of, tell_the_truth
from services.rendering.jobs.content.font_unicode import mend_fonts
from services.rendering.jobs.drawing.flatten import flatten as flatten_form
from services.rendering.jobs.forms.existing_signatures import ExistingSignatures, existing_signatures
from services.rendering.jobs.forms.fields import fillable_widgets, form_fields, has_form
from services.rendering.jobs.forms.kinds import Widget
from services.rendering.jobs.forms.signature_fields import is_repaired
from services.rendering.jobs.intake.active_content import remove_active_content
from services.rendering.jobs.intake.cut_off import check_complete
from services.rendering.jobs.intake.damaged_pictures import blank, damaged_pictures
from services.rendering.jobs.intake.drawn_forms import check_drawn_forms
from services.rendering.jobs.intake.page_comparison import LeftOut, compare_pages
from services.rendering.jobs.intake.page_sources import page_sources
from services.rendering.jobs.intake.preflight import content_notices, page_notices
from services.rendering.jobs.intake.stream_limits import StreamLimits, check_streams
from services.rendering.jobs.intake.xfa import DYNAMIC_XFA, drop_xfa, is_dynamic
from services.rendering.jobs.pdf.geometry import (
    Rectangle,
    VisiblePage,
    has_unusable_media_box,
    rectangle_to_area,
    state_plainly,
    visible_page,
)
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.pdf.saving import saved
from services.rendering.jobs.pdf.values import items_of, number_of, text_of
from services.rendering.jobs.tags.finding import MOST_FIELDS, Surroundings, find_tags, tag_areas
from services.rendering.jobs.tags.merging import tag_fields
from services.rendering.jobs.tags.removal import remove_tags as remove_tag_text

SMALLEST_PAGE, LARGEST_PAGE = 3.0, 14_400.0
"""Units of default user space (ISO 32000-2, annex C)."""

_FARTHEST = 1_000_000.0
_WIDEST = 100 * LARGEST_PAGE
"""Points; half a kilometre."""
_OTHER_ENCRYPTION = re.compile(r"unsupported (?:security handler|encryption filter|/R or /V)", re.IGNORECASE)
_AFTER_END = re.compile(rb"\s{0,8}")


@dataclass(frozen=True)
class Limits:
    bytes: int = 25 * 1024 * 1024
    pages: int = 1_000
    objects: int = 200_000
    streams: StreamLimits = field(default_factory=StreamLimits)


@dataclass
class Prepared:
    """``file`` is the normalised PDF (``data`` itself when ``signed``), ``pages`` in points, upright."""

    file: bytes
    pages: list[PageSize]
    fields: list[TagField] = field(default_factory=list)
    signed: bool = False
    report: list[Notice] = field(default_factory=list)


_DEFAULT_LIMITS = Limits()


def prepare(
    data: bytes,
    *,
    name: str,
    remove_tags: bool = True,
    flatten: bool = False,
    limits: Limits = _DEFAULT_LIMITS,
    surroundings: Surroundings | None = None,
) -> Prepared:
    """``surroundings``: see ``find_tags``. Raises Refused when the file cannot become a document to sign. Must run where memory
    and time are limited."""
    _check_bytes(data, limits)
    with _open(data, limits) as pdf:
        pages = _check_pages(pdf, limits)
        warnings = pdf.get_warnings()
        damaged = bool(warnings)
        if _has_garbled_size(warnings):
            raise Refused("A page of the PDF has a size that makes no sense; print it to a new PDF and send that.")
        check_complete(pdf, warnings)
        check_streams(pdf, limits.streams)
        check_drawn_forms(pdf)
        signatures = existing_signatures(pdf)
        if damaged and not signatures.count and not signatures.usage_rights and b"/ByteRange" in data:
            raise Refused("The PDF is damaged and has lost a signature that it carries.")
        if signatures.count:
            return _prepare_signed(
                data, pdf, pages, signatures, damaged=is_repaired(warnings), name=name, flatten=flatten
            )
        return _prepare_unsigned(
            data,
            pdf,
            pages,
            signatures,
            damaged=damaged or bool(pdf.get_warnings()),  # Streams have been read by now.
            name=name,
            remove_tags=remove_tags,
            flatten=flatten,
            surroundings=surroundings,
        )


def _prepare_unsigned(
    data: bytes,
    pdf: pikepdf.Pdf,
    pages: list[VisiblePage],
    signatures: ExistingSignatures,
    *,
    damaged: bool,
    name: str,
    remove_tags: bool,
    flatten: bool,
    surroundings: Surroundings | None,
) -> Prepared:
    sent = page_sources(pdf)
    report = _mended_notices(pdf, signatures, damaged=damaged, name=name)
    report += page_notices(pdf, pages, document=name)
    report += _claimed(pdf, name)
    report += drop_xfa(pdf, data, document=name)
    hidden = _places(hide_annotations_of_hidden_layers(pdf), pages)
    fields = [] if flatten else form_fields(pdf, pages, document=name, report=report)
    report += _removed_notices(remove_active_content(pdf), name)
    annotated, left_to_readers = _annotated(pdf), _left_to_readers(pdf)
    redrawn = _places(left_to_readers, pages)
    report += draw_missing_appearances(pdf, document=name)
    redrawn += _places(left_to_readers, pages)
    arrows = _places(
        [(number, annotation) for number, annotation in left_to_readers if _is_empty_choice(annotation)], pages
    )
    if flatten:
        if has_form(pdf):
            report.append(Notice(code="flattened", message="The form fields became part of the pages.", document=name))
        flatten_form(pdf)
    if unreadable := damaged_pictures(pdf):
        report.append(_blanked(unreadable, name))
        blank(unreadable)
    _normalise(pdf, pages)
    report += mend_fonts(pdf, document=name)
    file = saved(pdf)
    tags_found = find_tags(file, pages, document=name, surroundings=surroundings)
    report += content_notices(pdf, tags_found.textless, document=name)
    if remove_tags and tags_found.tags:
        file, unremoved = remove_tag_text(pdf, file, tags_found.tags, document=name)
        tags_found.report += unremoved
    fields = tag_fields(tags_found.tags, document=name, report=tags_found.report) + fields
    if len(fields) > MOST_FIELDS:
        raise Refused(f"The document has more than {MOST_FIELDS:,} fields.")
    sealed = file
    if has_form(pdf) or annotated:
        flatten_form(pdf)  # `pdf` is of no further use: this is what sealing makes of it.
        sealed = saved(pdf)
    doubtful = [
        number
        for number, (before, after) in enumerate(zip(sent, page_sources(pdf), strict=True), 1)
        if damaged or before != after or number in annotated
    ]
    free = (
        arrows
        + hidden
        + [area for field in fields for area in field.areas]
        + [area for tag in tags_found.tags for area in tag_areas(tag)]
    )
    report += compare_pages(data, sealed, doubtful, LeftOut(free, redrawn), document=name)
    return Prepared(file, _sizes(pages), fields, signed=False, report=report + tags_found.report)


def _claimed(pdf: pikepdf.Pdf, name: str) -> list[Notice]:
    """Before anything is drawn: afterwards nobody sees that it was not there."""
    before, after = claim_of(pdf), tell_the_truth(pdf)
    if before == after:
        return []
    message = f"The PDF claims to be {before}; sealed it claims " + (
        f"to be {after}." if str(after) else "that no longer."
    )
    return [Notice(code="claim_changed", message=message, document=name)]


def _annotated(pdf: pikepdf.Pdf) -> set[int]:
    """The pages (from 1) with annotations that flattening must put onto them: all but plain links."""
    return {
        number
        for number, page in enumerate(pdf.pages, 1)
        for annotation in items_of(page.obj.get("/Annots"))
        if isinstance(annotation, pikepdf.Dictionary)
        and (annotation.get("/Subtype") != pikepdf.Name.Link or "/AP" in annotation)
    }


def _left_to_readers(pdf: pikepdf.Pdf) -> list[tuple[int, pikepdf.Dictionary]]:
    """Return what each reader draws in its own way, with its page (from 1): form fields, and annotations without an
    appearance."""
    return [
        (number, annotation)
        for number, page in enumerate(pdf.pages, 1)
        for annotation in items_of(page.obj.get("/Annots"))
        if isinstance(annotation, pikepdf.Dictionary)
        and (annotation.get("/Subtype") == pikepdf.Name.Widget or is_without_appearance(annotation))
    ]


def _is_empty_choice(widget: pikepdf.Dictionary) -> bool:
    """Return whether it is a drop-down list without a value: pdfium shows a button of it, for the screen."""
    field = widget if "/FT" in widget else widget.get("/Parent")
    return (
        isinstance(field, pikepdf.Dictionary) and field.get("/FT") == pikepdf.Name.Ch and not text_of(field.get("/V"))
    )


def _places(annotations: Sequence[tuple[int, pikepdf.Dictionary]], pages: Sequence[VisiblePage]) -> list[Area]:
    areas = []
    for number, annotation in annotations:
        corners = [number_of(coordinate, math.nan) for coordinate in items_of(annotation.get("/Rect"))]
        if len(corners) == 4 and all(abs(coordinate) <= _FARTHEST for coordinate in corners):
            x0, y0, x1, y1 = corners
            rectangle = Rectangle(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
            visible = pages[number - 1]
            areas.append(rectangle_to_area(visible.from_default_space(rectangle), visible, page=number))
    return areas


def _mended_notices(pdf: pikepdf.Pdf, signatures: ExistingSignatures, *, damaged: bool, name: str) -> list[Notice]:
    report = []
    if damaged:
        report.append(Notice(code="repaired", message="The PDF was damaged and has been repaired.", document=name))
    if pdf.is_encrypted:
        message = "The PDF was encrypted without a password to open it; it is stored decrypted."
        report.append(Notice(code="decrypted", message=message, document=name))
    if signatures.usage_rights:
        message = "Adobe Reader's usage rights were removed; they do not survive any change."
        report.append(Notice(code="usage_rights_removed", message=message, document=name))
    return report


def _prepare_signed(
    data: bytes,
    pdf: pikepdf.Pdf,
    pages: list[VisiblePage],
    signatures: ExistingSignatures,
    *,
    damaged: bool,
    name: str,
    flatten: bool,
) -> Prepared:
    """Not a byte is changed; what would have been is said in the report."""
    if signatures.forbids:
        raise Refused(
            f"The PDF is signed and nothing may be added to it: {signatures.forbids}. "
            "Ask for a version without that restriction, or have a document of its own signed that refers to this one."
        )
    if damaged or not _AFTER_END.fullmatch(data[data.rfind(b"%%EOF") + 5 :]):
        raise Refused("The PDF is signed and damaged: it cannot be repaired without breaking its signatures.")
    report = [
        Notice(
            code="signed",
            message="The PDF is already signed; it is kept as it is and only added to.",
            document=name,
        )
    ]
    if pdf.is_encrypted:
        message = "The PDF is encrypted without a password to open it; it stays so, because of its signatures."
        report.append(Notice(code="encryption_kept", message=message, document=name))
    report += page_notices(pdf, pages, document=name)
    if "/XFA" in pdf.Root.get("/AcroForm", {}):
        report.append(_kept_xfa(pdf, data, name))
    fields = form_fields(pdf, pages, document=name, report=report, signatures=signatures)
    sizes = _sizes(pages)
    if signatures.form_only:
        report.append(_form_only(name))
        _restrict(sizes, fillable_widgets(pdf, pages, signatures))
    # `pdf` is thrown away: its fonts are mended to read the tags.
    fonts = mend_fonts(pdf, document=name)
    report += [notice for notice in fonts if notice.code != "font_mended"]
    tags_found = find_tags(saved(pdf) if fonts else data, pages, document=name)
    report += content_notices(pdf, tags_found.textless, document=name, signed=True)
    tags = tag_fields(tags_found.tags, document=name, report=tags_found.report)
    if signatures.form_only:
        for tag in tags:
            tag.areas = []
    fields = tags + fields
    if tags_found.tags:
        message = "The text of the field tags stays visible, because removing it would break the signatures."
        report.append(Notice(code="tags_kept", message=message, document=name))
    if flatten and has_form(pdf):
        message = "The form was not flattened, because that would break the signatures."
        report.append(Notice(code="not_flattened", message=message, document=name))
    if remove_active_content(pdf):  # `pdf` is thrown away: this only tells what there is.
        message = "Scripts, actions or attachments stay in the PDF, because removing them would break the signatures."
        report.append(Notice(code="active_content_kept", message=message, document=name))
    return Prepared(data, sizes, fields, signed=True, report=report + tags_found.report)


def _form_only(name: str) -> Notice:
    message = (
        "The signatures of the PDF allow nothing but its own form fields to be filled in; what is filled into other fields "
        "is shown in the audit trail alone."
    )
    return Notice(code="form_only", message=message, document=name)


def _restrict(sizes: Sequence[PageSize], fillable: Mapping[int, Sequence[Widget]]) -> None:
    for number, size in enumerate(sizes, 1):
        areas = [widget.area for widget in fillable.get(number, ())]
        size.places = [Box(x=area.x, y=area.y, w=area.w, h=area.h) for area in areas]


def _kept_xfa(pdf: pikepdf.Pdf, data: bytes, name: str) -> Notice:
    """Raises Refused for a dynamic form."""
    if is_dynamic(pdf, data):
        raise Refused(DYNAMIC_XFA)
    message = (
        "The XFA part of the form stays, because removing it would break the signatures; Adobe's software shows it."
    )
    return Notice(code="xfa_kept", message=message, document=name)


def _blanked(damaged: Sequence[pikepdf.Stream], name: str) -> Notice:
    many = f"{len(damaged):,} pictures" if len(damaged) > 1 else "A picture"
    message = f"{many} of the PDF cannot be decoded by anybody; its place stays blank."
    return Notice(code="picture_damaged", message=message, document=name)


def _check_bytes(data: bytes, limits: Limits) -> None:
    if not data:
        raise Refused("The file is empty.")
    if len(data) > limits.bytes:
        raise Refused(f"The file is larger than {limits.bytes // 1024 // 1024} MB.")
    # Readers accept something before the header (ISO 32000-2, annex H of 32000-1, note 13).
    if b"%PDF-" not in data[:1024]:
        raise Refused(
            "The file is not a PDF, nor a picture that can become one (PNG, JPEG, WebP, HEIC, AVIF, TIFF, GIF, BMP)."
        )


@contextmanager
def _open(data: bytes, limits: Limits) -> Iterator[pikepdf.Pdf]:
    """Open the file; whatever qpdf trips over while it is worked on becomes Refused."""
    pikepdf.settings.set_qpdf_limits(
        flate_max_memory=limits.streams.single,
        run_length_max_memory=limits.streams.single,
        png_max_memory=limits.streams.single,
        tiff_max_memory=limits.streams.single,
        dct_max_memory=limits.streams.picture,
        max_stream_filters=8,
        doc_max_warnings=2_000,
        parser_max_container_size=1_000_000,
    )
    try:
        with pikepdf.open(io.BytesIO(data), suppress_warnings=True) as pdf:
            yield pdf
    except pikepdf.PasswordError as error:
        raise Refused("The PDF is password-protected; remove the password first.") from error
    except MemoryError as error:
        raise Refused("The PDF is too complicated to be processed.") from error
    except (
        pikepdf.PdfError,
        ArithmeticError,
        AttributeError,
        LookupError,
        NotImplementedError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        # pikepdf answers a wrong type in a hostile file with any of these.
        if "no pages" in str(error):
            raise Refused("The PDF has no pages.") from error
        if _OTHER_ENCRYPTION.search(str(error)):
            raise Refused(
                "The PDF is encrypted for certificates or by a rights management; remove that first."
            ) from error
        raise Refused(
            "The PDF is damaged and could not be repaired. Where a reader still opens it, print it to a new PDF and send that."
        ) from error


def _check_pages(pdf: pikepdf.Pdf, limits: Limits) -> list[VisiblePage]:
    if len(pdf.get_xref_table()) > limits.objects:
        raise Refused(f"The PDF has more than {limits.objects:,} objects.")
    count = len(pdf.pages)
    if count == 0:
        raise Refused("The PDF has no pages.")
    if count > limits.pages:
        raise Refused(f"The PDF has {count:,} pages; at most {limits.pages:,} are allowed.")
    pages = []
    for number, page in enumerate(pdf.pages, 1):
        visible = visible_page(page)
        _check_size(page, visible, number)
        pages.append(visible)
    return pages


def _check_size(page: pikepdf.Page, visible: VisiblePage, number: int) -> None:
    box = visible.box
    # A missing box is mended; what is meant by one that makes no sense, each reader would guess in its own way.
    if has_unusable_media_box(page):
        raise Refused(f"Page {number} of the PDF has a page size that makes no sense.")
    if max(box.width, box.height) > LARGEST_PAGE or max(map(abs, box)) > _FARTHEST:
        raise Refused(f"Page {number} of the PDF is larger than {LARGEST_PAGE:,.0f} units.")
    if min(box.width, box.height) < SMALLEST_PAGE:
        raise Refused(f"Page {number} of the PDF is smaller than {SMALLEST_PAGE:.0f} units.")
    if not SMALLEST_PAGE <= min(visible.width, visible.height) <= max(visible.width, visible.height) <= _WIDEST:
        raise Refused(f"Page {number} of the PDF has a unit (UserUnit) that makes it {visible.width:g} points wide.")


def _has_garbled_size(warnings: Sequence[str]) -> bool:
    """qpdf makes a page US Letter when it finds no size; that is a fair guess for a page that has none, but not for one
    whose size other readers can read (``1e9`` is no number in a PDF, yet some take it for one)."""
    return any("MediaBox is undefined" in line for line in warnings) and any(
        "unknown token" in line for line in warnings
    )


def _normalise(pdf: pikepdf.Pdf, pages: Sequence[VisiblePage]) -> None:
    if "/Size" not in pdf.trailer:
        pdf.trailer["/Size"] = 0  # qpdf writes the right number, but only into a trailer that has one.
    for key in ("/Perms", "/DSS"):
        if key in pdf.Root:
            del pdf.Root[key]
    for page, visible in zip(pdf.pages, pages, strict=True):
        state_plainly(page, visible)


_REMOVED = {
    "javascript": "Scripts were removed.",
    "action": "Actions other than links were removed.",
    "media": "Sound, video and 3D content was removed.",
    "embedded_file": "Attached files were removed.",
    "external_file": "References to other files were removed.",
    "portfolio": "The PDF is a portfolio; only its cover document is kept.",
}


def _removed_notices(removed: Counter[str], name: str) -> list[Notice]:
    return [
        Notice(code=f"{kind}_removed", message=message, document=name)
        for kind, message in _REMOVED.items()
        if removed[kind]
    ]


def _sizes(pages: Sequence[VisiblePage]) -> list[PageSize]:
    return [PageSize(width=round(page.width, 3), height=round(page.height, 3)) for page in pages]
