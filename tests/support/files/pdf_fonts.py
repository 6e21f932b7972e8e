"""Fonts for test PDFs, one for each way in which a PDF maps bytes to glyphs. Each returns the font and an encoder."""

import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pikepdf
from fontTools.ttLib import TTFont
from pikepdf import Array, Dictionary, Name

LIBERATION = Path("/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf")
CHARACTERS = string.ascii_letters + string.digits + string.punctuation + " "

Encoder = Callable[[str], bytes]


def composite(pdf: pikepdf.Pdf, *, cmap: bytes | None = None, to_unicode: bool = True) -> tuple[Any, Encoder]:
    """Type 0 with an embedded TrueType font: Identity-H, or the CMap given (single bytes, see ``BYTE_CMAP``)."""
    font = TTFont(LIBERATION)
    glyphs, metrics = font.getBestCmap(), font["hmtx"].metrics
    scale = 1000 / font["head"].unitsPerEm
    numbers = {character: font.getGlyphID(glyphs[ord(character)]) for character in CHARACTERS}
    widths: list[Any] = []
    for character, number in sorted(numbers.items(), key=lambda item: item[1]):
        widths += [number, Array([round(metrics[glyphs[ord(character)]][0] * scale, 4)])]
    program = pdf.make_stream(LIBERATION.read_bytes())
    descriptor = Dictionary(
        Type=Name.FontDescriptor, FontName=Name("/AAAAAA+Liberation"), Flags=4, FontBBox=Array([-500, -300, 1300, 1000]),
        ItalicAngle=0, Ascent=905, Descent=-212, CapHeight=700, StemV=80, FontFile2=program,
    )  # fmt: skip
    descendant = Dictionary(
        Type=Name.Font, Subtype=Name.CIDFontType2, BaseFont=Name("/AAAAAA+Liberation"), DW=0, W=Array(widths),
        CIDSystemInfo=Dictionary(Registry=pikepdf.String("Adobe"), Ordering=pikepdf.String("Identity"), Supplement=0),
        FontDescriptor=pdf.make_indirect(descriptor), CIDToGIDMap=Name.Identity,
    )  # fmt: skip
    codes = {c: bytes([ord(c)]) if cmap else number.to_bytes(2, "big") for c, number in numbers.items()}
    entries = Dictionary(
        Type=Name.Font, Subtype=Name.Type0, BaseFont=Name("/AAAAAA+Liberation"),
        Encoding=pdf.make_stream(cmap) if cmap else Name("/Identity-H"),
        DescendantFonts=Array([pdf.make_indirect(descendant)]),
    )  # fmt: skip
    if to_unicode:
        entries.ToUnicode = pdf.make_stream(_to_unicode(codes))
    return pdf.make_indirect(entries), lambda text: b"".join(codes[c] for c in text)


def byte_cmap() -> bytes:
    """A CMap in the file that maps single bytes (ASCII) to the glyphs of Liberation Sans."""
    font = TTFont(LIBERATION)
    glyphs = font.getBestCmap()
    chars = "\n".join(f"<{ord(c):02x}> {font.getGlyphID(glyphs[ord(c)])}" for c in CHARACTERS)
    return (
        "/CIDInit /ProcSet findresource begin begincmap /CMapName /Test def /CMapType 1 def\n"
        f"1 begincodespacerange <00> <ff> endcodespacerange\n{len(CHARACTERS)} begincidchar\n{chars}\nendcidchar endcmap end"
    ).encode()


def unembedded_chinese(pdf: pikepdf.Pdf) -> tuple[Any, Encoder]:
    """A predefined CMap (UniGB-UCS2-H) and a font that is not in the file."""
    descendant = Dictionary(
        Type=Name.Font, Subtype=Name.CIDFontType0, BaseFont=Name("/STSong-Light"), DW=1000,
        W=Array([1, 95, 500]),
        CIDSystemInfo=Dictionary(Registry=pikepdf.String("Adobe"), Ordering=pikepdf.String("GB1"), Supplement=4),
        FontDescriptor=pdf.make_indirect(Dictionary(
            Type=Name.FontDescriptor, FontName=Name("/STSong-Light"), Flags=6, FontBBox=Array([0, -200, 1000, 900]),
            ItalicAngle=0, Ascent=880, Descent=-120, CapHeight=880, StemV=93)),
    )  # fmt: skip
    font = Dictionary(
        Type=Name.Font, Subtype=Name.Type0, BaseFont=Name("/STSong-Light-UniGB-UCS2-H"),
        Encoding=Name("/UniGB-UCS2-H"), DescendantFonts=Array([pdf.make_indirect(descendant)]),
    )  # fmt: skip
    return pdf.make_indirect(font), lambda text: text.encode("utf-16-be")


def type_3(pdf: pikepdf.Pdf) -> tuple[Any, Encoder]:
    """Glyphs that are content streams: every character a small box, half an em wide; an odd glyph space."""
    glyph = pdf.make_stream(b"50 0 0 0 40 60 d1 5 0 35 60 re f")
    codes = {c: bytes([code]) for code, c in enumerate(CHARACTERS, 1)}
    font = Dictionary(
        Type=Name.Font, Subtype=Name.Type3, FontBBox=Array([0, 0, 50, 60]), FontMatrix=Array([0.01, 0, 0, 0.01, 0, 0]),
        FirstChar=1, LastChar=len(CHARACTERS), Widths=Array([50] * len(CHARACTERS)),
        CharProcs=Dictionary({f"/g{code}": glyph for code in range(1, len(CHARACTERS) + 1)}),
        Encoding=Dictionary(
            Type=Name.Encoding,
            Differences=Array([1, *[Name(f"/g{code}") for code in range(1, len(CHARACTERS) + 1)]]),
        ),
        Resources=Dictionary(), ToUnicode=pdf.make_stream(_to_unicode(codes)),
    )  # fmt: skip
    return pdf.make_indirect(font), lambda text: b"".join(codes[c] for c in text)


def shuffled_simple(pdf: pikepdf.Pdf) -> tuple[Any, Encoder]:
    """A subset font as TeX makes them: arbitrary codes with /Differences and /Widths, no ToUnicode."""
    from fontTools.agl import UV2AGL

    font = TTFont(LIBERATION)
    metrics, glyphs = font["hmtx"].metrics, font.getBestCmap()
    order = sorted(CHARACTERS, key=lambda c: (ord(c) * 37) % 101)
    codes = {c: bytes([code]) for code, c in enumerate(order, 33)}
    scale = 1000 / font["head"].unitsPerEm
    simple = Dictionary(
        Type=Name.Font, Subtype=Name.Type1, BaseFont=Name("/AAAAAA+Helvetica"), FirstChar=33, LastChar=32 + len(order),
        Widths=Array([round(metrics[glyphs[ord(c)]][0] * scale) for c in order]),
        Encoding=Dictionary(Type=Name.Encoding, Differences=Array([33, *[Name(f"/{UV2AGL[ord(c)]}") for c in order]])),
        FontDescriptor=pdf.make_indirect(Dictionary(
            Type=Name.FontDescriptor, FontName=Name("/AAAAAA+Helvetica"), Flags=32, FontBBox=Array([-166, -225, 1000, 931]),
            ItalicAngle=0, Ascent=718, Descent=-207, CapHeight=718, StemV=88)),
    )  # fmt: skip
    return pdf.make_indirect(simple), lambda text: b"".join(codes[c] for c in text)


def _to_unicode(codes: dict[str, bytes]) -> bytes:
    length = len(next(iter(codes.values())))
    items = list(codes.items())
    blocks = []
    for start in range(0, len(items), 100):
        block = items[start : start + 100]
        rows = "\n".join(f"<{code.hex()}> <{ord(c):04x}>" for c, code in block)
        blocks.append(f"{len(block)} beginbfchar\n{rows}\nendbfchar")
    space = f"<{'00' * length}> <{'ff' * length}>"
    return (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /U def /CMapType 2 def\n"
        f"1 begincodespacerange {space} endcodespacerange\n" + "\n".join(blocks) + "\nendcmap end end"
    ).encode()
