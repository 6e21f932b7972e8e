"""Fonts that do not say, or say wrongly, which characters they draw: then no reader finds or copies their text, and no tag
in it would be found. What the font program itself knows is written down as /ToUnicode (ISO 32000-2, 9.10).
"""

import io
import re
import unicodedata
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import pikepdf
from fontTools.agl import toUnicode
from fontTools.ttLib import TTFont

from contracts.types import Notice
from services.rendering.jobs.pdf.values import items_of, name_of, text_of

_LARGEST_PROGRAM = 8 * 1024 * 1024
_LARGEST_DOUBTED = 300_000
"""Bytes of a font program that is asked although there is a map: subsets are smaller."""

_LARGEST_MAP = 60_000
"""Bytes; larger maps are those of whole fonts, and right."""

_DEEPEST_FORM = 4
_MOST_FONTS = 500
_FEWEST = 5
_NEARLY_ALL = 0.8
"""Characters that must be contradicted before a /ToUnicode is taken for wrong, at least, and of all that can be compared."""

_PRESENTATION_FORMS = range(0xFB00, 0xFF00)

_KNOWN_COLLECTIONS = ("GB1", "CNS1", "Japan1", "Korea1", "KR")
"""Readers know the characters of these without being told."""

_MAP_BLOCK = re.compile(rb"begin(bfchar|bfrange)(.*?)end\1", re.DOTALL)
_HEX = rb"<([0-9a-fA-F\s]*)>"
_MAP_CHAR = re.compile(_HEX + rb"\s*" + _HEX)
_MAP_RANGE = re.compile(_HEX + rb"\s*" + _HEX + rb"\s*(?:" + _HEX + rb"|\[([^\]]*)\])")
_SWAPPED = re.compile(rb"<((?:(?:4[1-9a-fA-F]|5[0-9aA]|6[1-9a-fA-F]|7[0-9aA])00){2,})>")
_PRIVATE = (range(0xE000, 0xF900), range(0xF0000, 0x110000))
_UNREADABLE = (
    pikepdf.PdfError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a hostile font can make fontTools and pikepdf raise."""


def mend_fonts(pdf: pikepdf.Pdf, *, document: str) -> list[Notice]:
    """Completes the fonts of the pages; says which could not be, because tags in them are not found."""
    unknown: dict[str, None] = {}
    mended = False
    for font in _fonts(pdf):
        name = name_of(font.get("/BaseFont")).lstrip("/")
        try:
            verdict = _swapped(font) or _mend(pdf, font)
        except _UNREADABLE:
            continue
        mended = mended or verdict is True
        if verdict is False:
            unknown[re.sub(r"^[A-Z]{6}\+", "", name)[:60]] = None
    notices = []
    if mended:
        message = "A font did not say which characters it draws; that was added, so that its text can be searched."
        notices.append(Notice(code="font_mended", message=message, document=document))
    for name in list(unknown)[:10]:
        subject = f"The font “{name}”" if name else "A font without a name"
        message = f"{subject} does not say which characters it draws: field tags in it are not recognised."
        notices.append(Notice(code="unreadable_font", message=message, document=document))
    return notices


def _swapped(font: pikepdf.Dictionary) -> bool:
    """Puts the bytes of ligatures in order that were written the wrong way round (Ghostscript: 昀椀 for fi). True when there
    were any. No glyph draws two such ideographs."""
    source = font.get("/ToUnicode")
    if not isinstance(source, pikepdf.Stream):
        return False
    mended, count = _SWAPPED.subn(lambda match: b"<" + _in_order(match[1]) + b">", source.read_bytes())
    if count:
        source.write(mended)
    return count > 0


def _in_order(digits: bytes) -> bytes:
    return b"".join(digits[start + 2 : start + 4] + digits[start : start + 2] for start in range(0, len(digits), 4))


def _fonts(pdf: pikepdf.Pdf) -> Iterator[pikepdf.Dictionary]:
    """Each font of the pages and the forms that they draw, once."""
    seen: set[tuple[int, int]] = set()
    count = 0
    waiting: list[tuple[pikepdf.Object, int]] = [(page.obj, 0) for page in pdf.pages]
    while waiting and count < _MOST_FONTS:
        holder, depth = waiting.pop()
        resources = holder.get("/Resources")
        if not isinstance(resources, pikepdf.Dictionary) or resources.objgen in seen:
            continue
        if resources.is_indirect:
            seen.add(resources.objgen)
        for font in _new(resources.get("/Font"), seen):
            if isinstance(font, pikepdf.Dictionary):
                count += 1
                yield font
        if depth < _DEEPEST_FORM:
            forms = _new(resources.get("/XObject"), seen)
            waiting += [(form, depth + 1) for form in forms if isinstance(form, pikepdf.Stream)]


def _new(resources: Any, seen: set[tuple[int, int]]) -> Iterator[Any]:
    if not isinstance(resources, pikepdf.Dictionary):
        return
    for item in resources.values():
        if isinstance(item, pikepdf.Object) and item.is_indirect and item.objgen not in seen:
            seen.add(item.objgen)
            yield item


def _mend(pdf: pikepdf.Pdf, font: pikepdf.Dictionary) -> bool | None:
    """True: mended. False: nobody can tell what it draws. None: nothing to do."""
    stream = font.get("/ToUnicode")
    source = stream.read_bytes() if isinstance(stream, pikepdf.Stream) else b""
    if len(source) > _LARGEST_MAP:
        return None
    stated = _by_to_unicode(source)
    is_useless = bool(stated) and all(map(_says_nothing, stated.values()))
    if font.get("/Subtype") != "/Type0":
        # What a simple font draws is in its encoding; only a map into nothing, or to other letters, is in the way of that.
        letter_by_code = _by_glyph_names(font)
        if stated and (is_useless or (_contradicts(stated, letter_by_code) and not {"{", "}"} <= set(stated.values()))):
            if font.get("/Encoding") is None:
                return None
            if is_useless and letter_by_code and not any(letter_by_code.values()):
                return False if len(letter_by_code) >= _FEWEST else None
            del font["/ToUnicode"]
            return True
        return False if not stated and len(letter_by_code) >= _FEWEST and not any(letter_by_code.values()) else None
    descendant = items_of(font.get("/DescendantFonts"))[0]
    collection = descendant.get("/CIDSystemInfo", pikepdf.Dictionary())
    if font.get("/Encoding") != "/Identity-H" or text_of(collection.get("/Ordering")) in _KNOWN_COLLECTIONS:
        return None
    if stated and not is_useless and (len(stated) < _FEWEST or {"{", "}"} <= set(stated.values())):
        return None  # Maps are wrong as a whole: one that knows braces is believed.
    drawn_letters = _by_font_program(descendant, _LARGEST_DOUBTED if stated and not is_useless else _LARGEST_PROGRAM)
    if not drawn_letters:
        return None if stated else False
    if stated and not is_useless and not _contradicts(stated, drawn_letters):
        return None
    font["/ToUnicode"] = pdf.make_stream(_written(drawn_letters))
    return True


def _by_glyph_names(font: pikepdf.Dictionary) -> dict[int, str]:
    """Characters by code, as the glyphs of a simple font are named; empty for a name that says nothing."""
    encoding = font.get("/Encoding")
    differences = encoding.get("/Differences") if isinstance(encoding, pikepdf.Dictionary) else None
    dingbats = "Dingbats" in name_of(font.get("/BaseFont"))
    letter_by_code: dict[int, str] = {}
    code = 0
    for item in items_of(differences):
        if isinstance(item, pikepdf.Name):
            name = str(item).lstrip("/")
            if name != ".notdef":
                letter_by_code[code] = toUnicode(name, isZapfDingbats=dingbats)
            code += 1
        else:
            code = int(item)
    return letter_by_code


def _contradicts(stated: Mapping[int, str], drawn_letters: Mapping[int, str]) -> bool:
    both = [code for code in stated if drawn_letters.get(code)]
    wrong = sum(_says_nothing(stated[code]) or _letter(stated[code]) != _letter(drawn_letters[code]) for code in both)
    return wrong >= _FEWEST and wrong >= _NEARLY_ALL * len(both)


def _letter(text: str) -> str:
    """Return what all forms of a letter have in common: small capitals, presentation forms of Arabic, ligatures."""
    return unicodedata.normalize("NFKC", text).casefold()[:1]


def _says_nothing(text: str) -> bool:
    return not text or all(ord(c) < 32 or c == "\ufffd" or any(ord(c) in block for block in _PRIVATE) for c in text)


def _by_to_unicode(source: bytes) -> dict[int, str]:
    """Return what a /ToUnicode says, by code."""
    stated: dict[int, str] = {}
    for kind, body in _MAP_BLOCK.findall(source):
        if kind == b"bfchar":
            stated |= {_number(code): _text(text) for code, text in _MAP_CHAR.findall(body)}
            continue
        for low, high, first, several in _MAP_RANGE.findall(body):
            start = _number(low)
            codes = range(start, min(_number(high), start + 65_535) + 1)
            if several:
                texts = [_text(text) for text in re.findall(_HEX, several)]
            else:
                begin = _text(first)
                texts = (
                    [begin[:-1] + chr(min(ord(begin[-1]) + offset, 0x10FFFF)) for offset in range(len(codes))]
                    if begin
                    else []
                )
            stated |= dict(zip(codes, texts, strict=False))
    return stated


def _number(digits: bytes) -> int:
    return int(b"".join(digits.split()) or b"0", 16)


def _text(digits: bytes) -> str:
    plain = b"".join(digits.split())
    return bytes.fromhex((plain + b"0" * (len(plain) % 2)).decode()).decode("utf-16-be", "replace")


def _by_font_program(descendant: pikepdf.Dictionary, most_bytes: int) -> dict[int, str]:
    """Characters by CID, as far as the font program names its glyphs."""
    descriptor = descendant.get("/FontDescriptor", pikepdf.Dictionary())
    program = descriptor.get("/FontFile2") or descriptor.get("/FontFile3")
    if not isinstance(program, pikepdf.Stream):
        return {}
    data = program.read_bytes()
    if len(data) > most_bytes or data[:4] not in (b"\0\1\0\0", b"true", b"OTTO"):
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        glyphs = _characters_of_glyphs(TTFont(io.BytesIO(data), lazy=True, fontNumber=0))
    to_glyph = descendant.get("/CIDToGIDMap")
    if isinstance(to_glyph, pikepdf.Stream):
        table = to_glyph.read_bytes()
        numbers = {
            cid: int.from_bytes(table[2 * cid : 2 * cid + 2], "big") for cid in range(min(len(table) // 2, 65_536))
        }
        return {cid: glyphs[number] for cid, number in numbers.items() if number in glyphs}
    return glyphs


def _characters_of_glyphs(font: TTFont) -> dict[int, str]:
    """By glyph number: from the font's own character map, else from the names of its glyphs."""
    order = font.getGlyphOrder()
    numbers = {name: number for number, name in enumerate(order)}
    characters: dict[int, str] = {}
    if "cmap" in font:
        for code, name in sorted((font.getBestCmap() or {}).items(), reverse=True):
            if name in numbers and not _says_nothing(chr(code)):
                characters[numbers[name]] = _plain(code)
    if not characters:
        characters = {number: toUnicode(name)[:1] for number, name in enumerate(order) if toUnicode(name)[:1]}
    return characters


def _plain(code: int) -> str:
    return unicodedata.normalize("NFKC", chr(code)) if code in _PRESENTATION_FORMS else chr(code)


def _written(characters: Mapping[int, str]) -> bytes:
    blocks = []
    items = sorted((code, text) for code, text in characters.items() if 0 <= code <= 0xFFFF)
    for start in range(0, len(items), 100):
        block = items[start : start + 100]
        rows = "\n".join(f"<{code:04x}> <{text.encode('utf-16-be').hex()}>" for code, text in block)
        blocks.append(f"{len(block)} beginbfchar\n{rows}\nendbfchar")
    return (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Adobe-Identity-UCS def /CMapType 2 def\n"
        "1 begincodespacerange <0000> <ffff> endcodespacerange\n" + "\n".join(blocks) + "\nendcmap end end"
    ).encode()
