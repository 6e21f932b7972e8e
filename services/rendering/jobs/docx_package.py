"""The parts of a DOCX: checked before anything reads them, and written anew without those that do not belong on paper.

What is kept is what can be reached over relationships of known kinds; scripts, controls, embedded files, linked files and
templates are left behind, and so is everything that points out of the file (threats T21, T36).
"""

import io
import posixpath
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from lxml import etree
from PIL import Image

from contracts.types import Notice
from services.rendering.jobs.docx_names import CONTENT_TYPES, RELATIONSHIPS, STRICT, TRANSITIONAL, WORD
from services.rendering.jobs.pictures import MOST_PIXELS
from services.rendering.jobs.refused import Refused

MOST_PARTS = 2_000
MOST_BYTES = 64 * 2**20
MOST_XML_BYTES = 24 * 2**20
MOST_MARKS = 800_000
"""``<`` in all XML parts together: twice the elements. A page of a contract has some five hundred."""

_ROOT = ""
_TYPES = "[Content_Types].xml"
_MAIN_TYPES = ("wordprocessingml.document.main+xml", "wordprocessingml.template.main+xml")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KEPT = _words(
    "officeDocument styles stylesWithEffects settings fontTable font numbering theme themeOverride header footer footnotes"
    " endnotes image hyperlink chart chartStyle chartColorStyle chartUserShapes diagramData diagramLayout"
    " diagramQuickStyle diagramColors diagramDrawing customXml customXmlProps core-properties extended-properties"
)
STORIES = frozenset({"officeDocument", "header", "footer", "footnotes", "endnotes"})
"""Kinds of relationships whose parts hold text."""
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
    """``trees``: the XML parts by name, ``others``: the rest; ``kinds``: by which relationship each was found; ``chunks``: what
    parts include, by the part's name and the relationship's ID."""

    main: str
    trees: dict[str, Any] = field(default_factory=dict)
    others: dict[str, bytes] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    chunks: dict[tuple[str, str], Chunk] = field(default_factory=dict)
    report: list[Notice] = field(default_factory=list)

    def of_kind(self, *kinds: str) -> list[Any]:
        """Roots of the XML parts of these kinds."""
        return [self.trees[name] for name, kind in self.kinds.items() if kind in kinds and name in self.trees]

    def relationship_ids(self, name: str) -> set[str]:
        """By which the part may refer to others."""
        relationships = self.trees.get(_relationships_of(name), ())
        return {one.get("Id", "") for one in relationships}

    def save(self) -> bytes:
        """A DOCX of what is there."""
        output = io.BytesIO()
        with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name in sorted(self.trees, key=lambda name: name != _TYPES):
                archive.writestr(
                    name, etree.tostring(self.trees[name], xml_declaration=True, encoding="UTF-8", standalone=True)
                )
            for name, data in self.others.items():
                archive.writestr(name, data)
        return output.getvalue()


def read_package(data: bytes, *, name: str, most_bytes: int) -> Package:
    """Raises Refused for what is no DOCX, is damaged, or would be too much to look at."""
    _check_start(data, most_bytes)
    return _Reader(_unpacked(data), name).read()


def _check_start(data: bytes, most_bytes: int) -> None:
    if not data:
        raise Refused("The file is empty.")
    if len(data) > most_bytes:
        raise Refused(f"The file is larger than {most_bytes // 1024 // 1024} MB.")
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise Refused("The file is password-protected or a .doc of old; save it as .docx without a password.")
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


class _Reader:
    def __init__(self, parts: dict[str, bytes], name: str) -> None:
        self._parts, self._document = parts, name
        self._names = {part.lower(): part for part in parts}
        self._notices: dict[str, str] = {}
        self._xml_bytes = self._marks = 0
        self._types: dict[str, str] = {}

    def read(self) -> Package:
        if _TYPES not in self._parts:
            raise Refused("The file is not a DOCX.")
        types = self._parsed(_TYPES)
        self._types = {
            one.get("PartName" if one.get("PartName") else "Extension", "").lstrip("/").lower(): one.get(
                "ContentType", ""
            )
            for one in types
        }
        package = Package(main=self._main_part())
        package.trees[_TYPES] = types
        waiting = [_ROOT]
        while waiting:
            waiting += self._follow(waiting.pop(), package)
        if package.kinds.get(package.main) != "officeDocument":
            raise Refused("The DOCX is damaged: its text is missing.")
        for override in list(types.iter(f"{CONTENT_TYPES}Override")):
            part = override.get("PartName", "").lstrip("/")
            if part not in package.trees and part not in package.others:
                types.remove(override)
        package.report = [
            Notice(code=code, message=text, document=self._document) for code, text in self._notices.items()
        ]
        return package

    def _main_part(self) -> str:
        root = self._parsed("_rels/.rels") if "_rels/.rels" in self._parts else ()
        found = [self._target(_ROOT, one) for one in root if _kind(one) == "officeDocument"]
        main = next((name for name in found if name), None)
        if main is None:
            raise Refused("The file is not a DOCX.")
        kind = self._types.get(main.lower(), "")
        if "macroEnabled" in kind:
            raise Refused("The file is a Word document with macros; save it as .docx.")
        if not kind.endswith(_MAIN_TYPES):
            raise Refused("The file is not a Word document (.docx).")
        return main

    def _follow(self, source: str, package: Package) -> list[str]:
        """Keep what ``source`` refers to and may keep; its names, for those that are new."""
        name = self._names.get(_relationships_of(source).lower())
        if name is None:
            return []
        found = []
        relationships = self._parsed(name)
        for one in list(relationships):
            if _kind(one) == "aFChunk":
                package.chunks[source, one.get("Id", "")] = self._chunk(source, one)
            target = self._kept(source, one)
            if target is None:
                relationships.remove(one)
            elif target and target not in package.kinds:
                package.kinds[target] = _kind(one)
                self._keep(target, package)
                found.append(target)
        package.trees[_relationships_of(source)] = relationships
        return found

    def _kept(self, source: str, relationship: Any) -> str | None:
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
        stated = self._types.get(name.lower()) or self._types.get(name.lower().rpartition(".")[2], "")
        kind = _CHUNK_TYPES.get(stated.partition(";")[0].strip().lower())
        if kind is None:
            raise Refused(_UNKNOWN_CHUNK)
        self._count(self._parts[name])
        return Chunk(kind, self._parts[name])

    def _target(self, source: str, relationship: Any) -> str | None:
        path = unquote(relationship.get("Target", ""))
        joined = posixpath.normpath(posixpath.join("/", posixpath.dirname(source), path)).lstrip("/")
        return self._names.get(joined.lower())

    def _keep(self, name: str, package: Package) -> None:
        kind = package.kinds[name]
        if kind == "image":
            _check_picture(self._parts[name])
            package.others[name] = self._parts[name]
        elif kind == "font":
            package.others[name] = self._parts[name]
        else:
            package.trees[name] = self._parsed(name)

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
    """What cannot be read is left to LibreOffice, which draws nothing then."""
    try:
        with Image.open(io.BytesIO(data)) as picture:
            pixels = picture.width * picture.height
    except (OSError, SyntaxError, ValueError, struct.error):
        return
    except Image.DecompressionBombError:
        pixels = MOST_PIXELS + 1
    if pixels > MOST_PIXELS:
        raise Refused(f"A picture in the DOCX has more than {MOST_PIXELS // 1_000_000} million pixels.")


def is_story(root: Any) -> bool:
    """Whether the part is text in Word's own namespace."""
    return isinstance(root.tag, str) and root.tag.startswith("{" + WORD)
