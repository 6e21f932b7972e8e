"""How much the streams of a PDF expand to, found out without keeping what they expand to (threats T18, T20).

A few kilobytes of nested Flate become a gigabyte, an image of a hundred bytes has 2.5 billion pixels. Readers decode both
when they draw a page, so such a file is refused before anything draws it.
"""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pikepdf

from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.pdf.values import is_true, items_of, name_of, whole_of

_CHUNK = 1 << 16
_MOST_FILTERS = 8
_MOST_COLORANTS = 32
_WORKING_SIZE = {"/DCTDecode", "/DCT", "/JPXDecode", "/JBIG2Decode", "/CCITTFaxDecode", "/CCF"}
"""Filters of pictures: their size is what the image dictionary says, and they end the chain."""


@dataclass(frozen=True)
class StreamLimits:
    """Bytes after decoding: of one stream, of all streams but pictures together, of one picture."""

    single: int = 128 * 1024 * 1024
    all: int = 384 * 1024 * 1024
    picture: int = 256 * 1024 * 1024


def check_streams(pdf: pikepdf.Pdf, limits: StreamLimits) -> None:
    """Raises Refused when a stream or all of them together are too large."""
    total = 0
    for item in pdf.objects:
        if not isinstance(item, pikepdf.Stream):
            continue
        filters = _filters(item)
        if len(filters) > _MOST_FILTERS:
            raise Refused(f"The PDF has a stream with more than {_MOST_FILTERS} filters.")
        if item.get("/Subtype") == "/Image":
            _check_picture(item, limits)
            if len(filters) < 2 or not _expands(filters[0]):
                continue
        total += _decoded_size(item, filters, limits.single)
        if total > limits.all:
            raise Refused(f"The PDF expands to more than {limits.all // 1024 // 1024} MB.")


def _filters(stream: pikepdf.Stream) -> list[str]:
    value = stream.get("/Filter")
    if isinstance(value, pikepdf.Name):
        return [name_of(value)]
    return [name_of(item) for item in items_of(value)]


def _expands(name: str) -> bool:
    return name in _DECODERS


def _check_picture(image: pikepdf.Stream, limits: StreamLimits) -> None:
    width, height = max(whole_of(image.get("/Width")), 0), max(whole_of(image.get("/Height")), 0)
    bits = 1 if is_true(image.get("/ImageMask")) else max(whole_of(image.get("/BitsPerComponent")), 0) or 8
    size = width * height * bits * _colorants(image.get("/ColorSpace")) // 8
    if size > limits.picture:
        raise Refused(
            f"The PDF has a picture of {width} x {height} pixels, which expands to more than "
            f"{limits.picture // 1024 // 1024} MB."
        )


def _colorants(space: Any) -> int:
    if isinstance(space, pikepdf.Array) and len(space) > 0:
        family = space[0]
        if family == "/ICCBased" and len(space) > 1 and isinstance(space[1], pikepdf.Stream):
            return min(max(whole_of(space[1].get("/N")), 1), _MOST_COLORANTS)
        if family == "/DeviceN" and len(space) > 1 and isinstance(space[1], pikepdf.Array):
            return min(max(len(space[1]), 1), _MOST_COLORANTS)
        return 3 if family in ("/CalRGB", "/Lab") else 1
    return {"/DeviceRGB": 3, "/RGB": 3, "/DeviceCMYK": 4, "/CMYK": 4}.get(name_of(space), 1)


def _decoded_size(stream: pikepdf.Stream, filters: list[str], limit: int) -> int:
    """Bytes that come out of the largest step of the chain; raises Refused above ``limit``."""
    meters: list[_Meter] = []
    chunks: Iterable[bytes] = [stream.read_raw_bytes()]
    lengths_only = False
    for name in filters:
        if name in _WORKING_SIZE:
            break
        if lengths_only and _expands(name):
            raise Refused("The PDF has a stream that is compressed twice, by LZW and again.")
        decode = _DECODERS.get(name) or _UNPACKERS.get(name)
        if decode is None:
            break
        lengths_only = decode is _lzw_lengths
        meters.append(_Meter(limit))
        chunks = meters[-1].metered(decode(chunks))
    for _ in chunks:
        pass
    return max((meter.size for meter in meters), default=0)


class _Meter:
    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit

    def metered(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.size += len(chunk)
            if self.size > self._limit:
                raise Refused(f"The PDF has a stream that expands to more than {self._limit // 1024 // 1024} MB.")
            yield chunk


def _flate(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Damaged data ends here, as it does in readers."""
    decoder = zlib.decompressobj()
    try:
        for chunk in chunks:
            pending = chunk
            while pending and not decoder.eof:
                yield decoder.decompress(pending, _CHUNK)
                pending = decoder.unconsumed_tail
    except zlib.error:
        return


def _lzw_lengths(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """As many zero bytes as LZW would give: only the lengths of the table's entries are kept (ISO 32000-2, 7.4.4)."""
    lengths = [1] * 256 + [0, 0]
    bits = value = previous = produced = 0
    width = 9
    for byte in b"".join(chunks):
        value = (value << 8 | byte) & 0xFFFFFF
        bits += 8
        if bits < width:
            continue
        bits -= width
        code = value >> bits & ((1 << width) - 1)
        if code == 257:
            break
        if code == 256:
            del lengths[258:]
            width, previous = 9, 0
            continue
        length = lengths[code] if code < len(lengths) else previous + 1
        if previous and len(lengths) < 4096:
            lengths.append(previous + 1)
        previous = length
        width = min(12, max(9, (len(lengths) + 1).bit_length()))
        produced += length
        if produced >= _CHUNK:
            yield bytes(produced)
            produced = 0
    yield bytes(produced)


def _run_length(chunks: Iterable[bytes]) -> Iterator[bytes]:
    data = b"".join(chunks)
    index = 0
    while index < len(data) and data[index] != 128:
        length = data[index]
        if length < 128:
            yield data[index + 1 : index + 2 + length]
            index += length + 2
        else:
            yield data[index + 1 : index + 2] * (257 - length)
            index += 2


def _ascii_85(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """ISO 32000-2, 7.4.3; wrong characters are passed over."""
    value = count = 0
    out = bytearray()
    for byte in b"".join(chunks):
        if byte == 0x7A and count == 0:
            out += bytes(4)
        elif byte == 0x7E:
            break
        elif 0x21 <= byte <= 0x75:
            value, count = value * 85 + byte - 0x21, count + 1
            if count == 5:
                out += (value & 0xFFFFFFFF).to_bytes(4, "big")
                value = count = 0
        if len(out) >= _CHUNK:
            yield bytes(out)
            out.clear()
    if count > 1:
        for _ in range(5 - count):
            value = value * 85 + 84
        out += (value & 0xFFFFFFFF).to_bytes(4, "big")[: count - 1]
    yield bytes(out)


def _ascii_hex(chunks: Iterable[bytes]) -> Iterator[bytes]:
    digits = bytes(byte for byte in b"".join(chunks).partition(b">")[0] if byte in b"0123456789abcdefABCDEF")
    yield bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode())


_DECODERS = {
    "/FlateDecode": _flate,
    "/Fl": _flate,
    "/LZWDecode": _lzw_lengths,
    "/LZW": _lzw_lengths,
    "/RunLengthDecode": _run_length,
    "/RL": _run_length,
}
_UNPACKERS = {"/ASCII85Decode": _ascii_85, "/A85": _ascii_85, "/ASCIIHexDecode": _ascii_hex, "/AHx": _ascii_hex}
