"""A page's own content, closed off: whatever it leaves open must not move, hide or clip what is drawn after it."""

import re

import pikepdf
from pikepdf import Array, Dictionary, Name, Stream

from services.rendering.jobs.pdf.values import copied

_END = "CountersignEnd"
"""An operator that no content has: where a parser meets it, the content before it was read to its end."""

_OPERATORS = f"q Q BT ET BMC BDC EMC {_END}"
_CLOSES = {"q": "Q", "BT": "ET", "BMC": "EMC", "BDC": "EMC"}
_OPENERS = {"Q": {"q"}, "ET": {"BT"}, "EMC": {"BMC", "BDC"}}
_COUNTED = {name.encode(): name for name in (*_CLOSES, *_OPENERS)}
# Strings without strings in them, flat dictionaries, hexadecimal strings, names (ISO 32000-2, 7.2.3 and 7.3).
_OPERANDS = re.compile(
    rb"\((?:[^()\\]|\\.)*\)|<<[^<>()%]*>>|<[0-9A-Fa-f\s]*>|/[^\x00\t\n\x0b\f\r ()<>\[\]{}/%]*", re.DOTALL
)
_ARRAYS = re.compile(rb"\[[0-9+.\s-]*\]")
"""Of numbers, when strings and names have been taken out. One that does not end takes in all that comes after it."""
_UNUSUAL = re.compile(rb"[()<>{}\[\]%\x00\x0b]")


def isolate(pdf: pikepdf.Pdf, page: pikepdf.Page) -> None:
    """Make ``/Contents`` an array that begins with as many ``q`` and ends with whatever closes what the page left open
    (graphics states, text objects, marked content, which may belong to a hidden layer)."""
    contents = page.obj.get("/Contents")
    parts = contents if isinstance(contents, pikepdf.Array) else [contents]
    streams = [part for part in parts if isinstance(part, Stream)]
    operators = _plain_operators(streams)
    if operators is None:
        page.obj.Contents = Array([*streams, pdf.make_stream(f"\n{_END}\n".encode())])
        operators = _operators(page)
        if operators[-1:] != [_END]:
            # It ends within a string or an inline picture, which would swallow what comes after it.
            page.obj.Contents = Array([_wrapped(pdf, page, streams)])
            return
    before, after = _brackets(operators)
    page.obj.Contents = Array([pdf.make_stream(before), *streams, pdf.make_stream(after)])


def _plain_operators(streams: list[Stream]) -> list[str] | None:
    """Those that matter, of content that can be read without a parser, as most can, in a tenth of its time. None of other
    content: comments, inline pictures, nested strings, anything that does not end."""
    try:
        content = b"\n".join(stream.read_bytes() for stream in streams)
    except pikepdf.PdfError:
        return None
    words = _ARRAYS.sub(b" ", _OPERANDS.sub(b" ", content))
    if _UNUSUAL.search(words) is not None:
        return None
    operators = words.split()
    if b"BI" in operators or b"ID" in operators:
        return None
    return [_COUNTED[word] for word in operators if word in _COUNTED]


def _operators(page: pikepdf.Page) -> list[str]:
    try:
        return [_name_of(item.operator) for item in pikepdf.parse_content_stream(page, _OPERATORS)]
    except (pikepdf.PdfError, TypeError):
        return []


def _name_of(operator: pikepdf.Operator) -> str:
    """Return the operator's name. What is no operator at all need not be text either."""
    return bytes(operator.unparse()).decode("latin-1")


def _wrapped(pdf: pikepdf.Pdf, page: pikepdf.Page, streams: list[Stream]) -> Stream:
    """Content that draws the page's streams as a form, which is parsed on its own."""
    form = pdf.make_stream(b"\n".join(_decoded(stream) for stream in streams))
    resources = copied(page.resources)
    form.stream_dict.update(
        Dictionary(Type=Name.XObject, Subtype=Name.Form, BBox=Array(page.mediabox), Resources=copied(resources))
    )
    entry = resources.get("/XObject")
    objects = copied(entry) if isinstance(entry, Dictionary) else Dictionary()
    name = next(name for number in range(len(objects) + 1) if (name := f"/CountersignPage{number}") not in objects)
    objects[name] = form
    resources.XObject = objects
    page.obj.Resources = resources
    return pdf.make_stream(f"q {name} Do Q".encode())


def _decoded(stream: Stream) -> bytes:
    try:
        return bytes(stream.read_bytes())
    except pikepdf.PdfError:
        return b""


def _brackets(operators: list[str]) -> tuple[bytes, bytes]:
    """Return what to put before and behind content with these operators."""
    missing = 0
    open_: list[str] = []
    for operator in operators:
        if operator in _CLOSES:
            open_.append(operator)
        elif operator == "Q" and "q" not in open_:
            # It would restore the state that our own q saved, and what follows would be drawn outside of it.
            missing += 1
        elif operator in _OPENERS:
            _close(open_, operator)
    closing = [_CLOSES[operator] for operator in reversed(open_)]
    return b"q " * (missing + 1), "\n".join(["", *closing, "Q"]).encode()


def _close(open_: list[str], operator: str) -> None:
    for index in range(len(open_) - 1, -1, -1):
        if open_[index] in _OPENERS[operator]:
            del open_[index]
            return
