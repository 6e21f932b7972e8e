"""The package of a DOCX: checked here, and written anew without what does not belong on paper, before python-docx opens it.

python-docx opens, writes and knows Word's elements, and trusts the file that it is given. So it gets one that was written
here (threats T21, T36): sizes are limited, what is kept can be reached over relationships of known kinds and nothing points
out of the file; every XML part was read by our own parser, without entities, network or a document type.
"""

import io
import posixpath
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import docx
from docx.document import Document
from docx.opc.constants import CONTENT_TYPE
from docx.opc.part import PartFactory, XmlPart
from lxml import etree
from PIL import Image

from contracts.types import Notice
from services.rendering.jobs.docx.names import (
    CONTENT_TYPES,
    OFFICE,
    RELATIONSHIPS,
    STRICT,
    TRANSITIONAL,
    VML,
    WORD,
    W,
    names,
)
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.pictures.preparing import MOST_PIXELS

MOST_PARTS = 2_000
MOST_BYTES = 64 * 2**20
MOST_XML_BYTES = 24 * 2**20
MOST_LINKS = 5_000
"""Relationships between parts: python-docx takes longer for each, the more there are."""
MOST_MARKS = 800_000
"""``<`` in all XML parts together: twice the elements. A page of a contract has some five hundred."""

_ROOT = ""
_TYPES = "[Content_Types].xml"
_MAIN_TYPES = ("wordprocessingml.document.main+xml", "wordprocessingml.template.main+xml")

_KEPT = names(
    "officeDocument styles stylesWithEffects settings fontTable font numbering theme themeOverride header footer footnotes"
    " endnotes image hyperlink chart chartStyle chartColorStyle chartUserShapes diagramData diagramLayout"
    " diagramQuickStyle diagramColors diagramDrawing customXml customXmlProps core-properties extended-properties"
)
_CONTENT_TYPES = {
    "officeDocument": CONTENT_TYPE.WML_DOCUMENT_MAIN,
    "header": CONTENT_TYPE.WML_HEADER,
    "footer": CONTENT_TYPE.WML_FOOTER,
    "footnotes": CONTENT_TYPE.WML_FOOTNOTES,
    "endnotes": CONTENT_TYPE.WML_ENDNOTES,
    "styles": CONTENT_TYPE.WML_STYLES,
    "settings": CONTENT_TYPE.WML_SETTINGS,
    "numbering": CONTENT_TYPE.WML_NUMBERING,
    "core-properties": CONTENT_TYPE.OPC_CORE_PROPERTIES,
}
"""What python-docx chooses the class of a part by; it follows from the relationship, as in Word, and not from the file."""
STORIES = ("officeDocument", "header", "footer", "footnotes", "endnotes")
"""Kinds of relationships whose parts hold text."""
_LOADING = (f"{W}subDoc", f"{W}control", f"{OFFICE}OLEObject", f"{W}objectEmbed", f"{W}objectLink")
_REFUSED = {
    "subDocument": "The DOCX is a master document: its parts are in other files.",
}
_LEFT_OUT = {
    "image": ("external_image", "A linked picture is not loaded and left out: embed it instead."),
    "vbaProject": ("macros_removed", "Macros were removed."),
    "control": ("controls_removed", "Controls (ActiveX) were removed."),
    "oleObject": ("objects_removed", "Embedded objects are shown as pictures; their data were removed."),
    "package": ("objects_removed", "Embedded objects are shown as pictures; their data were removed."),
    "attachedTemplate": ("template_removed", "The reference to a template file was removed."),
}
_CHUNK_TYPES = {"text/html": "html", "application/xhtml+xml": "html", "text/plain": "text"}
_UNKNOWN_CHUNK = (
    "The DOCX includes another document (altChunk) that is neither HTML nor text: open it in Word and save it again."
)
_STRICT_NAME = re.compile(
    rb"""((?:\bxmlns(?::[\w.-]+)?|\buri|\bType)\s*=\s*["'])""" + re.escape(STRICT.encode()) + rb"""(\w+)/([^"'\s]+)"""
)
_STRICT_WORDS = {b"extendedProperties": b"extended-properties", b"customProperties": b"custom-properties"}
_LINKS = ("http", "https", "mailto", "tel")
_PARSER_OPTIONS: dict[str, Any] = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "huge_tree": False,
    "remove_comments": True,
    "remove_pis": True,
}


@dataclass(frozen=True)
class Chunk:
    """A document that another one includes (``w:altChunk``): ``kind`` is html or text."""

    kind: str
    data: bytes


@dataclass
class Package:
    """A DOCX that was checked and opened. ``chunks``: the documents that it includes, by the name of the part that does and
    the relationship's ID."""

    document: Document
    chunks: dict[tuple[str, str], Chunk]
    report: list[Notice]

    def of_kind(self, *kinds: str) -> Iterator[XmlPart]:
        """The parts that relationships of these kinds lead to."""
        types = [_CONTENT_TYPES[kind] for kind in kinds]
        for part in self.document.part.package.iter_parts():
            if isinstance(part, XmlPart) and part.content_type in types:
                yield part

    def stories(self) -> list[Any]:
        """The roots of the text, of headers, footers and notes."""
        roots = [part.element for part in self.of_kind(*STORIES)]
        return [root for root in roots if root.tag.startswith("{" + WORD)]

    def save(self) -> bytes:
        output = io.BytesIO()
        self.document.save(output)
        return output.getvalue()


# python-docx has no class of its own for notes.
PartFactory.part_type_for.update({CONTENT_TYPE.WML_FOOTNOTES: XmlPart, CONTENT_TYPE.WML_ENDNOTES: XmlPart})


def open_package(data: bytes, *, name: str, most_bytes: int) -> Package:
    """Raises Refused for what is no DOCX, is damaged, or would be too much to look at."""
    _check_start(data, most_bytes)
    check = _Check(_unpacked(data), name)
    package, chunks, report = check.package(), check.chunks, check.report
    del check  # With all that it read: python-docx needs the room.
    return Package(docx.Document(package), chunks, report)


def _check_start(data: bytes, most_bytes: int) -> None:
    if not data:
        raise Refused("The file is empty.")
    if len(data) > most_bytes:
        raise Refused(f"The file is larger than {most_bytes // 1024 // 1024} MB.")
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise Refused(
            "The file is password-protected, or in the format of Word 97 (.doc). Save it as .docx without a password."
        )
    if not data.startswith(b"PK\x03\x04"):
        raise Refused("The file is not a DOCX.")


def _unpacked(data: bytes) -> dict[str, bytes]:
    """All parts. The sizes that the archive states are not believed."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            _check_entries(entries)
            parts: dict[str, bytes] = {}
            left = MOST_BYTES
            for entry in entries:
                with archive.open(entry) as stream:
                    content = stream.read(left + 1)
                left -= len(content)
                if left < 0:
                    raise Refused(f"The DOCX holds more than {MOST_BYTES // 1024 // 1024} MB when unpacked.")
                parts[entry.filename] = content
            return parts
    except Refused:
        raise
    # zipfile raises NotImplementedError for a compression it does not know, RuntimeError for an encrypted part.
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError) as error:
        raise Refused("The DOCX is damaged and cannot be unpacked.") from error


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    if len(entries) > MOST_PARTS:
        raise Refused(f"The DOCX has more than {MOST_PARTS:,} parts.")
    seen = set()
    for entry in entries:
        if entry.flag_bits & 1:
            raise Refused("The DOCX is password-protected; remove the password first.")
        name = entry.filename
        if name.startswith(("/", "\\")) or "\\" in name or ":" in name or ".." in name.split("/"):
            raise Refused("The DOCX has a part with a path that leads out of it.")
        if name.lower() in seen:
            raise Refused("The DOCX has two parts of the same name.")
        seen.add(name.lower())


class _Check:
    def __init__(self, parts: dict[str, bytes], name: str) -> None:
        self._parts, self._document = parts, name
        self._names = {part.lower(): part for part in parts}
        self._xml_bytes = self._marks = self._links = 0
        self._types: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._checked: dict[str, bytes] = {}
        self._notices: dict[str, str] = {}
        self.chunks: dict[tuple[str, str], Chunk] = {}

    @property
    def report(self) -> list[Notice]:
        return [Notice(code=code, message=text, document=self._document) for code, text in self._notices.items()]

    def package(self) -> io.BytesIO:
        """Return what may be opened, as a package of its own."""
        if _TYPES not in self._parts:
            raise Refused("The file is not a DOCX.")
        for entry in self._parsed(_TYPES):
            key = entry.get("PartName") or entry.get("Extension", "")
            self._types[key.lstrip("/").lower()] = entry.get("ContentType", "")
        main = self._main_part()
        waiting = [_ROOT]
        while waiting:
            waiting += self._follow(waiting.pop())
        if self._kinds.get(main) != "officeDocument":
            raise Refused("The DOCX is damaged: its text is missing.")
        types = etree.Element(f"{CONTENT_TYPES}Types")
        for name, kind in self._kinds.items():
            override = {"PartName": f"/{name}", "ContentType": self._content_type(name, kind)}
            etree.SubElement(types, f"{CONTENT_TYPES}Override", override)
        self._checked[_TYPES] = etree.tostring(types)
        output = io.BytesIO()
        with zipfile.ZipFile(output, "w") as archive:
            for name, data in self._checked.items():
                archive.writestr(name, data)
        return output

    def _content_type(self, name: str, kind: str) -> str:
        stated = self._stated_type(name)
        return _CONTENT_TYPES.get(kind) or ("application/xml" if stated in _CONTENT_TYPES.values() else stated)

    def _stated_type(self, name: str) -> str:
        return self._types.get(name.lower()) or self._types.get(name.lower().rpartition(".")[2], "")

    def _main_part(self) -> str:
        root = self._parsed("_rels/.rels") if "_rels/.rels" in self._parts else ()
        targets = [
            self._target(_ROOT, relationship) for relationship in root if _kind(relationship) == "officeDocument"
        ]
        main = next((name for name in targets if name), None)
        if main is None:
            raise Refused("The file is not a DOCX.")
        kind = self._types.get(main.lower(), "")
        if "macroEnabled" in kind:
            raise Refused("The file is a Word document with macros; save it as .docx.")
        if not kind.endswith(_MAIN_TYPES):
            raise Refused("The file is not a Word document (.docx).")
        return main

    def _follow(self, source: str) -> list[str]:
        """Keep what ``source`` refers to and may keep; its names, for those that are new."""
        name = self._names.get(_relationships_of(source).lower())
        if name is None:
            return []
        targets = []
        relationships = self._parsed(name)
        for relationship in list(relationships):
            if _kind(relationship) == "aFChunk":
                self.chunks[source, relationship.get("Id", "")] = self._chunk(source, relationship)
            target = self._kept_target(source, relationship)
            if target is None:
                relationships.remove(relationship)
            elif target:
                self._links += 1
                if self._links > MOST_LINKS:
                    raise Refused(f"The parts of the DOCX refer to each other more than {MOST_LINKS:,} times.")
                relationship.set("Target", f"/{target}")
                if target not in self._kinds:
                    self._keep(target, _kind(relationship))
                    targets.append(target)
            else:
                relationship.set("TargetMode", "External")
        self._checked[_relationships_of(source)] = etree.tostring(relationships)
        return targets

    def _kept_target(self, source: str, relationship: Any) -> str | None:
        """The part that it leads to, empty for a link to the web, None when it goes."""
        kind = _kind(relationship)
        external = relationship.get("TargetMode", "").lower() == "external"
        if kind in _REFUSED:
            raise Refused(_REFUSED[kind])
        if kind == "hyperlink" and external:
            return "" if _scheme(relationship.get("Target", "")) in _LINKS else None
        target = None if external else self._target(source, relationship)
        if kind in _KEPT and kind != "hyperlink" and target is not None:
            if kind == "image" and _is_svg(target, self._parts[target]):
                return None  # Word always has a picture of it besides, and this one may load files.
            return target
        if kind in _LEFT_OUT and (kind != "image" or external):
            code, message = _LEFT_OUT[kind]
            self._notices[code] = message
        return None

    def _chunk(self, source: str, relationship: Any) -> Chunk:
        name = self._target(source, relationship)
        if name is None:
            raise Refused(_UNKNOWN_CHUNK)
        kind = _CHUNK_TYPES.get(self._stated_type(name).partition(";")[0].strip().lower())
        if kind is None:
            raise Refused(_UNKNOWN_CHUNK)
        self._count(self._parts[name])
        return Chunk(kind, self._parts[name])

    def _target(self, source: str, relationship: Any) -> str | None:
        path = unquote(relationship.get("Target", ""))
        joined = posixpath.normpath(posixpath.join("/", posixpath.dirname(source), path)).lstrip("/")
        return self._names.get(joined.lower())

    def _keep(self, name: str, kind: str) -> None:
        self._kinds[name] = kind
        if kind == "image":
            _check_picture(self._parts[name])
        if kind in ("image", "font"):
            self._checked[name] = self._parts[name]
        else:
            root = self._parsed(name)
            _drop_addresses(root)
            self._checked[name] = etree.tostring(root, encoding="UTF-8")

    def _parsed(self, name: str) -> Any:
        data = self._parts[name]
        self._count(data)
        if STRICT.encode() in data:
            data = _STRICT_NAME.sub(_transitional, data)
        try:
            root = etree.fromstring(data, etree.XMLParser(**_PARSER_OPTIONS))
        except (etree.XMLSyntaxError, ValueError) as error:
            raise Refused(f"The DOCX is damaged: {posixpath.basename(name)} cannot be read.") from error
        if root.getroottree().docinfo.doctype:
            raise Refused("The DOCX has a document type declaration, which no Word document has.")
        if isinstance(root.tag, str) and root.tag.startswith("{" + STRICT):
            raise Refused("The file is a Strict Open XML document; save it as an ordinary Word document (.docx).")
        return root

    def _count(self, data: bytes) -> None:
        self._xml_bytes += len(data)
        self._marks += data.count(b"<") + (data.count(b"<\0") if data[:2] in (b"\xff\xfe", b"\xfe\xff") else 0)
        if self._xml_bytes > MOST_XML_BYTES or self._marks > MOST_MARKS:
            raise Refused("The DOCX has too much text and formatting to be processed.")


def _transitional(name: re.Match[bytes]) -> bytes:
    """The name of the same thing in an ordinary Word document: the two differ in their beginnings (ISO/IEC 29500-1, annex A,
    and 29500-4)."""
    words = [_STRICT_WORDS.get(word, word) for word in name[3].split(b"/")]
    return name[1] + TRANSITIONAL.encode() + name[2] + b"/2006/" + b"/".join(words)


def _relationships_of(part: str) -> str:
    folder, base = posixpath.split(part)
    return posixpath.join(folder, "_rels", f"{base}.rels")


def _kind(relationship: Any) -> str:
    return relationship.get("Type", "").rpartition("/")[2] if relationship.tag == f"{RELATIONSHIPS}Relationship" else ""


def _scheme(url: str) -> str:
    try:
        return urlsplit(url.strip()).scheme.lower()
    except ValueError:
        return ""


def _is_svg(name: str, data: bytes) -> bool:
    return name.lower().endswith((".svg", ".svgz")) or b"<svg" in data[:4096]


def _check_picture(data: bytes) -> None:
    """Check a picture. What cannot be read is left to LibreOffice, which draws nothing then."""
    try:
        with Image.open(io.BytesIO(data)) as picture:
            pixels = picture.width * picture.height
    except (OSError, SyntaxError, ValueError, struct.error):
        return
    except Image.DecompressionBombError:
        pixels = MOST_PIXELS + 1
    if pixels > MOST_PIXELS:
        raise Refused(f"A picture in the DOCX has more than {MOST_PIXELS // 1_000_000} million pixels.")


def _drop_addresses(root: Any) -> None:
    """Pictures come from parts of the file; an address beside them would be fetched."""
    for element in list(root.iter(*_LOADING)):
        if (parent := element.getparent()) is not None:
            parent.remove(element)
    for element in root.iter(f"{VML}*"):
        for key in list(element.attrib):
            if key.rpartition("}")[2] in ("src", "href", "althref"):
                del element.attrib[key]
