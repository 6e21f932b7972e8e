"""JPEG files taken apart without decoding: whether a PDF may hold one as it is, and what of it belongs there.

Everything but the picture goes: EXIF with the place where it was taken, thumbnails, comments, further pictures and whatever
lies behind the end. Marker codes: ITU-T T.81, table B.1.
"""

from dataclasses import dataclass

_START = b"\xff\xd8"
_END, _SCAN = 0xD9, 0xDA
_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_FRAMES_IN_PDF = frozenset({0xC0, 0xC1, 0xC2})
"""Baseline, extended and progressive, Huffman-coded: what ``DCTDecode`` knows (ISO 32000-2, 7.4.8)."""
_WITHOUT_LENGTH = frozenset({0x00, 0x01, *range(0xD0, 0xD9)})
_TABLES = frozenset({0xC4, 0xDB, 0xDD})
_JFIF, _ADOBE = 0xE0, 0xEE
_ADOBE_HEADER = b"\xff\xee\x00\x0e"
_PLAIN_JFIF = b"\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"


@dataclass(frozen=True)
class JpegData:
    """``data`` is the bare picture; ``components`` 1, 3 or 4; ``adobe`` that four components are inverted inks."""

    data: bytes
    width: int
    height: int
    components: int
    adobe: bool


def bare_jpeg(data: bytes) -> JpegData | None:
    """The first picture of a JPEG file without anything around it; None when a PDF could not hold it as it is."""
    try:
        return _bare(data)
    except (IndexError, ValueError):
        return None


def _bare(data: bytes) -> JpegData | None:
    """Raises IndexError or ValueError where the file ends too early."""
    segments = [_START]
    frame = b""
    adobe = False
    position = len(_START)
    if not data.startswith(_START):
        return None
    while True:
        marker, position = _next_marker(data, position)
        if marker == _END:
            break
        end = position + int.from_bytes(data[position : position + 2], "big")
        segment, content = data[position - 2 : end], data[position + 2 : end]
        if marker in _WITHOUT_LENGTH or end > len(data) or (marker in _FRAMES and frame):
            return None
        if marker == _SCAN:
            end = _end_of_scan(data, end)
            segments.append(data[position - 2 : end])
        elif marker == _JFIF and content.startswith(b"JFIF\0"):
            segments.append(_PLAIN_JFIF)
        elif marker == _ADOBE and content.startswith(b"Adobe"):
            adobe = True
            segments.append(_ADOBE_HEADER + content[:12])
        elif marker in _FRAMES or marker in _TABLES:
            frame = content if marker in _FRAMES else frame
            if marker in _FRAMES - _FRAMES_IN_PDF:
                return None
            segments.append(segment)
        position = end
    if len(frame) < 6 or frame[0] != 8 or frame[5] not in (1, 3, 4):
        return None
    height, width = int.from_bytes(frame[1:3], "big"), int.from_bytes(frame[3:5], "big")
    return JpegData(b"".join([*segments, b"\xff\xd9"]), width, height, frame[5], adobe)


def _next_marker(data: bytes, position: int) -> tuple[int, int]:
    """The marker that begins at ``position`` (fill bytes may precede it) and where its segment's length is."""
    if data[position] != 0xFF:
        raise ValueError("no marker")
    while data[position] == 0xFF:
        position += 1
    return data[position], position + 1


def _end_of_scan(data: bytes, position: int) -> int:
    """Behind the entropy-coded data: where the next marker begins that is neither a restart nor a stuffed byte."""
    while True:
        position = data.index(0xFF, position)
        if data[position + 1] == 0xFF:
            position += 1
        elif data[position + 1] == 0 or data[position + 1] in range(0xD0, 0xD8):
            position += 2
        else:
            return position
