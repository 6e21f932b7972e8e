"""Fonts inside a PDF: which glyphs of which font a document uses, and the small font programs that hold just those.

Every cluster gets a code of its own (a CID of an Identity-H font), with its own width and its own entry in ToUnicode.
A cluster of several glyphs (a letter with marks, an Arabic ligature with vowels, a Devanagari syllable) becomes one
composite glyph in the embedded font. So whatever the script, the page holds one code after the other, and every reader
gives the text back without guessing. Readers turn right-to-left text around code unit by code unit, so there the
text of a ligature is written from left to right (pdftotext, pdfium and pdf.js all expect that).

CFF fonts (the Chinese, Japanese and Korean ones) have no composites and their CIDs are fixed: there the rare cluster of
several glyphs is drawn glyph by glyph, marked with ActualText.

Emoji are pictures: they become the glyphs of Type 3 fonts, of 255 each.
"""

import hashlib
import io
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, repeat

import pikepdf
import uharfbuzz as hb
from fontTools.ttLib import TTFont
from fontTools.ttLib.tables._g_l_y_f import Glyph, GlyphComponent
from pikepdf import Array, Dictionary, Name, Stream

from services.rendering.jobs.pdf.drawing_rules import DrawingRules
from services.rendering.jobs.pictures.image_objects import PictureEmbedder
from services.rendering.jobs.text.fonts import Font
from services.rendering.jobs.text.shaping import Cluster

_Key = tuple[tuple[tuple[int, int, int], ...], str, int]

_DROPPED_TABLES = (
    "GSUB",
    "GPOS",
    "GDEF",
    "name",
    "OS/2",
    "post",
    "cmap",
    "kern",
    "DSIG",
    "gasp",
    "FFTM",
    "MATH",
    "vhea",
    "vmtx",
)
_ARGUMENTS_ARE_OFFSETS = 0x0002
_ROUND_TO_GRID = 0x0004
_SYMBOLIC = 4
_MOST_ENTRIES = 100
"""Of a ``bfchar`` block (Adobe Technical Note 5411)."""
_MOST_PICTURES = 255
"""Of a Type 3 font, whose codes are single bytes."""


@dataclass
class _Used:
    """What a document uses of one font. ``codes`` leads from a cluster to its code; ``texts`` from code to text."""

    font: Font
    name: str
    reference: pikepdf.Object
    codes: dict[_Key, int] = field(default_factory=dict)
    backward: dict[_Key, int] = field(default_factory=dict)
    seen: dict[Cluster, int] = field(default_factory=dict)
    seen_backward: dict[Cluster, int] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)
    widths: dict[int, int] = field(default_factory=dict)
    glyphs: dict[int, tuple[tuple[int, int, int], ...]] = field(default_factory=dict)


class FontEmbedder:
    """Collects what is drawn in one document; ``finish`` writes the fonts, once, after the last ``show``.

    ``resources`` is the ``/Font`` dictionary for the resources of every page or form that holds such text.
    """

    def __init__(self, pdf: pikepdf.Pdf, rules: DrawingRules | None = None) -> None:
        """``rules`` say whether font descriptors list the glyphs, as PDF/A-1 wants it (ISO 19005-1, 6.3.5)."""
        self._pdf, self._rules = pdf, rules or DrawingRules()
        self._used: dict[Font, _Used] = {}
        self._full: list[_Used] = []
        self.resources = pdf.make_indirect(Dictionary())

    def show(self, clusters: Sequence[Cluster], right_to_left: Sequence[bool] | None, size: float) -> list[str]:
        """Operators that draw ``clusters`` from left to right, for use between BT and ET."""
        first = clusters[0].font if clusters else None
        if (
            first
            and right_to_left is None
            and not (first.is_cff or first.has_pictures)
            and all(cluster.font is first for cluster in clusters)
        ):
            used = self._used.get(first) or self._use(first)
            return [f"/{used.name} {size:g} Tf", _forward_codes(used, clusters)]  # most lines of most forms
        out: list[str] = []
        pairs = zip(clusters, right_to_left or repeat(False), strict=False)
        for font, group in groupby(pairs, key=lambda pair: pair[0].font):
            run = list(group)
            if font.has_pictures:
                out += [operators for cluster, backward in run for operators in self._picture(cluster, backward, size)]
                continue
            used = self._used.get(font) or self._use(font)
            out.append(f"/{used.name} {size:g} Tf")
            out += _CffText(used, size).show(run) if font.is_cff else [_codes(used, run)]
        return out

    def finish(self) -> None:
        """Write the font programs and everything around them into the document."""
        for used in [*self._full, *self._used.values()]:
            if used.font.has_pictures:
                _write_pictures(self._pdf, used, self._rules)
            else:
                writer = _write_cff if used.font.is_cff else _write_truetype
                writer(self._pdf, used)
                if self._rules.cid_sets:
                    described = used.reference.DescendantFonts[0].FontDescriptor
                    described.CIDSet = _compressed(self._pdf, _cid_set(used.widths))

    def _picture(self, cluster: Cluster, is_backward: bool, size: float) -> list[str]:
        """Operators for one emoji: in the font that has it already, or else in the last one, or in another when it is full."""
        current = self._used.get(cluster.font) or self._use(cluster.font)
        used = next(
            (used_ for used_ in (*self._full, current) if cluster.key in _table(used_, cluster, is_backward)), None
        )
        if used is None and len(current.texts) == _MOST_PICTURES:
            self._full.append(current)
            current = self._use(cluster.font)
        used = used or current
        return [f"/{used.name} {size:g} Tf", f"<{_code(used, cluster, is_backward):02X}> Tj"]

    def _use(self, font: Font) -> _Used:
        name = f"F{len(self._used) + len(self._full) + 1}"
        reference = self._pdf.make_indirect(Dictionary(Type=Name.Font))
        used = self._used[font] = _Used(font, name, reference)
        self.resources[f"/{name}"] = reference
        return used


def _codes(used: _Used, run: Iterable[tuple[Cluster, bool]]) -> str:
    """``<00010002> Tj``: code after code, as the widths in the font say where the next one stands."""
    seen, seen_backward = used.seen, used.seen_backward
    numbers = []
    for cluster, is_backward in run:
        # By identity first: the clusters of simple text are made once per font.
        code = (seen_backward if is_backward else seen).get(cluster)
        numbers.append(code if code is not None else _code(used, cluster, is_backward))
    return "<" + "".join([f"{number:04X}" for number in numbers]) + "> Tj"


def _forward_codes(used: _Used, clusters: Sequence[Cluster]) -> str:
    seen = used.seen
    numbers = [code if (code := seen.get(cluster)) is not None else _code(used, cluster, False) for cluster in clusters]
    return "<" + "".join([f"{number:04X}" for number in numbers]) + "> Tj"


def _code(used: _Used, cluster: Cluster, is_backward: bool) -> int:
    text = cluster.text[::-1] if is_backward else cluster.text
    table = _table(used, cluster, is_backward)
    code = table.get(cluster.key)
    if code is None:
        code = table[cluster.key] = len(used.texts) + 1
        used.texts[code] = text
        used.widths[code] = cluster.advance
        used.glyphs[code] = cluster.glyphs
    (used.seen_backward if is_backward else used.seen)[cluster] = code
    return code


def _table(used: _Used, cluster: Cluster, is_backward: bool) -> dict[_Key, int]:
    """Return where the code of a cluster is: a single character reads the same both ways."""
    return used.backward if is_backward and len(cluster.text) > 1 else used.codes


@dataclass
class _CffText:
    """Text in a font whose codes are the CIDs of its own glyphs."""

    used: _Used
    size: float

    def show(self, run: Iterable[tuple[Cluster, bool]]) -> list[str]:
        out: list[str] = []
        plain: list[str] = []
        for cluster, is_backward in run:
            text = cluster.text[::-1] if is_backward else cluster.text
            if self._is_plain(cluster, text):
                plain.append(f"{cluster.glyphs[0][0]:04X}")
                continue
            if plain:
                out.append(f"<{''.join(plain)}> Tj")
                plain = []
            out += self._marked(cluster, text)
        if plain:
            out.append(f"<{''.join(plain)}> Tj")
        return out

    def _is_plain(self, cluster: Cluster, text: str) -> bool:
        """One glyph where it belongs, which stands for this text and no other."""
        if len(cluster.glyphs) != 1 or cluster.glyphs[0][1:] != (0, 0):
            return False
        glyph = cluster.glyphs[0][0]
        self._note(glyph)
        natural = cluster.advance == self.used.widths[glyph]
        return natural and self.used.texts.setdefault(glyph, text) == text

    def _note(self, glyph: int) -> None:
        self.used.widths.setdefault(glyph, self.used.font.advance(glyph))

    def _marked(self, cluster: Cluster, text: str) -> list[str]:
        units = self.used.font.units
        out = [f"/Span <</ActualText {_utf16(text, mark='FEFF')}>> BDC"]
        pen = 0.0
        for glyph, x, y in cluster.glyphs:
            self._note(glyph)
            shift = x * 1000 / units - pen
            out.append(f"{y * self.size / units:.3f} Ts [{-shift:.2f} <{glyph:04X}>] TJ")
            pen += shift + self.used.widths[glyph]
        return [*out, f"0 Ts [{pen - cluster.advance:.2f}] TJ EMC"]


def _write_truetype(pdf: pikepdf.Pdf, used: _Used) -> None:
    needed = {glyph for glyphs in used.glyphs.values() for glyph, _, _ in glyphs}
    program, places = _subset(used.font, needed)
    composites = {code: glyphs for code, glyphs in used.glyphs.items() if len(glyphs) != 1 or glyphs[0][1:] != (0, 0)}
    if composites:
        program, composites_made = _with_composites(program, places, composites, used.widths, used.font.units)
    else:
        composites_made = {}
    to_glyph = bytearray(2 * (len(used.glyphs) + 1))
    for code, glyphs in used.glyphs.items():
        number = composites_made[code] if code in composites_made else places[glyphs[0][0]]
        to_glyph[2 * code : 2 * code + 2] = number.to_bytes(2, "big")
    file = _compressed(pdf, program)
    file.Length1 = len(program)
    widths = "1[" + " ".join(str(used.widths[code]) for code in range(1, len(used.widths) + 1)) + "]"
    cid_to_glyph = _compressed(pdf, bytes(to_glyph))
    _write_font(pdf, used, "/FontFile2", file, f"[{widths}]", "/CIDFontType2", cid_to_glyph)


def _write_cff(pdf: pikepdf.Pdf, used: _Used) -> None:
    program, _ = _subset(used.font, set(used.widths))
    file = _compressed(pdf, program)
    file.Subtype = Name.CIDFontType0C
    widths = "".join(f"{glyph}[{width}]" for glyph, width in sorted(used.widths.items()))
    _write_font(pdf, used, "/FontFile3", file, f"[{widths}]", "/CIDFontType0", None)


def _write_pictures(pdf: pikepdf.Pdf, used: _Used, rules: DrawingRules) -> None:
    """A Type 3 font (ISO 32000-2, 9.6.4) in whose procedures each glyph is an image."""
    pictures, images = PictureEmbedder(pdf, transparency=rules.transparency), Dictionary()
    procedures, names = Dictionary(), []
    for code, glyphs in used.glyphs.items():
        drawing = [f"{used.widths[code]} 0 d0"]
        for number, (glyph, x, y) in enumerate(glyphs):
            file, (left, bottom, width, height) = used.font.picture(glyph)
            if not file:
                continue
            images[f"/I{code}_{number}"] = pictures.place(file, points=(width, height)).reference
            left, bottom = left + x * 1000 / used.font.units, bottom + y * 1000 / used.font.units
            drawing.append(f"q {width:.2f} 0 0 {height:.2f} {left:.2f} {bottom:.2f} cm /I{code}_{number} Do Q")
        procedures[f"/e{code}"] = _compressed(pdf, "\n".join(drawing).encode("ascii"))
        names.append(f"/e{code}")
    widths = " ".join(str(used.widths[code]) for code in used.glyphs)
    font = pikepdf.Object.parse(
        "<< /Type /Font /Subtype /Type3 /FontMatrix [0.001 0 0 0.001 0 0] "
        f"/FontBBox [0 {-round(used.font.descent)} {max(used.widths.values())} {round(used.font.ascent)}] "
        f"/FirstChar 1 /LastChar {len(names)} /Widths [{widths}] "
        f"/Encoding << /Type /Encoding /Differences [1 {' '.join(names)}] >> >>".encode("ascii")
    )
    font.CharProcs = procedures
    font.Resources = Dictionary(XObject=images)
    if rules.colors is not None:
        font.Resources.ColorSpace = rules.colors
    font.ToUnicode = _compressed(pdf, _to_unicode(used.texts, digits=2))
    for key, value in font.items():
        used.reference[key] = value


def _write_font(
    pdf: pikepdf.Pdf,
    used: _Used,
    program: str,
    file: Stream,
    widths: str,
    subtype: str,
    cid_to_glyph: Stream | None,
) -> None:
    """The Type 0 font and its one descendant (ISO 32000-2, 9.7); ``program`` is the descriptor's key for ``file``."""
    font = used.font
    base = f"/{_tag(used)}+{font.name}"
    # Parsed from text, which is many times faster than key by key.
    described = pikepdf.Object.parse(
        f"<< /Type /FontDescriptor /FontName {base} /Flags {_SYMBOLIC} "
        f"/FontBBox [-1000 {-round(font.descent) - 500} 3000 {round(font.ascent) + 500}] "
        f"/ItalicAngle {-12 if 'Italic' in font.name else 0} /Ascent {round(font.ascent)} /Descent {-round(font.descent)} "
        f"/CapHeight 729 /StemV {140 if 'Bold' in font.name else 80} >>".encode("ascii")
    )
    described[program] = file
    descendant = pikepdf.Object.parse(
        f"<< /Type /Font /Subtype {subtype} /BaseFont {base} /DW 1000 /W {widths} "
        "/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>".encode("ascii")
    )
    descendant.FontDescriptor = pdf.make_indirect(described)
    if cid_to_glyph is not None:
        descendant.CIDToGIDMap = cid_to_glyph
    reference = used.reference
    reference.Subtype = Name.Type0
    reference.BaseFont = Name(base)
    reference.Encoding = Name("/Identity-H")
    reference.DescendantFonts = Array([pdf.make_indirect(descendant)])
    reference.ToUnicode = _compressed(pdf, _to_unicode(used.texts))


def _cid_set(codes: Iterable[int]) -> bytes:
    """A bit for each CID (ISO 32000-1, table 124); 0 is always there."""
    present = {0, *codes}
    bits = bytearray(max(present) // 8 + 1)
    for code in present:
        bits[code // 8] |= 0x80 >> code % 8
    return bytes(bits)


def _subset(font: Font, glyphs: set[int]) -> tuple[bytes, dict[int, int]]:
    return _subset_of_one(font, *glyphs) if len(glyphs) == 1 else _made_subset(font, glyphs)


@lru_cache(maxsize=64)
def _subset_of_one(font: Font, glyph: int) -> tuple[bytes, dict[int, int]]:
    """Nearly every form has check marks, and no other glyph of their font."""
    return _made_subset(font, {glyph})


def _made_subset(font: Font, glyphs: set[int]) -> tuple[bytes, dict[int, int]]:
    """A font program with just these glyphs, and their new numbers. Of a CFF font only the ``CFF`` table, whose charset
    keeps the old numbers as CIDs."""
    plan_input = hb.SubsetInput()
    plan_input.flags = hb.SubsetFlags.NO_HINTING
    if font.is_cff and not font.is_cid_keyed:
        plan_input.flags |= hb.SubsetFlags.RETAIN_GIDS
    for glyph in glyphs:
        plan_input.glyph_set.add(glyph)
    for table in _DROPPED_TABLES:
        plan_input.drop_table_tag_set.add(int.from_bytes(table.ljust(4).encode(), "big"))
    plan = hb.SubsetPlan(font.subset_source, plan_input)
    face = plan.execute()
    if font.is_cff:
        return bytes(face.reference_table("CFF ").data), {}
    mapping = plan.old_to_new_glyph_mapping
    return bytes(face.blob.data), {glyph: mapping[glyph] for glyph in glyphs}


def _with_composites(
    program: bytes,
    places: dict[int, int],
    composites: dict[int, tuple[tuple[int, int, int], ...]],
    widths: dict[int, int],
    units: int,
) -> tuple[bytes, dict[int, int]]:
    """Add a glyph for each cluster of several glyphs; gives the font and the new glyphs' numbers by code."""
    font = TTFont(io.BytesIO(program), recalcTimestamp=False)
    order = list(font.getGlyphOrder())
    outlines, metrics = font["glyf"], font["hmtx"]
    numbers_made = {}
    for code, glyphs in composites.items():
        glyph = Glyph()
        glyph.numberOfContours = -1 if glyphs else 0
        if glyphs:
            glyph.components = [_component(order[places[number]], x, y) for number, x, y in glyphs]
        numbers_made[code] = len(outlines.glyphOrder)
        name = f"cluster{code}"
        outlines[name] = glyph
        metrics[name] = (round(widths[code] * units / 1000), 0)
    buffer = io.BytesIO()
    font.save(buffer)
    return buffer.getvalue(), numbers_made


def _component(name: str, x: int, y: int) -> GlyphComponent:
    component = GlyphComponent()
    component.glyphName, component.x, component.y = name, x, y
    component.flags = _ARGUMENTS_ARE_OFFSETS | _ROUND_TO_GRID
    return component


def _to_unicode(texts: dict[int, str], digits: int = 4) -> bytes:
    """A ToUnicode CMap (ISO 32000-2, 9.10.3) for codes of so many hexadecimal digits."""
    entries = [f"<{code:0{digits}X}> {_utf16(text)}" for code, text in sorted(texts.items()) if text]
    blocks = []
    for start in range(0, len(entries), _MOST_ENTRIES):
        block = entries[start : start + _MOST_ENTRIES]
        blocks.append(f"{len(block)} beginbfchar\n" + "\n".join(block) + "\nendbfchar\n")
    return (
        "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n"
        "/CIDSystemInfo <</Registry (Adobe) /Ordering (UCS) /Supplement 0>> def\n"
        "/CMapName /Adobe-Identity-UCS def\n/CMapType 2 def\n"
        f"1 begincodespacerange\n<{'0' * digits}> <{'F' * digits}>\nendcodespacerange\n"
        + "".join(blocks)
        + "endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n"
    ).encode()


def _utf16(text: str, mark: str = "") -> str:
    return f"<{mark}{text.encode('utf-16-be').hex().upper()}>"


def _tag(used: _Used) -> str:
    """Six letters that differ between two subsets of one font (ISO 32000-2, 9.9.2), also when files are merged."""
    digest = hashlib.sha256(repr((used.font.name, used.texts, used.glyphs)).encode()).digest()
    return "".join(chr(ord("A") + byte % 26) for byte in digest[:6])


def _compressed(pdf: pikepdf.Pdf, data: bytes) -> Stream:
    """Sealing writes streams as they are, so they are compressed here."""
    stream = Stream(pdf, zlib.compress(data))
    stream.Filter = Name.FlateDecode
    return stream
