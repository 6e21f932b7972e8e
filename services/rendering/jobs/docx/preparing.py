"""A DOCX made ready for LibreOffice: checked, cleaned, its variables filled, its tags' alignment noted."""

from collections.abc import Mapping
from typing import Any

from docx.exceptions import PythonDocxError
from lxml import etree

from contracts.types import Notice
from services.rendering.jobs.docx import variables as docx_variables
from services.rendering.jobs.docx.cleaning import clean
from services.rendering.jobs.docx.fonts import requested_fonts
from services.rendering.jobs.docx.formatting import docx_tags
from services.rendering.jobs.docx.package import open_package
from services.rendering.jobs.docx.tokens import isolate
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.tags.values import clean as shown
from services.rendering.protocol.messages import ReadyDocx

LONGEST_REPORT = 50
_BROKEN = (
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    PythonDocxError,
    RecursionError,
    TypeError,
    ValueError,
    etree.LxmlError,
)


def prepare_docx(data: bytes, variables: Mapping[str, Any] | None, *, name: str, most_bytes: int) -> ReadyDocx:
    """Without ``variables`` placeholders stay as text. Raises Refused. Must run where memory and time are limited."""
    try:
        return _prepare(data, variables, name, most_bytes)
    except MemoryError as error:
        raise Refused("The DOCX is too complicated to be processed.") from error
    except _BROKEN as error:
        raise Refused("The DOCX is damaged: its parts do not fit together.") from error


def _prepare(data: bytes, variables: Mapping[str, Any] | None, name: str, most_bytes: int) -> ReadyDocx:
    package = open_package(data, name=name, most_bytes=most_bytes)
    clean(package, name=name)
    roots = package.stories()
    odd = [text for root in roots for text in isolate(root)]
    schema = docx_variables.schema(roots)
    if variables is None:
        docx_variables.restore(roots)
    else:
        docx_variables.fill(roots, variables)
    report = package.report + [
        Notice(
            code="unknown_variable", message=f"“{shown(text, 120)}” is not a variable; it stays as text.", document=name
        )
        for text in list(dict.fromkeys(odd))[:LONGEST_REPORT]
    ]
    return ReadyDocx(package.save(), schema, docx_tags(package, roots), requested_fonts(package, roots), report)
