"""Values of variables as text of a DOCX."""

import math
import re
from typing import Any

from docx.shared import RGBColor
from docx.text.font import Font

from services.rendering.jobs.docx.names import RUN_PROPERTIES
from services.rendering.jobs.docx.tokens import bare_run

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
        if is_value and piece[:1] in ("{", "}"):
            marked = bare_run(model)
            Font(marked).color.rgb = RGBColor(*INERT_COLOR)
            marked.add_t(piece)
            runs += [marked, bare_run(model)]
        elif piece == "\n":
            runs[-1].add_br()
        elif piece == "\t":
            runs[-1].add_tab()
        elif piece:
            runs[-1].add_t(piece)
    return [run for run in runs if any(child.tag != RUN_PROPERTIES for child in run)]
