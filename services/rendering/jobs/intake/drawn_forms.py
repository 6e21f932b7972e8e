"""How often the pages of a PDF draw form XObjects. Ten forms that draw each other ten times are 2 KB and ten billion drawings
(threats T18): such a page is refused before a reader begins with it."""

import warnings
from typing import Any

import pikepdf

from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.pdf.values import name_of

MOST_DRAWN_FORMS = 20_000
"""On one page, those inside other forms included."""

_DEEPEST = 64


def check_drawn_forms(pdf: pikepdf.Pdf) -> None:
    """Raises Refused when a page draws too many. Forms that draw no forms cost nothing here: they are not even read."""
    for number, page in enumerate(pdf.pages, 1):
        counter = _Counter(page.obj)
        if counter.has_nested_forms() and counter.drawn_by(page.obj, ()) > MOST_DRAWN_FORMS:
            raise Refused(
                f"Page {number} of the PDF draws more than {MOST_DRAWN_FORMS:,} forms, or one that draws itself."
            )


class _Counter:
    def __init__(self, page: pikepdf.Dictionary) -> None:
        self._of_page = _forms_in(_inherited_resources(page))
        self._known: dict[tuple[int, int], int] = {}

    def has_nested_forms(self) -> bool:
        return any(self._forms_of(form) for form in self._of_page.values())

    def drawn_by(self, content: Any, above: tuple[tuple[int, int], ...]) -> int:
        """Number of drawings that drawing ``content`` once leads to; too many for one that draws itself."""
        forms = self._forms_of(content)
        if not forms:
            return 0
        if content.objgen in above or len(above) > _DEEPEST:
            return MOST_DRAWN_FORMS + 1  # pdfium follows a circle for dozens of rounds.
        if content.objgen not in self._known:
            total = 0
            for name, times in _draws(content, forms).items():
                inner = self.drawn_by(forms[name], (*above, content.objgen))
                total = min(total + times * (1 + inner), MOST_DRAWN_FORMS + 1)
            self._known[content.objgen] = total
        return self._known[content.objgen]

    def _forms_of(self, content: Any) -> dict[str, pikepdf.Stream]:
        """A form without resources of its own uses the page's (ISO 32000-2, 7.8.3)."""
        if isinstance(content, pikepdf.Stream) and "/Resources" in content:
            return _forms_in(content["/Resources"])
        return self._of_page


def _inherited_resources(page: pikepdf.Dictionary) -> Any:
    node: Any = page
    for _ in range(_DEEPEST):
        if not isinstance(node, pikepdf.Dictionary) or "/Resources" in node:
            break
        node = node.get("/Parent")
    return node.get("/Resources") if isinstance(node, pikepdf.Dictionary) else None


def _forms_in(resources: Any) -> dict[str, pikepdf.Stream]:
    xobjects = resources.get("/XObject") if isinstance(resources, pikepdf.Dictionary) else None
    if not isinstance(xobjects, pikepdf.Dictionary):
        return {}
    return {
        name: item
        for name, item in xobjects.items()
        if isinstance(item, pikepdf.Stream) and item.get("/Subtype") == "/Form"
    }


def _draws(source: Any, forms: dict[str, pikepdf.Stream]) -> dict[str, int]:
    """Return how often the content draws each of the forms; once each when it cannot be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            drawn = [name_of(instruction.operands[0]) for instruction in pikepdf.parse_content_stream(source, "Do")]
    except (pikepdf.PdfError, IndexError, TypeError, ValueError):
        return dict.fromkeys(forms, 1)
    return {name: drawn.count(name) for name in set(drawn) if name in forms}
