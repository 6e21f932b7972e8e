"""What must be done outside before a transaction: pictures fetched, drawn and cleaned, texts tried against the fonts (whether
they fit is asked in ``fitting``).

It may be done in vain, when the transaction then refuses; the files made are removed again. Until then they are among the
incoming ones, which are swept, so that neither a crash nor a time-out leaves files that nothing refers to for long; and
never a record whose file is missing.
"""

import base64
import binascii
import contextlib
import mimetypes
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote_to_bytes

from contracts.blobs import INCOMING, BlobRef
from contracts.errors import ServiceError, invalid
from contracts.fields import values as rules
from contracts.fields.rules import LONGEST_TEXT
from contracts.rpc import Rpc, rendering
from contracts.rpc.templates import Composition, TemplateSnapshot
from contracts.runtime.data.blobstore import BlobStore
from contracts.runtime.outbound import Outbound, OutboundFailed, OutboundRefused
from contracts.stored_documents import StoredDocument
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

B = TypeVar("B", Composition, TemplateSnapshot)
R = TypeVar("R")


class Bus(Protocol):
    def call(self, rpc: Rpc[Any, R], request: Any) -> R: ...


@dataclass(frozen=True)
class Prepared:
    """The file of an attachment, ready to be recorded. ``upload`` is what it was made of, if that is another file."""

    source: Source
    filename: str
    file: BlobRef
    upload: BlobRef | None = None


@dataclass(frozen=True)
class Workshop:
    """Everything outside that preparing needs, for one request. ``max_bytes`` is the limit of one file. ``fetched`` are the
    small pictures that several parties may have in common."""

    bus: Bus
    blobs: BlobStore
    outbound: Outbound
    max_bytes: int
    fetched: dict[str, tuple[bytes, str, str]] = field(default_factory=dict)

    def prepared(self, sources: Sequence[Source]) -> list[Prepared]:
        """All of it, or a ServiceError that names the field at fault."""
        made: list[Prepared] = []
        try:
            for source in sources:
                made.append(self._made(source))  # noqa: PERF401 - what is made must be known when the next one fails
        except BaseException:
            self.discard(made)
            raise
        return made

    def picture(self, file: BlobRef, kind: FieldType) -> BlobRef:
        """An uploaded picture, checked and encoded anew. The upload is removed when it is refused; otherwise it stays until
        what was made of it is referred to: a request whose process died comes again."""
        try:
            made: BlobRef = self.bus.call(rendering.PREPARE_IMAGE, rendering.PrepareImage(file=file, type=kind))
        except ServiceError as error:
            if error.code != "unavailable":
                self.blobs.delete(file.key)
            raise
        return made

    def discard(self, made: Sequence[Prepared]) -> None:
        """Nobody will refer to these files. Failing costs only space."""
        for one in made:
            for file in filter(None, (one.file, one.upload)):
                with contextlib.suppress(ServiceError):
                    self.blobs.delete(file.key)

    def _made(self, source: Source) -> Prepared:
        try:
            return self._drawn(source) if _is_typed(source) else self._uploaded(source)
        except ServiceError as error:
            if error.code != "invalid":
                raise
            raise invalid(f"{source.path}: {error.message}", source.path, error.message) from error

    def _drawn(self, source: Source) -> Prepared:
        drawn = self.bus.call(rendering.DRAW_SIGNATURE, rendering.DrawSignature(text=source.raw.strip()))
        return Prepared(source, f"{source.type.value}.png", drawn)

    def _uploaded(self, source: Source) -> Prepared:
        data, media_type, name = self._bytes(source)
        if not data:
            raise invalid("the file is empty")
        if len(data) > self.max_bytes:
            raise invalid(f"the file is larger than {self.max_bytes} bytes")
        media_type = next((known for magic, known in _MAGIC if data.startswith(magic)), media_type)
        name = name or f"{source.type.value}.{extension(media_type)}"
        if source.type not in IMAGE_TYPES:
            refuse_dangerous(name)
        file = self.blobs.put(data, media_type, INCOMING)
        if source.type in IMAGE_TYPES:
            return Prepared(source, file_name(name), self.picture(file, source.type), upload=file)
        return Prepared(source, file_name(name), file)

    def _bytes(self, source: Source) -> tuple[bytes, str, str]:
        raw = source.raw.strip()
        if source.branding:
            return self._logo(raw)
        if raw[:8].lower().startswith(("http://", "https:/")):
            return self._fetched(raw, self.max_bytes)
        if found := _DATA_URI.match(raw[:LONGEST_DATA_HEADER]):
            rest = raw[found.end() :]
            data = _base64(rest) if found[3] else unquote_to_bytes(rest)
            return data, found[1] or "application/octet-stream", ""
        return _base64(raw), "application/octet-stream", ""

    def _logo(self, url: str) -> tuple[bytes, str, str]:
        """Fetched once in a request, however many parties have it."""
        found = self.fetched.get(url) or self._fetched(url, min(self.max_bytes, LARGEST_LOGO))
        if len(found[0]) <= KEPT_LOGO:
            self.fetched[url] = found
        return found

    def _fetched(self, url: str, most: int) -> tuple[bytes, str, str]:
        try:
            fetched = self.outbound.fetch(url, max_bytes=most, timeout=FETCH_SECONDS)
        except (OutboundRefused, OutboundFailed) as error:
            raise invalid(f"Error loading: {url[:200]}. {error.reason}") from error
        media_type = fetched.media_type.partition(";")[0].strip().lower()
        if not re.fullmatch(r"[\w.+-]{1,100}/[\w.+-]{1,100}", media_type, re.ASCII):
            media_type = "application/octet-stream"
        return fetched.data, media_type, fetched.filename


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
        {"field": field, "reason": f"has characters that no font can draw: {_named(characters)}"}
        for (field, _), characters in zip(doubtful, answer.characters, strict=True)
        if characters
    ]
    if details:
        first = details[0]["field"]
        called = labels().get(first, first) if labels else first
        raise ServiceError("invalid", f"{called} {details[0]['reason']}", details)


def _named(characters: str) -> str:
    """What cannot be drawn can often not be read on a screen either: each with its number and name."""
    shown = [f"{one!r} (U+{ord(one):04X} {unicodedata.name(one, '')}".rstrip() + ")" for one in characters[:MOST_NAMED]]
    return ", ".join(shown) + (", ..." if len(characters) > MOST_NAMED else "")


def texts_in(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """All texts among values that came in, with the key they came under."""
    return [
        (key, item)
        for key, value in values.items()
        for item in (value if isinstance(value, list) else [value])
        if isinstance(item, str) and len(item) <= LONGEST_TEXT
    ]


def extension(media_type: str) -> str:
    """What files of this type are called, without the dot."""
    return (mimetypes.guess_extension(media_type) or ".dat")[1:]


def refuse_dangerous(filename: str) -> None:
    """Files that a computer would run or a browser would show as a page of ours are not taken (peer facts 1.5)."""
    ending = filename.rpartition(".")[2].lower() if "." in filename else ""
    if ending in _DANGEROUS:
        raise invalid(f"File type '.{ending}' is not allowed.", "file")


@contextlib.contextmanager
def keeping(workshop: Workshop, composition: B) -> Iterator[B]:
    """The documents of a one-off submission, or of a template that was filled for this one, under keys of this service, while
    they are written down; they are removed again when that is refused. Once they are written down, what they were copied from
    goes."""
    came = _keys(composition.documents)
    kept = [_kept(workshop.blobs, one) for one in composition.documents]
    try:
        yield composition.model_copy(update={"documents": kept})
    except ServiceError as error:
        if error.code != "unavailable":
            _remove(workshop.blobs, _keys(kept) - came)
        raise
    _remove(workshop.blobs, {key for key in came if key.startswith(INCOMING)})


@contextlib.contextmanager
def keeping_all(workshop: Workshop, compositions: Sequence[B]) -> Iterator[list[B]]:
    """As ``keeping``, for submissions that are written down together: each has its own copy of the documents."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(keeping(workshop, one)) for one in compositions]


@contextlib.contextmanager
def unless_refused(workshop: Workshop, *compositions: Composition | TemplateSnapshot) -> Iterator[None]:
    """What came along, or was made for it, goes when it is refused. It stays when the same may be tried again."""
    try:
        yield
    except ServiceError as error:
        if error.code != "unavailable":
            _remove(workshop.blobs, _incoming(compositions))
        raise


@contextlib.contextmanager
def throwing_away(workshop: Workshop, *compositions: Composition | TemplateSnapshot) -> Iterator[None]:
    """What came with a dry run, or was made for it, goes with it."""
    try:
        yield
    finally:
        _remove(workshop.blobs, _incoming(compositions))


def _incoming(compositions: Iterable[Composition | TemplateSnapshot]) -> set[str]:
    return {key for one in compositions for key in _keys(one.documents) if key.startswith(INCOMING)}


def _keys(documents: Sequence[StoredDocument]) -> set[str]:
    return {file.key for one in documents for file in (one.file, one.original)}


def _remove(blobs: BlobStore, keys: Iterable[str]) -> None:
    """Failing costs only space."""
    for key in keys:
        with contextlib.suppress(ServiceError):
            blobs.delete(key)


def _kept(blobs: BlobStore, document: StoredDocument) -> StoredDocument:
    original = blobs.adopt(document.original, PREFIX)
    same = document.file.key == document.original.key
    file = original if same else blobs.adopt(document.file, PREFIX)
    return document.model_copy(update={"file": file, "original": original})


def taken_over(workshop: Workshop, made: Sequence[Prepared], work: Callable[[Sequence[Prepared]], R]) -> R:
    """``work`` with the prepared files under keys of this service; they are removed again when it refuses."""
    adopted = [replace(one, file=workshop.blobs.adopt(one.file, PREFIX)) for one in made]
    try:
        result = work(adopted)
    except ServiceError as error:
        if error.code != "unavailable":
            workshop.discard([*adopted, *made])
        raise
    workshop.discard([one for one in made if one not in adopted])
    return result


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
        shown = text if len(text) <= 40 else f"{text[:40]}..."
        raise invalid(f"Invalid value, url, base64 or text < 60 chars is expected: {shown}") from None
