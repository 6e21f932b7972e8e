"""Logos of one colour, a server that has them, and whether a page shows that colour."""

import io
import struct
import zlib

import pypdfium2
from PIL import Image

from tests.support.servers.receiver import Received, Receiver, Reply

RED, BLUE = (214, 10, 20), (20, 60, 220)


def logo(color: tuple[int, int, int], form: str = "PNG", size: tuple[int, int] = (240, 80)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, color).save(out, form)
    return out.getvalue()


def bomb() -> bytes:
    """A PNG of a few bytes that says of itself that it has 30,000 by 30,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\x00" * 1000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


class LogoServer(Receiver):
    """``/red.png``, ``/blue.jpg`` and what no logo is."""

    def __init__(self) -> None:
        files = {
            "/red.png": logo(RED),
            "/blue.jpg": logo(BLUE, "JPEG"),
            "/page.html": b"<html><script>alert(1)</script></html>",
            "/drawing.svg": b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
            "/bomb.png": bomb(),
            "/large.png": logo(RED) + b"\x00" * 5_000_000,
            "/empty.png": b"",
        }

        def answer(received: Received) -> Reply:
            found = files.get(received.path)
            return (404, {}, b"") if found is None else (200, {"Content-Type": "image/png"}, found)

        super().__init__(answer)
        self.root = self.url.removesuffix("/hook")

    def asked_for(self, path: str) -> int:
        return sum(received.path == path for received in self.requests)


def share_of(color: tuple[int, int, int], pdf: bytes) -> float:
    """How much of all pages of the PDF has nearly that colour, from 0 to 1."""
    document = pypdfium2.PdfDocument(pdf)
    seen = whole = 0
    for page in document:
        image = page.render(scale=1).to_pil().convert("RGB")
        whole += image.width * image.height
        for count, pixel in image.getcolors(image.width * image.height) or []:
            assert isinstance(pixel, tuple)
            if all(abs(one - other) < 24 for one, other in zip(pixel, color, strict=True)):
                seen += count
    document.close()
    return seen / whole
