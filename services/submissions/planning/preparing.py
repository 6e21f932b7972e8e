"""What must be done outside before a transaction: pictures fetched, drawn and cleaned, texts tried against the fonts (whether
they fit is asked in ``creating.fitting``).

It may be done in vain, when the transaction then refuses: ``StagedFiles`` removes the files that were made.
"""

import base64
import binascii
import mimetypes
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote_to_bytes

from contracts.blobs import BlobRef
from contracts.errors import ServiceError, invalid
from contracts.fields import values as rules
from contracts.fields.rules import LONGEST_TEXT
from contracts.rpc import Rpc, rendering
from contracts.runtime.clock import uuid7
from contracts.runtime.data.files.staging import StagedFiles
from contracts.runtime.http.outbound import Outbound, OutboundFailed, OutboundRefused
from contracts.types import IMAGE_TYPES, FieldType
from services.submissions.rules.overrides import Source
from services.submissions.site import file_name

LONGEST_TYPED = 60
LONGEST_DATA_HEADER = 300
FETCH_SECONDS = 10.0
LARGEST_LOGO, KEPT_LOGO = 5_000_000, 500_000
"""Bytes of a picture of a party's own; of one that is kept while the other parties of the request are looked at."""
PREFIX = "submissions/"
MOST_NAMED = 10

_DATA_URI = re.compile(r"data:([\w.+/-]*)((?:;[\w=-]+)*?)(;base64)?,", re.ASCII)
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_DANGEROUS = {
    ending
    for endings in (
        ("apk", "app", "bat", "cgi", "cmd", "com", "cpl", "dll", "dmg", "exe", "gadget", "hta", "htm", "html", "inf"),
        ("jar", "js", "jse", "lnk", "mjs", "msc", "msi", "msp", "php", "pif", "ps1", "py", "reg", "rb", "scr", "sh"),
        ("shtml", "svg", "vb", "vbe", "vbs", "ws", "wsf", "wsh", "xhtml", "xml"),
    )
    for ending in endings
}

R = TypeVar("R")


class Bus(Protocol):
    def call(self, rpc: Rpc[Any, R], request: Any) -> R: ...


@dataclass(frozen=True)
class Prepared:
    """The file of an attachment, ready to be recorded."""

    source: Source
    filename: str
    file: BlobRef


@dataclass(frozen=True)
class Preparer:
    """Makes the files that a request asks for. ``max_bytes`` is the limit of one file. ``fetched`` are the small pictures that
    several parties may have in common."""

    bus: Bus
    outbound: Outbound
    max_bytes: int
    fetched: dict[str, tuple[bytes, str, str]] = field(default_factory=dict)

    def prepare(self, files: StagedFiles, sources: Sequence[Source]) -> list[Prepared]:
        """Make all of them, or raise a ServiceError that names the field at fault."""
        return [self._prepare(files, source) for source in sources]

    def prepare_upload(
        self, files: StagedFiles, upload: BlobRef, filename: str, party: str, kind: FieldType
    ) -> Prepared:
        """Make an upload ready as it will be kept: pictures encoded anew, other files as they are. ``party`` is a uuid."""
        if upload.size > self.max_bytes:
            raise ServiceError("too_large", f"A file must not be larger than {self.max_bytes:,} bytes.")
        name = file_name(filename)
        refuse_dangerous(name)
        source = Source(uuid7(), party, kind, "", "file")
        if kind not in IMAGE_TYPES:
            return Prepared(source, name, upload)
        picture = self._encode(files, upload, kind)
        return Prepared(source, f"{name.rpartition('.')[0] or name}.{extension(picture.media_type)}", picture)

    def _prepare(self, files: StagedFiles, source: Source) -> Prepared:
        try:
            return self._draw(files, source) if _is_typed(source) else self._store(files, source)
        except ServiceError as error:
            if error.code != "invalid":
                raise
            raise invalid(f"{source.path}: {error.message}", source.path, error.message) from error

    def _draw(self, files: StagedFiles, source: Source) -> Prepared:
        picture = self.bus.call(rendering.DRAW_SIGNATURE, rendering.DrawSignature(text=source.raw.strip()))
        return Prepared(source, f"{source.type.value}.png", files.track(picture))

    def _encode(self, files: StagedFiles, picture: BlobRef, kind: FieldType) -> BlobRef:
        return files.track(self.bus.call(rendering.PREPARE_IMAGE, rendering.PrepareImage(file=picture, type=kind)))

    def _store(self, files: StagedFiles, source: Source) -> Prepared:
        data, media_type, name = self._bytes(source)
        if not data:
            raise invalid("The file is empty.")
        if len(data) > self.max_bytes:
            raise invalid(f"The file must not be larger than {self.max_bytes:,} bytes.")
        media_type = next((recognised for magic, recognised in _MAGIC if data.startswith(magic)), media_type)
        name = name or f"{source.type.value}.{extension(media_type)}"
        if source.type not in IMAGE_TYPES:
            refuse_dangerous(name)
        file = files.put(data, media_type)
        if source.type in IMAGE_TYPES:
            file = self._encode(files, file, source.type)
        return Prepared(source, file_name(name), file)

    def _bytes(self, source: Source) -> tuple[bytes, str, str]:
        raw = source.raw.strip()
        if source.branding:
            return self._logo(raw)
        if raw[:8].lower().startswith(("http://", "https:/")):
            return self._fetched(raw, self.max_bytes)
        if match := _DATA_URI.match(raw[:LONGEST_DATA_HEADER]):
            rest = raw[match.end() :]
            data = _base64(rest) if match[3] else unquote_to_bytes(rest)
            return data, match[1] or "application/octet-stream", ""
        return _base64(raw), "application/octet-stream", ""

    def _logo(self, url: str) -> tuple[bytes, str, str]:
        """Fetched once in a request, however many parties have it."""
        logo = self.fetched.get(url) or self._fetched(url, min(self.max_bytes, LARGEST_LOGO))
        if len(logo[0]) <= KEPT_LOGO:
            self.fetched[url] = logo
        return logo

    def _fetched(self, url: str, limit: int) -> tuple[bytes, str, str]:
        try:
            fetched = self.outbound.fetch(url, max_bytes=limit, timeout=FETCH_SECONDS)
        except (OutboundRefused, OutboundFailed) as error:
            raise invalid(f"Error loading: {url[:200]}. {error.reason}.") from error
        media_type = fetched.media_type.partition(";")[0].strip().lower()
        if not re.fullmatch(r"[\w.+-]{1,100}/[\w.+-]{1,100}", media_type, re.ASCII):
            media_type = "application/octet-stream"
        return fetched.data, media_type, fetched.filename


def drawn_name(picture: BlobRef, filename: str, kind: FieldType) -> Prepared:
    """Return a typed signature or initials for the signing page, as rendering has drawn them, ready to be recorded."""
    return Prepared(Source(uuid7(), "", kind, "", "file"), file_name(filename), picture)


def check_texts(
    bus: Bus, texts: Sequence[tuple[str, str]], labels: Callable[[], Mapping[str, str]] | None = None
) -> None:
    """``texts`` with their fields: raises ServiceError naming the characters that no font can draw. ``labels``, asked for then
    only, are what the reader calls the fields."""
    doubtful = [(field, text) for field, text in texts if rules.needs_font_check(text)]
    if not doubtful:
        return
    answer = bus.call(rendering.CHECK_TEXT, rendering.CheckText(texts=[text for _, text in doubtful]))
    details = [
        {"field": field, "reason": f"has characters that no font can draw: {_characters_by_name(characters)}"}
        for (field, _), characters in zip(doubtful, answer.characters, strict=True)
        if characters
    ]
    if details:
        first = details[0]["field"]
        label = labels().get(first, first) if labels else first
        raise ServiceError("invalid", f"{label} {details[0]['reason']}", details)


def _characters_by_name(characters: str) -> str:
    """Return what cannot be drawn can often not be read on a screen either: each with its number and name."""
    described = [
        f"{character!r} (U+{ord(character):04X} {unicodedata.name(character, '')}".rstrip() + ")"
        for character in characters[:MOST_NAMED]
    ]
    return ", ".join(described) + (", ..." if len(characters) > MOST_NAMED else "")


def texts_in(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """All texts among values that came in, with the key they came under."""
    return [
        (key, item)
        for key, value in values.items()
        for item in (value if isinstance(value, list) else [value])
        if isinstance(item, str) and len(item) <= LONGEST_TEXT
    ]


def extension(media_type: str) -> str:
    """Return what files of this type are called, without the dot."""
    return (mimetypes.guess_extension(media_type) or ".dat")[1:]


def refuse_dangerous(filename: str) -> None:
    """Files that a computer would run or a browser would show as a page of ours are not taken (peer facts 1.5)."""
    ending = filename.rpartition(".")[2].lower() if "." in filename else ""
    if ending in _DANGEROUS:
        raise invalid(f"File type '.{ending}' is not allowed.", "file")


def adopted(files: StagedFiles, prepared: Sequence[Prepared]) -> list[Prepared]:
    """Return the same with files that a record may name."""
    return [replace(item, file=files.adopt(item.file)) for item in prepared]


def _is_typed(source: Source) -> bool:
    """A name to be drawn: for signatures and initials, anything short that is neither a URL nor a data URI."""
    raw = source.raw.strip()
    if source.type not in (FieldType.SIGNATURE, FieldType.INITIALS) or len(raw) >= LONGEST_TYPED:
        return False
    return not raw.lower().startswith(("http://", "https://", "data:"))


def _base64(text: str) -> bytes:
    compact = re.sub(r"\s", "", text)
    try:
        if "-" in compact or "_" in compact:
            return base64.urlsafe_b64decode(compact + "=" * (-len(compact) % 4))
        return base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)
    except (binascii.Error, ValueError):
        excerpt = text if len(text) <= 40 else f"{text[:40]}..."
        raise invalid(f"Invalid value, url, base64 or text < 60 chars is expected: {excerpt}") from None
