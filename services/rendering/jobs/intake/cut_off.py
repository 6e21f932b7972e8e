"""Files that end too early. Readers make up for lost cross-references by searching for objects, and show what they find: a
contract without its last pages, or a page without its words. Such a file is refused, unless everything is there.
"""

from collections.abc import Sequence

import pikepdf

from services.rendering.jobs.pdf.refused import Refused

_SEARCHED = "reconstruct cross-reference"
"""In qpdf's warning that it searched the file for objects."""


def check_complete(pdf: pikepdf.Pdf, warnings: Sequence[str]) -> None:
    """``warnings``: qpdf's, from opening the file. Raises Refused when objects were searched for and one that is referred to
    was not found: it is null then."""
    if any(_SEARCHED in line for line in warnings) and any(item is None for item in pdf.objects):
        raise Refused("The PDF is cut off or damaged: parts of it are missing.")
