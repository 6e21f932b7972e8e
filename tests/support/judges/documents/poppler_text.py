"""Words and their places as poppler's pdftotext finds them: a reader that shares nothing with pdfium."""

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

_XHTML = "{http://www.w3.org/1999/xhtml}"


@dataclass(frozen=True)
class FoundWord:
    """In points, from the top left of the visible page."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


def words_of(data: bytes, page: int = 1) -> list[FoundWord]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "file.pdf"
        file.write_bytes(data)
        number = str(page)
        command = ["pdftotext", "-cropbox", "-bbox", "-f", number, "-l", number, str(file), "-"]
        answer = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
    # pdftotext writes titles and control characters as they are.
    text = "".join(c for c in answer.decode("utf-8", "replace") if c >= " " or c == "\n")
    root = ET.fromstring(text)
    return [
        FoundWord(word.text or "", *(float(word.attrib[side]) for side in ("xMin", "yMin", "xMax", "yMax")))
        for word in root.iter(f"{_XHTML}word")
    ]
