"""Makes docs/fields.md with docs/fields/*.png: every type of field and every attribute of a tag, in the document, as the field
that it becomes, and in the sealed file. Every picture is the real output.

.venv/bin/python -m docs.programs.make_fields
"""

import hashlib
import io
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pikepdf
import pypdfium2
from pikepdf import Dictionary
from PIL import Image, ImageDraw, ImageFont

from contracts.blobs import BlobRef
from contracts.fields import conditions
from contracts.fields import values as rules
from contracts.rpc.rendering import FieldValue, FilledAttachment, FillRequest, PartySummary
from contracts.stored_documents import StoredDocument
from contracts.types import STATIC_TYPES, Account, Area, FieldDefinition, FieldType, PageSize
from docs.programs.field_specimens import (
    ATTRIBUTES,
    LEFT_OUT,
    NO_TAGS,
    PAPER,
    PHOTO,
    REFUSED,
    SIGNATURE,
    TYPES,
    WAYS,
    Specimen,
)
from services.rendering.jobs.drawing import fill
from services.rendering.jobs.drawing.signature_image import draw_signature
from services.rendering.jobs.intake import preparing
from services.rendering.jobs.sealing import certificates, cms, reserving
from services.rendering.jobs.text.embedding import FontEmbedder
from services.rendering.jobs.text.layout import Style, draw, layout
from services.rendering.protocol.messages import SignatureText
from services.submissions.rules.values import filling
from services.templates.rules.domain import DocumentFields, Limits, define

ROOT = Path(__file__).resolve().parents[2]
PAGE, FOLDER = ROOT / "docs" / "fields.md", ROOT / "docs" / "fields"

WIDTH, HEIGHT = 595.0, 842.0
LINE, SIZE, LEFT, FROM_TOP = 26.0, 10.0, 40.0, 120.0
"""Points: of the specimen's lines, and where on the page they are."""
SEEN = 460.0
"""Points of the page's width that a picture shows."""
SCALE = 1.4
GUTTER, COLORS = 78, 48
WHEN = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)
NAME = "Ana Kowalska"
DOCUMENT = "document"
HEAD = """# Fields

Made by `python -m docs.programs.make_fields` from `docs/programs/field_specimens.py`. Each picture has
three parts: the tag in the document, the field that it becomes, and the sealed file.

## Three ways to make a field

- **A tag** in the text of a PDF or Word document: `{{Name;attribute=value;...}}`. It may stand wherever text does: in tables,
  headers, footnotes, text boxes, content controls, turned and vertical text. In Word a field takes over font, size and
  alignment of its tag's text, unless the tag says otherwise; placeholders of variables (`[[name]]`) may stand in tags.
- **An element** in HTML, as large as CSS makes it: `<signature-field name="Signature">`, with the same attributes
  (`font-size` or `font_size`). Options may be `<option>` elements in it.
- **JSON**, with the areas where it is: `name`, `type`, `role`, `required`, `readonly`, `default_value`, `title`, `description`,
  `options`, `conditions`; `min`, `max`, `step`, `pattern` and `message` in `validation`, the rest in `preferences`.
{ways}
Tags of one name and role are one field with several areas, on whatever pages. A radio or multiple field may have a tag for each
option.

## Text that does not fit

Text that does not fit into its field is made smaller, then wrapped, then made smaller down to 4 points. What does not fit
then, or has characters that no font can draw, is refused when it is entered, with the reason.

## What is a tag

A tag is read as it stands on the page, in whatever order the page was drawn. These are none: a tag without an end on its
page, or with a brace that does not pair up; one whose name or role ends with its paragraph and goes on in the next; one
without a name (it may be missing only where the tag begins with an attribute and says its type: `{{type=checkbox}}`); one
whose role is longer than 60 characters or has braces in it. Their text stays on the page, and the [report](preflight.md)
names them with their page.

On a file that came signed a field whose area is a form field of the file goes into that form field, and others are the look
of our signature. Where its signatures allow nothing but the form to be filled in, areas elsewhere are refused (`places` of a
document's pages says where they can be), and a field without areas is asked for and shown in the audit trail alone, as what
tags ask for is ([documents](documents.md)).
"""


FAULTS = [
    ("Tags that are none", "They stay on the page; the report says why (`unknown_tag`).", NO_TAGS),
    (
        "Attributes that are left out",
        "The report (`tag_attribute`) says of each what is wrong, “and was left out”; the field is made without it.",
        LEFT_OUT,
    ),
    (
        "JSON that is refused",
        "The answer is 422 (`invalid`), and nothing is made; `details` names the field (`fields[0].options ...`) and says:",
        REFUSED,
    ),
]


def picture(specimen: Specimen) -> Image.Image:
    """The specimen in its three states, one below the other."""
    source = document(specimen.lines)
    prepared = preparing.prepare(source, name=DOCUMENT)
    document_fields = DocumentFields(
        DOCUMENT, DOCUMENT, "documents[0]", "file", prepared.pages, tag_fields=prepared.fields
    )
    fields = define([document_fields], Limits()).fields
    sealed = seal_with(prepared.file, prepared.pages, fields, specimen.values)
    looks = {"document": shown(source), "field": with_areas(shown(prepared.file), fields), "sealed": shown(sealed)}
    parts = [(name, cut(look, len(specimen.lines))) for name, look in looks.items()]
    height = sum(part.height for _, part in parts) + len(parts) - 1
    sheet = Image.new("RGB", (parts[0][1].width + GUTTER, height), (225, 229, 235))
    pen, font, top = ImageDraw.Draw(sheet), ImageFont.load_default(size=12), 0
    for name, part in parts:
        pen.rectangle((0, top, GUTTER - 1, top + part.height - 1), fill=(244, 246, 249))
        pen.text((7, top + part.height / 2 - 8), name, fill=(90, 100, 115), font=font)
        sheet.paste(part, (GUTTER, top))
        top += part.height + 1
    return sheet


def document(lines: Sequence[str]) -> bytes:
    """A page with these lines of text."""
    pdf = pikepdf.new()
    page = pdf.add_blank_page(page_size=(WIDTH, HEIGHT))
    embedder, content = FontEmbedder(pdf), b""
    for number, line in enumerate(lines):
        placed = layout(line, Style(size=SIZE))
        content += draw(placed, LEFT, HEIGHT - FROM_TOP - LINE * number - 18, embedder)
    page.obj.Contents, page.obj.Resources = pdf.make_stream(content), Dictionary(Font=embedder.resources)
    embedder.finish()
    return saved(pdf)


def cut(look: Image.Image, lines: int) -> Image.Image:
    """The part of the page with the lines."""
    left, top = (LEFT - 8) * SCALE, (FROM_TOP - 3) * SCALE
    return look.crop((round(left), round(top), round(left + SEEN * SCALE), round(top + (LINE * lines + 6) * SCALE)))


def seal_with(data: bytes, pages: list[PageSize], fields: Sequence[FieldDefinition], texts: dict[str, Any]) -> bytes:
    """Filled in as a submission is, and sealed."""
    stored = StoredDocument(uuid=DOCUMENT, name=DOCUMENT, file=_blob(data), original=_blob(data), pages=pages)
    signing = filling.Signing({"name": NAME}, WHEN, "Europe/Vienna")
    by_name = {field.name: field for field in fields}
    values = {
        by_name[name].uuid: value
        if by_name[name].type is FieldType.VERIFICATION  # set by the identity provider's answer alone
        else rules.coerce(by_name[name], value)
        for name, value in texts.items()
    }
    values = filling.computed(fields, fields, {}, filling.with_defaults(fields, values, signing), {})
    hidden = conditions.hidden(fields, {}, values)
    files = attachments()
    request = FillRequest(
        submission_id=1,
        submission_slug="example",
        name=DOCUMENT,
        account=Account(time_zone="Europe/Vienna"),
        documents=[stored],
        values=[
            FieldValue(field=field, value=values.get(field.uuid), submitter_id=1)
            for field in fields
            if field.uuid not in hidden and (values.get(field.uuid) or field.type in STATIC_TYPES)
        ],
        attachments=[
            FilledAttachment(uuid=uuid, filename=name, file=_blob(content), created_at=WHEN)
            for uuid, (name, content) in files.items()
        ],
        parties=[PartySummary(id=1, role="Tenant", name=NAME, email="ana@example.com", status="completed", completed_at=WHEN)],
    )  # fmt: skip
    faults = fill.faults(request)
    assert not faults, faults
    identity = _identity()
    with pikepdf.open(io.BytesIO(data)) as pdf:
        fill.fill_into(pdf, stored, request, {uuid: content for uuid, (_, content) in files.items()})
        reserved = reserving.reserve(pdf, SignatureText(identity.name, "Sealed", WHEN), identity.signer.size)
    envelope = identity.signer.envelope(identity.signer.sign(reserved.digest))
    return cms.insert(reserved.data, reserved.start, reserved.size, envelope)


def with_areas(page: Image.Image, fields: Sequence[FieldDefinition]) -> Image.Image:
    """The page with the fields' areas marked and named."""
    ground = page.convert("RGBA")
    marks = Image.new("RGBA", page.size, (0, 0, 0, 0))
    pen, font = ImageDraw.Draw(marks), ImageFont.load_default(size=11)
    for field in fields:
        for area in field.areas:
            box = _pixels(area, page)
            pen.rectangle(box, fill=(60, 130, 246, 36), outline=(60, 130, 246, 200))
            if box[3] - box[1] > 11 and box[2] - box[0] > pen.textlength(field.name, font) + 6:
                pen.text((box[0] + 4, (box[1] + box[3]) / 2 - 7), field.name, fill=(40, 90, 180, 255), font=font)
    return Image.alpha_composite(ground, marks).convert("RGB")


def _pixels(area: Area, page: Image.Image) -> tuple[float, float, float, float]:
    left, top = area.x * page.width, area.y * page.height
    return left, top, left + area.w * page.width, top + area.h * page.height


def shown(data: bytes) -> Image.Image:
    with pypdfium2.PdfDocument(data) as opened:
        image: Image.Image = opened[0].render(scale=SCALE).to_pil().convert("RGB")
        return image


@cache
def attachments() -> dict[str, tuple[str, bytes]]:
    """Name and content of the files that specimens speak of."""
    photo, buffer = Image.linear_gradient("L").resize((120, 90)).convert("RGB"), io.BytesIO()
    ImageDraw.Draw(photo).ellipse((35, 20, 85, 70), fill=(250, 190, 60))
    photo.save(buffer, "PNG")
    return {
        SIGNATURE: ("signature.png", draw_signature(NAME)),
        PHOTO: ("photo.png", buffer.getvalue()),
        PAPER: ("passport.pdf", b"%PDF-1.7"),
    }


@cache
def _identity() -> certificates.SealIdentity:
    return certificates.parse(certificates.make(certificates.Names(), "ec-p256", datetime.now(UTC)))


def _blob(data: bytes) -> BlobRef:
    return BlobRef(key="example", sha256=hashlib.sha256(data).hexdigest(), size=len(data), media_type="application/pdf")


def saved(pdf: pikepdf.Pdf) -> bytes:
    buffer = io.BytesIO()
    pdf.save(buffer)
    return buffer.getvalue()


def page() -> str:
    """The whole page."""
    ways = "".join(f"\n```\n{entry.tag}\n{entry.html}\n{entry.json}\n```\n" for entry in WAYS)
    lines = [HEAD.replace("{ways}", ways), "\n## Types\n\n| Type | What it is |\n|---|---|"]
    lines += [_row(entry) for entry in TYPES]
    lines.append("\n## Attributes of tags\n\n| Attribute | What it does |\n|---|---|")
    lines += [_row(entry) for entry in ATTRIBUTES]
    for title, text, faults in FAULTS:
        lines += [f"\n## {title}\n\n{text}\n\n| Written | What is said | What it means |\n|---|---|---|"]
        lines += [f"| `{_short(entry.written)}` | {entry.message} | {entry.means} |" for entry in faults]
    return "\n".join(lines) + "\n"


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:30]}...{text[-6:]}"


def _row(specimen: Specimen) -> str:
    names = ", ".join(f"`{name}`" for name in specimen.names)
    if not specimen.lines:
        return f"| {names} | {specimen.says} |"
    tags = " ".join(line for line in specimen.lines if line)
    seen = (
        f"![{names.replace('`', '')}: the tag, the field, the sealed file](fields/{_folder(specimen)}/{specimen.file})"
    )
    return f"| {names} | {specimen.says}<br>`{tags}`<br>{seen} |"


def _folder(specimen: Specimen) -> str:
    return "types" if specimen in TYPES else "attributes"


def main() -> None:
    for specimen in (*TYPES, *ATTRIBUTES):
        if specimen.lines:
            target = FOLDER / _folder(specimen) / specimen.file
            target.parent.mkdir(parents=True, exist_ok=True)
            look = picture(specimen).quantize(COLORS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
            look.save(target, optimize=True)
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
