"""Sealed files that somebody has changed behind the signature."""

import io
import re

from asn1crypto import parser
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter


def hole(data: bytes) -> tuple[int, int]:
    """Where the hexadecimal digits of the first signature, with their padding, begin and end."""
    found = re.search(rb"/Contents <([0-9a-f]+)>", data)
    assert found
    return found.start(1), found.end(1)


def padded(data: bytes, at: int, digits: bytes) -> bytes:
    """``digits`` (hexadecimal) at this place of the padding of the first signature; negative: from its end."""
    start, end = hole(data)
    begin = end + at if at < 0 else start + 2 * parser.peek(bytes.fromhex(data[start:end].decode())) + at
    assert not data[begin : begin + len(digits)].strip(b"0")
    return data[:begin] + digits + data[begin + len(digits) :]


def without_signature(data: bytes, how: str) -> bytes:
    """A well-formed update that drops the first signature and leaves all bytes before it as they are: ``how`` says what is
    taken away, the whole ``form``, the ``field`` or its ``value``."""
    writer = IncrementalPdfFileWriter(io.BytesIO(data))
    form = writer.root["/AcroForm"]
    field = form["/Fields"][0]
    if how == "form":
        del writer.root["/AcroForm"]
        writer.update_root()
    elif how == "field":
        del form["/Fields"][0]
        writer.update_container(form)
        writer.update_container(form["/Fields"])
        writer.update_root()
    else:
        del field["/V"]
        writer.update_container(field)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()
