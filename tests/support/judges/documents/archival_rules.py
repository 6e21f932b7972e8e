"""A check of files against ISO 19005 (PDF/A, parts 1 to 4) and ISO 14289-1 (PDF/UA): the rules that filling in and sealing
could break. What the file claims is read from its XMP with a real XML parser. Clauses are those of ISO 19005-2 unless a part
is named. ``tests/unit/rendering/archival/test_rules.py`` shows that each rule bites, and that LibreOffice's files, WeasyPrint's
and PDFBox Preflight, which we did not write, agree.
"""

import io
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pikepdf
from fontTools.ttLib import TTFont
from pikepdf import Array, Dictionary, Name, Stream

_PAINTS = {"Tj", "TJ", "'", '"', "f", "F", "f*", "S", "s", "B", "B*", "b", "b*", "sh", "INLINE IMAGE"}
_DEVICE = {"g": "Gray", "G": "Gray", "rg": "RGB", "RG": "RGB", "k": "CMYK", "K": "CMYK"}
_ACTIONS = {"/GoTo", "/GoToR", "/Thread", "/URI", "/Named", "/SubmitForm"}
_PRINT, _UNSEEN = 4, 1 | 2 | 32
_SAME = {"/Title": "title", "/Creator": "CreatorTool", "/Producer": "Producer", "/Subject": "description"}
"""Document information and what must say the same in XMP (ISO 19005-1, 6.7.3)."""


def broken_rules(data: bytes) -> list[str]:
    """The rules of what the file claims that it breaks, each with its clause. A file that claims nothing breaks none."""
    with pikepdf.open(io.BytesIO(data)) as pdf:
        check = _Check(data, pdf)
        if check.part:
            check.file()
            check.streams()
            check.fonts()
            check.annotations()
        if check.part or check.accessible:
            check.pages()
        if check.is_tagged_claimed:
            check.structure()
        if check.accessible:
            check.accessibility()
        return sorted(set(check.broken))


def claimed(data: bytes) -> list[str]:
    """Such as ``PDF/A-2a``, ``PDF/UA-1``."""
    with pikepdf.open(io.BytesIO(data)) as pdf:
        check = _Check(data, pdf)
    archival = [f"PDF/A-{check.part}{check.level.lower()}"] if check.part else []
    return archival + ([f"PDF/UA-{check.accessible}"] if check.accessible else [])


class _Check:
    def __init__(self, data: bytes, pdf: pikepdf.Pdf) -> None:
        self.data, self.pdf = data, pdf
        self.broken: list[str] = []
        packet = pdf.Root.Metadata.read_bytes() if "/Metadata" in pdf.Root else b"<none/>"
        self.xmp = _properties(ElementTree.fromstring(packet.strip(b"\0 \r\n")))
        self.part = int(self.xmp.get("http://www.aiim.org/pdfa/ns/id/part", "0"))
        self.level = self.xmp.get("http://www.aiim.org/pdfa/ns/id/conformance", "")
        self.accessible = int(self.xmp.get("http://www.aiim.org/pdfua/ns/id/part", "0"))
        self.is_tagged_claimed = self.level == "A" or bool(self.accessible)
        self.intent = _intent(pdf)
        tree: Any = pdf.Root.get("/StructTreeRoot", {})
        self.parents = dict(_numbers(tree.get("/ParentTree")))
        self.is_transparent = False

    def rule(self, clause: str, holds: object, what: str) -> None:
        if not holds:
            self.broken.append(f"{clause}: {what}")

    def file(self) -> None:
        version = self.data[5:8]
        self.rule("6.1.2", version[:1] == (b"2" if self.part == 4 else b"1"), f"the header says {version!r}")
        self.rule("6.1.3", "/ID" in self.pdf.trailer, "the trailer has no /ID")
        self.rule("6.1.3", not self.pdf.is_encrypted, "encrypted")
        if self.part == 1:
            packed = b"/ObjStm" in self.data or b"/XRef" in self.data
            self.rule("19005-1, 6.1.4", not packed, "object streams, or a cross-reference stream")
        if self.part == 4:
            self.rule("19005-4, 6.1.3", "/Info" not in self.pdf.trailer, "document information")
            self.rule("19005-4, 6.7.3", self.xmp.get("http://www.aiim.org/pdfa/ns/id/rev"), "no pdfaid:rev")
        if self.part == 1 and "/Info" in self.pdf.trailer:
            local = {name.rpartition("/")[2]: value for name, value in self.xmp.items()}
            for key, name in _SAME.items():
                said = self.pdf.trailer.Info.get(key)
                same = said is None or str(said) == local.get(name)
                self.rule("19005-1, 6.7.3", same, f"{key} is {said}, and {local.get(name)} in XMP")
        profiles = {one.DestOutputProfile.objgen for one in self.pdf.Root.get("/OutputIntents", ())}
        self.rule("6.2.3", len(profiles) <= 1, "two profiles of output intents")
        names: Any = self.pdf.Root.get("/Names", {})
        self.rule(
            "6.6.1", "/JavaScript" not in names and "/AA" not in self.pdf.Root, "scripts, or actions of the catalogue"
        )
        if self.part in (1, 4):
            self.rule("19005-1, 6.1.11", "/EmbeddedFiles" not in names, "embedded files")
        form: Any = self.pdf.Root.get("/AcroForm", {})
        self.rule("6.4.1", not form.get("/NeedAppearances", False), "readers would draw the form")
        self.rule("6.4.2", "/XFA" not in form, "an XFA form")

    def streams(self) -> None:
        for item in self.pdf.objects:
            if isinstance(item, Stream):
                filters = item.get("/Filter", Array([]))
                named = {str(one) for one in (filters if isinstance(filters, Array) else [filters])}
                self.rule("6.1.7.1", "/F" not in item, "a stream's data is in another file")
                self.rule("6.1.7.2", not named & {"/LZWDecode", "/Crypt"}, "a stream is packed with LZW")
        if self.part == 1:
            self.rule("19005-1, 6.7.2", "/Filter" not in self.pdf.Root.Metadata, "XMP is packed")

    def fonts(self) -> None:
        for item in self.pdf.objects:
            if not isinstance(item, Dictionary) or item.get("/Type") != Name.Font or item.get("/Subtype") == Name.Type3:
                continue
            if item.get("/Subtype") == Name.Type0:
                self._composite_font(item)
                item = item.DescendantFonts[0]
            described: Any = item.get("/FontDescriptor", {})
            program = any(key in described for key in ("/FontFile", "/FontFile2", "/FontFile3"))
            self.rule("6.2.11.4.1", program, f"{item.get('/BaseFont')} is not embedded")

    def _composite_font(self, font: pikepdf.Object) -> None:
        descendant, name = font.DescendantFonts[0], str(font.BaseFont)
        described = descendant.FontDescriptor
        if self.level in ("A", "U"):
            self.rule("6.2.11.7.2", "/ToUnicode" in font, f"{name} has no ToUnicode")
        if self.part == 1 and "+" in name:
            self.rule("19005-1, 6.3.5", "/CIDSet" in described, f"{name} has no CIDSet")
        if descendant.Subtype != Name.CIDFontType2 or "/FontFile2" not in described:
            return
        self.rule("6.2.11.3.2", "/CIDToGIDMap" in descendant, f"{name} has no CIDToGIDMap")
        places = descendant.get("/CIDToGIDMap", Name.Identity)
        table = places.read_bytes() if isinstance(places, Stream) else None
        program = TTFont(io.BytesIO(described.FontFile2.read_bytes()))
        order, units = program.getGlyphOrder(), program["head"].unitsPerEm
        for code, width in _widths(descendant.get("/W", ())):
            glyph = int.from_bytes(table[2 * code : 2 * code + 2], "big") if table else code
            inside = program["hmtx"][order[glyph]][0] * 1000 / units
            self.rule("6.2.11.5", abs(inside - width) <= 1, f"{name} says other widths than its program")
            if self.part == 1 and "/CIDSet" in described:
                bits = described.CIDSet.read_bytes()
                listed = code // 8 < len(bits) and bits[code // 8] & 0x80 >> code % 8
                self.rule("19005-1, 6.3.5", listed, f"the CIDSet of {name} lacks a glyph")

    def annotations(self) -> None:
        for page, one in self._annotations():
            kind, flags = str(one.Subtype), int(one.get("/F", 0))
            self.rule("6.3.2", flags & _PRINT and not flags & _UNSEEN, f"a {kind} is not printed, or not seen")
            self.rule("6.6.3", "/AA" not in one, f"a {kind} has additional actions")
            action = one.get("/A")
            self.rule("6.6.1", action is None or str(action.S) in _ACTIONS, f"a {kind} acts")
            size = [abs(float(one.Rect[2]) - float(one.Rect[0])), abs(float(one.Rect[3]) - float(one.Rect[1]))]
            needed = kind == "/Widget" if self.part == 1 else kind not in ("/Popup", "/Link") and any(size)
            shown = one.get("/AP", Dictionary())
            self.rule("6.3.3", not needed or "/N" in shown, f"a {kind} has no appearance")
            self.rule("6.3.3", set(shown.keys()) <= {"/N"}, f"a {kind} has other appearances than the normal one")
            if isinstance(shown.get("/N"), Stream):
                self._content(shown.N, page.resources, marked=True)

    def pages(self) -> None:
        for page in self.pdf.pages:
            self.is_transparent = "/Group" in page.obj and page.obj.Group.get("/S") == Name.Transparency
            self._content(page.obj, page.resources, marked=not self.is_tagged_claimed)
            if self.part == 1:
                self.rule("19005-1, 6.4", not self.is_transparent, "something is transparent")
            elif self.part and self.is_transparent:
                blends = self.intent or "/CS" in page.obj.get("/Group", {})
                self.rule("6.2.10", blends, "something is transparent, and nothing says in which colours it is blended")

    def _content(self, holder: Any, inherited: Any, *, marked: bool) -> None:
        """``marked``: what is drawn is an artifact or tagged already, or need not be."""
        resources = holder.get("/Resources", inherited)
        own = self.parents.get(int(holder.StructParents)) if "/StructParents" in holder else None
        if isinstance(holder, Stream) and holder.get("/Group", Dictionary()).get("/S") == Name.Transparency:
            self.is_transparent = True
        open_ = [marked]
        for instruction in pikepdf.parse_content_stream(holder):
            operator, operands = str(instruction.operator), list(instruction.operands)
            if operator in ("BMC", "BDC"):
                open_.append(
                    open_[-1] or operands[0] == Name.Artifact or self._leads_to(own, operands, resources, holder)
                )
            elif operator == "EMC":
                open_.pop()
            elif operator in _DEVICE:
                self._color(_DEVICE[operator], resources)
            elif operator in ("cs", "CS"):
                self._space(resources.get("/ColorSpace", {}).get(operands[0], operands[0]), resources)
            elif operator == "gs":
                self._state(resources.ExtGState[operands[0]])
            elif operator == "Do":
                drawn = resources.XObject[operands[0]]
                if drawn.Subtype == Name.Form:
                    self._content(drawn, resources, marked=open_[-1])
                else:
                    self._image(drawn, resources)
                    self.rule("6.7.2.2", open_[-1], "a picture is neither tagged nor an artifact")
            if operator in _PAINTS:
                self.rule("6.7.2.2", open_[-1], "something is drawn that is neither tagged nor an artifact")

    def _leads_to(self, own: Any, operands: list[Any], resources: Any, holder: Any) -> bool:
        """The marked content has its element in the structure tree, and that leads back."""
        if len(operands) < 2:
            return False
        properties = operands[1] if isinstance(operands[1], Dictionary) else resources.Properties[operands[1]]
        number = properties.get("/MCID")
        if number is None or own is None or number >= len(own) or not isinstance(own[number], Dictionary):
            return False
        for kid in _kids(own[number]):
            if isinstance(kid, int) and kid == number:
                return not isinstance(holder, Stream)
            if isinstance(kid, Dictionary) and kid.get("/MCID") == number:
                stream = kid.get("/Stm")
                return stream.objgen == holder.objgen if stream is not None else not isinstance(holder, Stream)
        return False

    def _color(self, device: str, resources: Any) -> None:
        if not self.part:
            return
        default = f"/Default{device}" in resources.get("/ColorSpace", {})
        covered = bool(self.intent) if device == "Gray" else self.intent == {"RGB": 3, "CMYK": 4}[device]
        self.rule("6.2.4.3", default or covered, f"Device{device} without a default or an intent that covers it")

    def _space(self, space: Any, resources: Any) -> None:
        if isinstance(space, Name) and str(space).startswith("/Device"):
            self._color(str(space).removeprefix("/Device"), resources)
        elif isinstance(space, Array) and space[0] in (Name.Indexed, Name.Separation, Name.DeviceN):
            self._space(space[1] if space[0] == Name.Indexed else space[2], resources)

    def _image(self, image: Any, resources: Any) -> None:
        self.rule("6.2.8.1", "/Alternates" not in image and "/OPI" not in image, "a picture has alternates")
        self.rule("6.2.8.1", not image.get("/Interpolate", False), "a picture is interpolated")
        self.is_transparent |= "/SMask" in image
        if not image.get("/ImageMask", False) and "/ColorSpace" in image:
            space = image.ColorSpace
            named = resources.get("/ColorSpace", {})
            self._space(named.get(space, space) if isinstance(space, Name) else space, resources)

    def _state(self, state: Any) -> None:
        opaque = float(state.get("/ca", 1)) == float(state.get("/CA", 1)) == 1
        plain = state.get("/BM", Name.Normal) in (Name.Normal, Name.Compatible)
        masked = state.get("/SMask", Name("/None")) != Name("/None")
        self.is_transparent |= not opaque or not plain or masked

    def structure(self) -> None:
        root: Any = self.pdf.Root
        self.rule("6.7.2.1", root.get("/MarkInfo", Dictionary()).get("/Marked") is True, "not marked as tagged")
        self.rule("6.7.4", "/Lang" in root, "no language")
        for element in {item.objgen: item for item in _elements(self.parents.values())}.values():
            self.rule("6.7.3.3", _hangs_on(element, root.StructTreeRoot), "an element that the tree does not lead to")

    def accessibility(self) -> None:
        """ISO 14289-1."""
        root: Any = self.pdf.Root
        self.rule(
            "14289-1, 7.1",
            root.get("/ViewerPreferences", Dictionary()).get("/DisplayDocTitle") is True,
            "no title is shown",
        )
        self.rule("14289-1, 7.1", self.xmp.get("http://purl.org/dc/elements/1.1/title"), "no title")
        for element in _elements([root.StructTreeRoot], whole=True):
            if element.get("/S") == Name.Figure:
                self.rule("14289-1, 7.3", "/Alt" in element or "/ActualText" in element, "a figure says nothing")
        for page, one in self._annotations():
            self.rule(
                "14289-1, 7.18.3", page.obj.get("/Tabs") == Name.S, "a page with annotations has another tab order"
            )
            role = {"/Link": Name.Link, "/Widget": Name.Form}.get(str(one.Subtype), Name.Annot)
            element = self.parents.get(int(one.get("/StructParent", -1)), {})
            leads = any(
                isinstance(kid, Dictionary) and kid.get("/Obj", one).objgen == one.objgen for kid in _kids(element)
            )
            self.rule(
                "14289-1, 7.18.1", element.get("/S") == role and leads, f"a {one.Subtype} is not tagged as {role}"
            )
            said = "/TU" in one if role == Name.Form else "/Contents" in one or "/Alt" in element
            self.rule("14289-1, 7.18", said, f"a {one.Subtype} says nothing")

    def _annotations(self) -> Iterator[tuple[pikepdf.Page, Any]]:
        for page in self.pdf.pages:
            for one in page.obj.get("/Annots", ()):
                yield page, one


def _properties(root: ElementTree.Element) -> dict[str, str]:
    """The simple properties by namespace and name, written as elements or as attributes; of lists the first item."""
    found: dict[str, str] = {}
    for element in root.iter():
        if element.tag.endswith("}Description"):
            found |= {key[1:].replace("}", "", 1): value for key, value in element.attrib.items() if key[:1] == "{"}
            for child in element:
                found[child.tag[1:].replace("}", "", 1)] = "".join(child.itertext()).strip()
    return found


def _intent(pdf: pikepdf.Pdf) -> int | None:
    """Components of the output intent's profile."""
    for one in pdf.Root.get("/OutputIntents", ()):
        if "/DestOutputProfile" in one:
            return int(one.DestOutputProfile.N)
    return None


def _numbers(node: Any) -> Iterator[tuple[int, Any]]:
    if node is not None:
        flat = list(node.get("/Nums", ()))
        yield from ((int(number), value) for number, value in zip(flat[::2], flat[1::2], strict=True))
        for kid in node.get("/Kids", ()):
            yield from _numbers(kid)


def _widths(table: Any) -> Iterator[tuple[int, float]]:
    """ISO 32000-1, 9.7.4.3."""
    parts = list(table)
    while parts:
        first, second = int(parts.pop(0)), parts.pop(0)
        if isinstance(second, Array):
            yield from ((first + place, float(width)) for place, width in enumerate(second))
        else:
            width = float(parts.pop(0))
            yield from ((code, width) for code in range(first, int(second) + 1))


def _kids(element: Any) -> list[Any]:
    kids = element.get("/K")
    return list(kids) if isinstance(kids, Array) else [] if kids is None else [kids]


def _elements(values: Any, *, whole: bool = False) -> Iterator[Any]:
    """Structure elements among ``values`` and in arrays there; with ``whole`` also those below them."""
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, Array):
            waiting += [one for one in value if isinstance(one, Array | Dictionary)]
        elif isinstance(value, Dictionary):
            if "/S" in value:
                yield value
            if whole:
                waiting += [kid for kid in _kids(value) if isinstance(kid, Dictionary) and "/Obj" not in kid]


def _hangs_on(element: Any, root: Any) -> bool:
    """Up to the root each element is among the kids of its parent."""
    for _ in range(64):
        parent = element.get("/P")
        if parent is None or element.objgen not in {kid.objgen for kid in _kids(parent) if isinstance(kid, Dictionary)}:
            return False
        if parent.objgen == root.objgen:
            return True
        element = parent
    return False
