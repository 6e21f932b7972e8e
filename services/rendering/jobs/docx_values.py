"""Values of variables as text of a DOCX."""

import math
import re
from typing import Any

from services.rendering.jobs.docx_names import RUN_PROPERTIES, TEXT, VALUE, W
from services.rendering.jobs.docx_tokens import bare_run, set_text

INERT_COLOR = (1, 0, 1)
"""Red, green and blue of braces that came with a value: as good as black, and no author's."""

_LINES = re.compile(r"\r\n|\r|\n|\u2028|\u2029|\x0b|\x0c")
_PIECES = re.compile(r"(\n|\t|[{}]+)")
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""What turns the direction of all that follows; letters from right to left need none of it."""
_UNFIT = re.compile("[\x00-\x08\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def as_text(value: Any) -> str:
    """A scalar as it is written: whole numbers without a fraction, null as nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isfinite(value) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return _UNFIT.sub("", _LINES.sub("\n", str(value)))


def text_runs(model: Any, text: str, *, is_value: bool = True) -> list[Any]:
    """Runs formatted as ``model``, with line breaks and tabs, braces that make no tag in a value, and without characters that
    turn what stands behind them."""
    runs = [bare_run(model)]
    for piece in _PIECES.split(_TURNING.sub("", text)):
        if not piece:
            continue
        if is_value and piece[0] in "{}":
            marked = bare_run(model)
            _mark(marked)
            _write(marked, piece)
            runs += [marked, bare_run(model)]
        elif piece in "\n\t":
            runs[-1].append(runs[-1].makeelement(f"{W}br" if piece == "\n" else f"{W}tab"))
        else:
            _write(runs[-1], piece)
    return [run for run in runs if any(child.tag != RUN_PROPERTIES for child in run)]


def _write(run: Any, text: str) -> None:
    element = run.makeelement(TEXT)
    set_text(element, text)
    run.append(element)


def _mark(run: Any) -> None:
    properties = run.find(RUN_PROPERTIES)
    if properties is None:
        properties = run.makeelement(RUN_PROPERTIES)
        run.insert(0, properties)
    for known in properties.findall(f"{W}color"):
        properties.remove(known)
    color = properties.makeelement(f"{W}color", {VALUE: bytes(INERT_COLOR).hex()})
    properties.append(color)
