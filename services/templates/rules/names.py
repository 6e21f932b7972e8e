"""Names that people give: what may be in them.

Control characters and the ones that turn the direction of text around would let a name read as something else in the
audit trail and in mails (U+202E makes ``gpj.exe`` of ``exe.jpg``).
"""

import re

from contracts.fields.checker import wrong_name
from contracts.fields.rules import LONGEST_NAME
from contracts.formats.plain_text import one_line
from contracts.problems import Problems

_NOT_IN_FILE_NAMES = re.compile(r'[\\/:*?"<>|]')
_EXTENSIONS = (".pdf", ".docx", ".png", ".jpg", ".jpeg", ".webp", ".heic", ".heif", ".tif", ".tiff", ".gif")


def cleaned(name: str) -> str:
    """Without the forbidden characters and outer blanks, not longer than a name may be: for names found in files."""
    return one_line(name)[:LONGEST_NAME].rstrip()


def key(name: str, path: str, problems: Problems) -> str:
    """A name that values are found by (field, role, option, external_id): refused rather than changed."""
    name = name.strip()
    if reason := wrong_name(name):
        problems.add(path, reason)
    return name


def title(name: str, path: str, problems: Problems) -> str:
    """A name that is only shown (template, document, folder): forbidden characters are dropped."""
    name = one_line(name)
    if len(name) > LONGEST_NAME:
        problems.add(path, f"must not be longer than {LONGEST_NAME} characters")
    return name[:LONGEST_NAME]


def document(name: str) -> str:
    """A document's name without the extension that the published clients send with it."""
    for extension in _EXTENSIONS:
        if name.lower().endswith(extension):
            return name[: -len(extension)].rstrip() or name
    return name


def file_name(name: str) -> str:
    """Return what the file is called when it is saved: never a path, whatever the document is called."""
    return _NOT_IN_FILE_NAMES.sub("_", name).lstrip(".")[:200] + ".pdf"


def searchable(name: str) -> str:
    """The form that searches compare: case does not matter."""
    return name.casefold()
