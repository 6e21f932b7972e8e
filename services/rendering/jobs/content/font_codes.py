"""How a font of a PDF splits a string into character codes, and how far each code advances (ISO 32000-2, 9.6 and 9.7).

Only what is needed to know where glyphs stand: no Unicode, no outlines. What a font leaves out is guessed as pdfium does;
whoever uses the positions compares them with pdfium's own.
"""

import ctypes
import functools
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pikepdf
import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_raw
from fontTools.agl import toUnicode
from fontTools.encodings.MacRoman import MacRoman
from fontTools.encodings.StandardEncoding import StandardEncoding

from services.rendering.jobs.content.predefined_cmaps import PREDEFINED, PredefinedCMap
from services.rendering.jobs.pdf.values import items_of, name_of, number_of, whole_of

_MOST_WIDTHS = 70_000
_LARGEST_CMAP = 2_000_000


class FontCodes:
    """``vertical`` fonts and those whose codes cannot be told apart have no usable positions: ``readable`` is False."""

    readable = True

    def split(self, text: bytes) -> Iterator[tuple[int, int, int]]:
        """(start, end, code) of each character code in a string."""
        return ((index, index + 1, code) for index, code in enumerate(text))

    def width(self, code: int) -> float:
        """Horizontal advance in text space units (1 = the font size)."""
        raise NotImplementedError

    def measure(self, text: bytes) -> tuple[float, int, int]:
        """Sum of the widths, number of codes, number of word spaces."""
        total, count, spaces = 0.0, 0, 0
        for start, end, code in self.split(text):
            total += self.width(code)
            count += 1
            spaces += self.is_word_space(code, end - start)
        return total, count, spaces

    def measured(self, text: bytes) -> Iterable[tuple[int, int, int, float]]:
        """``split`` with the width of each code."""
        return ((start, end, code, self.width(code)) for start, end, code in self.split(text))

    def is_word_space(self, code: int, length: int) -> bool:
        """Return whether word spacing applies: only to the single-byte code 32 (9.3.3)."""
        return code == 32 and length == 1


def font_codes(font: Any) -> FontCodes:
    """From a font dictionary; never raises on what is in it."""
    if not isinstance(font, pikepdf.Dictionary):
        return _Unreadable()
    if font.get("/Subtype") == "/Type0":
        return _composite(font)
    return _SimpleFont(font)


class _Unreadable(FontCodes):
    readable = False

    def width(self, code: int) -> float:
        return 0.0


class _SimpleFont(FontCodes):
    def __init__(self, font: pikepdf.Dictionary) -> None:
        self._first = whole_of(font.get("/FirstChar"), 0)
        widths = font.get("/Widths")
        self._widths = [number_of(width) for width in items_of(widths)[:256]]
        descriptor = font.get("/FontDescriptor")
        missing = descriptor.get("/MissingWidth") if isinstance(descriptor, pikepdf.Dictionary) else None
        self._missing = number_of(missing) if missing is not None else None
        self._scale = 0.001
        if font.get("/Subtype") == "/Type3":
            matrix = items_of(font.get("/FontMatrix"))
            self._scale = number_of(matrix[0]) if matrix else 0.001
            self._missing = self._missing or 0.0
        self._font = font
        self._standard: list[float] | None = None

    def measure(self, text: bytes) -> tuple[float, int, int]:
        return sum(map(self._of_code, text)), len(text), text.count(32)

    def measured(self, text: bytes) -> Iterable[tuple[int, int, int, float]]:
        return zip(range(len(text)), range(1, len(text) + 1), text, map(self._of_code, text), strict=True)

    @functools.cached_property
    def _of_code(self) -> Callable[[int], float]:
        return [self.width(code) for code in range(256)].__getitem__

    def width(self, code: int) -> float:
        index = code - self._first
        if 0 <= index < len(self._widths):
            return self._widths[index] * self._scale
        if self._missing is not None:
            return self._missing * self._scale
        if self._standard is None:
            self._standard = _standard_widths(self._font)
        return self._standard[code]


class _Widths(dict[int, float]):
    """By CID."""

    default = 1000.0

    def __missing__(self, cid: int) -> float:
        return self.default


class _CompositeFont(FontCodes):
    """A Type 0 font: codes to CIDs by a CMap, CIDs to widths by /W and /DW of the descendant."""

    def __init__(self, cmap: "_CMap", descendant: pikepdf.Dictionary) -> None:
        self._cmap = cmap
        self._default = number_of(descendant.get("/DW"), 1000.0)
        self._widths = _Widths(_cid_widths(descendant.get("/W")))
        self._widths.default = self._default

    def split(self, text: bytes) -> Iterator[tuple[int, int, int]]:
        return self._cmap.split(text)

    def measure(self, text: bytes) -> tuple[float, int, int]:
        if type(self._cmap) is not _CMap or len(text) % 2:
            return super().measure(text)
        codes = struct.unpack(f">{len(text) // 2}H", text)
        return sum(map(self._widths.__getitem__, codes)) / 1000, len(codes), 0

    def measured(self, text: bytes) -> Iterable[tuple[int, int, int, float]]:
        if type(self._cmap) is not _CMap or len(text) % 2:
            return super().measured(text)
        codes = struct.unpack(f">{len(text) // 2}H", text)
        widths = [width / 1000 for width in map(self._widths.__getitem__, codes)]
        return zip(range(0, len(text), 2), range(2, len(text) + 1, 2), codes, widths, strict=True)

    def width(self, code: int) -> float:
        return self._widths.get(self._cmap.cid(code), self._default) / 1000


class _CMap:
    """Two-byte codes that are CIDs: Identity-H, and what the others build on."""

    def split(self, text: bytes) -> Iterator[tuple[int, int, int]]:
        for start in range(0, len(text), 2):
            end = min(start + 2, len(text))
            yield start, end, int.from_bytes(text[start:end], "big")

    def cid(self, code: int) -> int:
        return code


class _KnownCMap(_CMap):
    """One of the predefined CMaps. Their tables are not here: only where ASCII lies and which bytes begin a longer code;
    ideographs have the default width in practice."""

    def __init__(self, predefined: PredefinedCMap) -> None:
        self._known = predefined

    def split(self, text: bytes) -> Iterator[tuple[int, int, int]]:
        start = 0
        while start < len(text):
            end = min(start + self._known.length(text[start]), len(text))
            yield start, end, int.from_bytes(text[start:end], "big")
            start = end

    def cid(self, code: int) -> int:
        return self._known.cid(code)


class _EmbeddedCMap(_CMap):
    """A CMap in the file (9.7.5.3), read for its code space and CID ranges."""

    _BLOCK = re.compile(rb"begin(codespacerange|cidrange|cidchar)(.*?)end\1", re.DOTALL)
    _HEX = rb"<([0-9a-fA-F\s]*)>"
    _RANGE = re.compile(_HEX + rb"\s*" + _HEX + rb"\s*(\d+)?")
    _CHAR = re.compile(_HEX + rb"\s*(\d+)")

    def __init__(self, source: bytes) -> None:
        self._spaces: list[tuple[int, int, int]] = []
        self._ranges: list[tuple[int, int, int]] = []
        self._chars: dict[int, int] = {}
        for kind, body in self._BLOCK.findall(source):
            if kind == b"cidchar":
                for code, cid in self._CHAR.findall(body):
                    self._chars[_hex(code)] = int(cid)
                continue
            for low, high, cid in self._RANGE.findall(body):
                length = len(b"".join(low.split())) // 2
                if kind == b"codespacerange" and length <= 4 and _hex(high) < 256**length:
                    self._spaces.append((length, _hex(low), _hex(high)))
                elif cid:
                    self._ranges.append((_hex(low), _hex(high), int(cid)))
        self._identity = b"Identity-H usecmap" in source or not (self._ranges or self._chars)

    def split(self, text: bytes) -> Iterator[tuple[int, int, int]]:
        start = 0
        lengths = sorted({length for length, _, _ in self._spaces if 0 < length <= 4}) or [2]
        while start < len(text):
            end = next((start + n for n in lengths if self._is_code(text[start : start + n], n)), start + lengths[0])
            end = min(end, len(text))
            yield start, end, int.from_bytes(text[start:end], "big")
            start = end

    def _is_code(self, code: bytes, length: int) -> bool:
        """A code is in a range when each of its bytes is (9.7.6.2)."""
        if len(code) < length:
            return False
        for code_length, low, high in self._spaces:
            if code_length == length:
                lows, highs = low.to_bytes(length, "big"), high.to_bytes(length, "big")
                if all(a <= byte <= b for a, byte, b in zip(lows, code, highs, strict=True)):
                    return True
        return False

    def cid(self, code: int) -> int:
        if self._identity:
            return code
        if code not in self._chars:
            candidates = (first + code - low for low, high, first in self._ranges if low <= code <= high)
            self._chars[code] = next(candidates, 0)
        return self._chars[code]


def _composite(font: pikepdf.Dictionary) -> FontCodes:
    descendants = items_of(font.get("/DescendantFonts"))
    if not descendants or not isinstance(descendants[0], pikepdf.Dictionary):
        return _Unreadable()
    encoding = font.get("/Encoding")
    cmap: _CMap | None = None
    if isinstance(encoding, pikepdf.Name):
        if encoding == "/Identity-H":
            cmap = _CMap()
        elif name_of(encoding) in PREDEFINED:
            cmap = _KnownCMap(PREDEFINED[name_of(encoding)])
    elif isinstance(encoding, pikepdf.Stream) and whole_of(encoding.get("/WMode"), 0) == 0:
        source = encoding.read_bytes()
        base = encoding.get("/UseCMap")
        if len(source) <= _LARGEST_CMAP and (base is None or base == "/Identity-H") and b"/WMode 1" not in source:
            cmap = _EmbeddedCMap(source)
    return _CompositeFont(cmap, descendants[0]) if cmap else _Unreadable()


def _cid_widths(array: Any) -> dict[int, float]:
    """``c [w1 w2 ...]`` and ``first last w`` (9.7.4.3)."""
    widths: dict[int, float] = {}
    items = items_of(array)
    index = 0
    while index + 1 < len(items) and len(widths) < _MOST_WIDTHS:
        first = whole_of(items[index], 0)
        if isinstance(items[index + 1], pikepdf.Array):
            for offset, width in enumerate(items_of(items[index + 1])[:_MOST_WIDTHS]):
                widths[first + offset] = number_of(width)
            index += 2
        elif index + 2 < len(items):
            last = min(whole_of(items[index + 1], first), first + _MOST_WIDTHS)
            widths.update(dict.fromkeys(range(first, last + 1), number_of(items[index + 2])))
            index += 3
        else:
            break
    return widths


def _standard_widths(font: pikepdf.Dictionary) -> list[float]:
    """Widths by code of a font without /Widths: one of the standard 14, or what is put in its place."""
    metrics = _standard_metrics(_standard_name(name_of(font.get("/BaseFont"))))
    return [metrics.get(character, 0.0) for character in _characters(font.get("/Encoding"))]


def _standard_name(name: str) -> str:
    word = name.lower().rpartition("+")[2]
    bold, italic = "bold" in word, "italic" in word or "oblique" in word
    if "zapf" in word or "dingbats" in word:
        return "ZapfDingbats"
    if "symbol" in word:
        return "Symbol"
    if "courier" in word:
        return "Courier" + ("-" if bold or italic else "") + "Bold" * bold + "Oblique" * italic
    if "times" in word:
        return "Times-" + ("Bold" * bold + "Italic" * italic or "Roman")
    return "Helvetica" + ("-" if bold or italic else "") + "Bold" * bold + "Oblique" * italic


@functools.cache
def _standard_metrics(name: str) -> dict[str, float]:
    """Widths of pdfium's own copy of a standard font, by character."""
    characters = {character for table in _TABLES.values() for character in table if character}
    width = ctypes.c_float()
    metrics = {}
    document = pdfium.PdfDocument.new()
    font = pdfium_raw.FPDFText_LoadStandardFont(document.raw, name.encode())
    for character in characters:
        if pdfium_raw.FPDFFont_GetGlyphWidth(font, ord(character), ctypes.c_float(1), width):
            metrics[character] = width.value
    pdfium_raw.FPDFFont_Close(font)
    document.close()
    return metrics


def _codec_table(codec: str) -> list[str]:
    return [bytes([code]).decode(codec, "ignore") for code in range(256)]


_TABLES = {
    "/WinAnsiEncoding": _codec_table("cp1252"),
    "/MacRomanEncoding": [toUnicode(name) for name in MacRoman],
    "/StandardEncoding": [toUnicode(name) for name in StandardEncoding],
}


def _characters(encoding: Any) -> list[str]:
    """The characters of a simple font's codes, by its base encoding and /Differences (9.6.5)."""
    base = encoding
    differences: list[Any] = []
    if isinstance(encoding, pikepdf.Dictionary):
        base = encoding.get("/BaseEncoding")
        differences = items_of(encoding.get("/Differences"))
    table = list(_TABLES.get(name_of(base), _TABLES["/StandardEncoding"]))
    code = 0
    for item in differences:
        if isinstance(item, pikepdf.Name):
            if code < 256:
                table[code] = toUnicode(name_of(item)[1:])[:1]
            code += 1
        else:
            code = whole_of(item, code)
    return table


def _hex(digits: bytes) -> int:
    return int(b"".join(digits.split()) or b"0", 16)
