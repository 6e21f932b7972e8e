"""What a stranger computes who has docs/evidence.md and the answers of the API: nothing of this project's code is used here.

Canonical JSON is that of the ``rfc8785`` package, what a PDF says is poppler's word.
"""

import hashlib
import io
import json
import re
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rfc8785

_PLACEHOLDER = re.compile(r"\{\{?\s*(id|role|name|email|phone)\s*\}\}?")
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_XHTML = "{http://www.w3.org/1999/xhtml}"


def digest(value: Any) -> str:
    """Compute the SHA-256, lower-case hex, of canonical JSON."""
    return hashlib.sha256(rfc8785.dumps(value)).hexdigest()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def shown(
    submission_id: int,
    submitter_id: int,
    covers: int,
    documents: Sequence[Mapping[str, Any]],
    fields: Iterable[Mapping[str, Any]],
    values: Mapping[str, Any],
) -> str:
    """Compute the token of docs/evidence.md, "What was shown". ``documents`` have ``uuid``, ``name``, ``sha256`` and
    ``conditions``; ``values`` are those that the page shows, by field uuid."""
    parts = {
        f"documents.{one['uuid']}": digest({key: one[key] for key in ("name", "sha256", "conditions")})
        for one in documents
    }
    parts |= {f"fields.{one['uuid']}": digest({"field": one, "value": values.get(one["uuid"])}) for one in fields}
    whole = {"version": 1, "submission": submission_id, "submitter": submitter_id, "covers": covers, "parts": parts}
    return f"{covers:x}.{digest(whole)}"


def standing(field: Mapping[str, Any], value: Any, party: Mapping[str, Any], submission_id: int) -> Any:
    """What stands in a heading, or in a read-only field of the signer's own with this ``value``."""
    default = field["default_value"]
    if value is not None or not isinstance(default, str) or not _PLACEHOLDER.search(default):
        return default if value is None else value
    words = {**{key: party.get(key) or "" for key in ("role", "name", "email", "phone")}, "id": str(submission_id)}
    return _PLACEHOLDER.sub(lambda found: words[found[1]], default)


def hashes(lines: Iterable[Mapping[str, Any]]) -> list[str]:
    """Compute the hashes of the lines of a trail, in order, as the API gives them."""
    found, before = [], ""
    for line in lines:
        said = {key: line[key] for key in ("submitter_id", "event_type", "event_timestamp", "data")}
        before = sha256(before.encode() + rfc8785.dumps(said))
        found.append(before)
    return found


@dataclass(frozen=True)
class Evidence:
    """What the ZIP of a sealed submission says: the hash of each line, and the bytes of the statements by submitter."""

    hashes: list[str]
    statements: dict[int, list[bytes]]


def evidence(data: bytes) -> Evidence:
    """Read the evidence ZIP: its members are those of its manifest, each statement is at its place."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    assert {name: one["sha256"] for name, one in manifest["members"].items()} == {
        name: sha256(one) for name, one in members.items() if not name.startswith("manifest.json")
    }
    found, before = [], ""
    for line in members[manifest["events"]["path"]].splitlines():
        before = sha256(before.encode() + line)
        found.append(before)
    assert (len(found), before) == (manifest["events"]["lines"], manifest["events"]["head"])
    statements: dict[int, list[bytes]] = {}
    for party in manifest["parties"]:
        number = party["submitter"]
        statements[number] = [members[one["statement"]] for one in party["statements"]]
        places = [f"statements/{number}-{sha256(one)}.json" for one in statements[number]]
        assert places == [one["statement"] for one in party["statements"]]
    return Evidence(found, statements)


def receipt(statement: bytes) -> str:
    """Compute the receipt of a statement: the first 100 bits of its SHA-256 in Crockford's base 32, by fours."""
    number = int.from_bytes(hashlib.sha256(statement).digest()) >> 156
    digits = [_CROCKFORD[number >> 5 * place & 31] for place in reversed(range(20))]
    return "-".join("".join(digits[start : start + 4]) for start in range(0, 20, 4))


@dataclass(frozen=True)
class Word:
    """A word on a page (from 1) and its middle, as fractions of the page from its top left corner."""

    page: int
    x: float
    y: float
    text: str


def words(pdf: bytes) -> list[Word]:
    """Read the words of a PDF with poppler, in the order of reading."""
    found = []
    for number, page in enumerate(ElementTree.fromstring(_poppler("pdftotext", pdf, "-bbox")).iter(f"{_XHTML}page"), 1):
        width, height = float(page.attrib["width"]), float(page.attrib["height"])
        for word in page.iter(f"{_XHTML}word"):
            x, y = ((float(word.attrib[f"{axis}Min"]) + float(word.attrib[f"{axis}Max"])) / 2 for axis in "xy")
            found.append(Word(number, x / width, y / height, word.text or ""))
    return found


def text_in(area: Mapping[str, Any], found: Iterable[Word]) -> str:
    """Join the words whose middle lies within an area of a field."""
    right, bottom = area["x"] + area["w"], area["y"] + area["h"]
    return " ".join(
        one.text
        for one in found
        if one.page == area["page"] and area["x"] <= one.x <= right and area["y"] <= one.y <= bottom
    )


def text(pdf: bytes) -> str:
    """Read all text of a PDF without its white space: an address that is broken over two lines is one text."""
    return "".join(_poppler("pdftotext", pdf).split())


def signatures(pdf: bytes) -> str:
    """Ask poppler about the signatures."""
    return _poppler("pdfsig", pdf, "-nocert", output=())


def _poppler(program: str, pdf: bytes, *options: str, output: Sequence[str] = ("-",)) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.pdf"
        path.write_bytes(pdf)
        command = [program, *options, str(path), *output]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
