"""Files that end too early. Readers make up for a lost trailer by searching for objects, and show what they find: a contract
without its last pages, or a page without its words. Such a file is refused, unless everything that it refers to is there.
"""

import pikepdf

from services.rendering.jobs.refused import Refused


def check_complete(pdf: pikepdf.Pdf) -> None:
    """Raises Refused when the trailer is lost (qpdf made one, which has no /Size) and objects are, too: what is referred to
    and not there is null."""
    if "/Size" not in pdf.trailer and any(item is None for item in pdf.objects):
        raise Refused("The PDF is cut off or damaged: parts of it are missing.")
