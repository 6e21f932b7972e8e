"""The signatures that a PDF says it carries, and whether all readers will see the same file.

What is found here is stated, not proven. The fields are read by qpdf, which repairs what it can; pyHanko's own reading is
compared with it by ``verify``.
"""

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pikepdf

from services.rendering.jobs.pdf.refused import Refused

_SEAL = "Seal "
MALFORMED = "Malformed PDF"
_LARGEST_TAIL = 8
_MOST_SIGNATURES = 100
_REPAIRED = re.compile(r"reconstruct|xref|cross-reference|startxref|damaged|recover", re.IGNORECASE)
_HARMLESS = "xref entry for the xref stream itself is missing"
"""Of cross-reference streams that do not list themselves: all readers read them alike, as qpdf's warning says."""
_BYTE_RANGE = re.compile(rb"/ByteRange\s*\[\s*(\d{1,10})\s+(\d{1,10})\s+(\d{1,10})\s+(\d{1,10})\s*\]")
_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:Z|([+-])(\d\d)'?(\d\d)?)?")


@dataclass(frozen=True)
class SignatureField:
    """A filled signature field, as the file states it; nothing of it is proven."""

    field: str
    sub_filter: str | None = None
    reason: str | None = None
    name: str | None = None
    claimed_time: datetime | None = None
    byte_range: tuple[int, ...] = ()
    contents: bytes = b""

    @property
    def end(self) -> int:
        """Return where the signed bytes end, and with them the version of the file that was signed."""
        return sum(self.byte_range[-2:])


def read(data: bytes) -> tuple[list[SignatureField], str | None]:
    """The filled signature fields, and what is wrong with the file as a whole, if anything (``structure_problem``).

    Raises Refused when it is no PDF that can be opened.
    """
    with _opened(data) as pdf:
        try:
            entries, warnings = list(fields_of(pdf)), [str(warning) for warning in pdf.get_warnings()]
            if pdf.is_encrypted:
                entries = [replace(entry, contents=_between(data, entry)) for entry in entries]
        except (pikepdf.PdfError, RuntimeError) as error:  # qpdf's own
            raise Refused(MALFORMED) from error
    return entries, structure_problem(data, warnings)


def _opened(data: bytes) -> pikepdf.Pdf:
    try:
        pdf = pikepdf.open(io.BytesIO(data))
        len(pdf.pages)
    except pikepdf.PasswordError as error:
        raise Refused("The PDF is protected by a password.") from error
    except (pikepdf.PdfError, RuntimeError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Refused(MALFORMED) from error
    return pdf


def removed(data: bytes, remaining: Iterable[SignatureField]) -> Iterator[tuple[SignatureField, bytes]]:
    """The signatures that an earlier version of the file carries and this one does not, each with that version of the file.

    A signature says itself where the version ends that it was made for, and an update leaves those bytes where they are.
    """
    ranges = {entry.byte_range for entry in remaining}
    ranges_in_file = {tuple(map(int, match.groups())) for match in _BYTE_RANGE.finditer(data)}
    for end in sorted({sum(numbers[-2:]) for numbers in ranges_in_file - ranges}):
        if end >= len(data) or b"%%EOF" not in data[max(0, end - _LARGEST_TAIL - 5) : end]:
            continue
        earlier = data[:end]
        try:
            entries, _ = read(earlier)
        except Refused:
            continue  # what looks like a signature there is a text or an attachment
        yield from ((entry, earlier) for entry in entries if entry.end == end and entry.byte_range not in ranges)


def structure_problem(data: bytes, warnings: Iterable[str]) -> str | None:
    """Return why readers may disagree about what this file shows; ``warnings`` are those of qpdf. None: they will not."""
    tail = data[data.rfind(b"%%EOF") + 5 :] if b"%%EOF" in data else data
    if len(tail) > _LARGEST_TAIL or tail.strip(b"\x00\t\n\x0c\r "):
        return "There is content after the end of the file: other readers may show something different from what was signed"
    if is_repaired(warnings):
        return (
            "The file is damaged and readers have to repair it: they may show something different from what was signed"
        )
    return None


def is_repaired(warnings: Iterable[str]) -> bool:
    """Some of qpdf's ``warnings`` say that the file's cross-references had to be repaired, which each reader does in its own
    way."""
    return any(_REPAIRED.search(warning) and _HARMLESS not in warning for warning in warnings)


def _between(data: bytes, entry: SignatureField) -> bytes:
    """The CMS, from between the signed ranges: it is never encrypted (7.6.2), but qpdf decrypts the one of a signature
    without a /Type."""
    if len(entry.byte_range) != 4:
        return entry.contents
    start, length, end, _ = entry.byte_range
    try:
        return bytes.fromhex(data[start + length : end].strip().removeprefix(b"<").removesuffix(b">").decode("ascii"))
    except ValueError:
        return entry.contents


def fields_of(pdf: pikepdf.Pdf) -> Iterator[SignatureField]:
    """The filled signature fields of an open document, parents before kids; rings and deep trees do no harm. A signature that
    is shown in several places has as many fields."""
    form = pdf.Root.get("/AcroForm")
    roots = form.get("/Fields") if isinstance(form, pikepdf.Dictionary) else None
    waiting: list[tuple[Any, str, Any]] = [(item, "", None) for item in _reversed(roots)]
    seen: set[tuple[int, int]] = set()
    signatures: set[tuple[int, int]] = set()
    count = 0
    while waiting and count < _MOST_SIGNATURES:
        node, parent, kind = waiting.pop()
        if not isinstance(node, pikepdf.Dictionary) or (node.is_indirect and node.objgen in seen):
            continue
        seen.add(node.objgen)
        own_name = _text(node.get("/T"))
        name = f"{parent}.{own_name}" if parent and own_name else own_name or parent
        kind = node.get("/FT", kind)
        value = node.get("/V")
        if kind == "/Sig" and isinstance(value, pikepdf.Dictionary):
            count += not value.is_indirect or value.objgen not in signatures
            signatures.add(value.objgen)
            yield _entry(name, value)
        waiting.extend((kid, name, kind) for kid in _reversed(node.get("/Kids")))


def seal_in(entries: Iterable[SignatureField]) -> SignatureField | None:
    """The last signature whose field is called as those of our seals are, else the last one: stamps and archive time-stamps
    follow a seal."""
    by_age = sorted(entries, key=lambda entry: entry.end)
    return next((entry for entry in reversed(by_age) if entry.field.startswith(_SEAL)), by_age[-1] if by_age else None)


def count(pdf: pikepdf.Pdf) -> int:
    """Return how many signatures there are: one may be shown in several places."""
    return len({entry.contents for entry in fields_of(pdf)})


def _reversed(items: Any) -> list[Any]:
    return list(items)[::-1] if isinstance(items, pikepdf.Array) else []


def _entry(name: str, signature: pikepdf.Object) -> SignatureField:
    sub_filter, contents = signature.get("/SubFilter"), signature.get("/Contents")
    return SignatureField(
        field=name,
        sub_filter=str(sub_filter).removeprefix("/") if isinstance(sub_filter, pikepdf.Name) else None,
        reason=_text(signature.get("/Reason")) or None,
        name=_text(signature.get("/Name")) or None,
        claimed_time=parse_pdf_date(_text(signature.get("/M"))),
        byte_range=_integers(signature.get("/ByteRange")),
        contents=bytes(contents) if isinstance(contents, pikepdf.String) else b"",
    )


def _integers(value: Any) -> tuple[int, ...]:
    """Empty for anything but an array of integers."""
    items: list[Any] = list(value) if isinstance(value, pikepdf.Array) else []
    whole = tuple(item for item in items if isinstance(item, int))
    return whole if len(whole) == len(items) else ()


def _text(value: Any) -> str:
    return str(value)[:500].replace("\x00", "") if isinstance(value, pikepdf.String) else ""


def parse_pdf_date(text: str) -> datetime | None:
    """ISO 32000-2, 7.9.4; None for anything else. A time without zone is taken as UTC."""
    if not (match := _DATE.match(text.strip())):
        return None
    year, month, day, hour, minute, second, sign, zone_hours, zone_minutes = match.groups()
    offset = timedelta(hours=int(zone_hours or 0), minutes=int(zone_minutes or 0)) * (-1 if sign == "-" else 1)
    try:
        parts = (int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0))
        return datetime(*parts, tzinfo=timezone(offset)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
