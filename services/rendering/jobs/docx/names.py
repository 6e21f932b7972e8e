"""Names of WordprocessingML (ISO/IEC 29500-1) in lxml's notation."""

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
W = f"{{{WORD}}}"
TRANSITIONAL = "http://schemas.openxmlformats.org/"
STRICT = "http://purl.oclc.org/ooxml/"
"""What the names of the same elements begin with in a file that Word saved as Strict Open XML."""
VML = "{urn:schemas-microsoft-com:vml}"
OFFICE = "{urn:schemas-microsoft-com:office:office}"
RELATIONSHIPS = "{http://schemas.openxmlformats.org/package/2006/relationships}"
RELATIONSHIP_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
CONTENT_TYPES = "{http://schemas.openxmlformats.org/package/2006/content-types}"
SPACE = "{http://www.w3.org/XML/1998/namespace}space"

PARAGRAPH, RUN, TEXT = f"{W}p", f"{W}r", f"{W}t"
PARAGRAPH_PROPERTIES, RUN_PROPERTIES = f"{W}pPr", f"{W}rPr"
TABLE, ROW, CELL = f"{W}tbl", f"{W}tr", f"{W}tc"
TEXT_BOX = f"{W}txbxContent"
VALUE = f"{W}val"


def names(text: str) -> frozenset[str]:
    """Names with blanks between them."""
    return frozenset(text.split())
