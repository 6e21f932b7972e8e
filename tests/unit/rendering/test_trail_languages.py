"""The audit trail in the account's language: nothing of ours outside of the files of messages, mirrored where it runs from right
to left."""

import json
import re
import subprocess
import unicodedata
from pathlib import Path

import pytest

from contracts.languages.choosing import languages
from contracts.languages.saying import Language, messages
from contracts.runtime.data.files.blobstore import BlobStore
from services.rendering.jobs.paper import sheets
from services.rendering.jobs.text.layout import Style
from services.rendering.jobs.trail import audit_trail
from tests.support.judges.words.marks import unmarked
from tests.support.rendering.sealing import assert_clean, seal_request
from tests.unit.rendering.test_audit_trail import made, words


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore.from_url(f"file://{tmp_path}/blobs")


def test_nothing_of_ours_is_outside_of_the_files(blobs: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed is a message, or what somebody has filled in: nothing that is neither."""
    printed: list[str] = []
    real = sheets.text

    def noted(content: str, style: Style, width: float) -> sheets.Block:
        printed.append(content)
        return real(content, style, width)

    monkeypatch.setattr(sheets, "text", noted)
    request = seal_request(blobs)
    request = request.model_copy(
        update={"account": request.account.model_copy(update={"locale": "qps"}), "base_url": "https://x.example"}
    )
    made(request, blobs)
    filled_in = re.findall(
        r'"((?:[^"\\]|\\.)*)"', json.dumps(json.loads(request.model_dump_json()), ensure_ascii=False)
    )
    technical = (
        "PAdES",
        "SHA",
        "Courier",
        "CET",
        "CEST",
        "KB",
        "MB",
        "Nov",
        "Sept",
        "https://x.example/verify?submission=",
    )
    own = [
        content
        for content in printed
        if unmarked(content, [*filled_in, *(one.upper() for one in filled_in), *technical])
    ]
    assert own == []
    assert any("⟦" in content for content in printed)


@pytest.mark.parametrize("tag", languages())
def test_every_language_is_drawn(blobs: BlobStore, tmp_path: Path, tag: str) -> None:
    """Judged by poppler, which finds the words again that the fonts have drawn, and by qpdf."""
    request = seal_request(blobs)
    account = request.account.model_copy(update={"locale": tag})
    data = made(request.model_copy(update={"account": account}), blobs)
    assert_clean(data, tmp_path)
    drawn = {letters(word) for word in words(data, tmp_path).split()}
    said = messages(tag, "trail")
    for word in f"{said['title']} {said['documents']}".split():
        assert letters(word) in drawn


def test_turkish_labels_keep_their_dots(blobs: BlobStore, tmp_path: Path) -> None:
    request = seal_request(blobs)
    account = request.account.model_copy(update={"locale": "tr"})
    drawn = words(made(request.model_copy(update={"account": account}), blobs), tmp_path)
    assert "IP ADRESİ" in drawn


def letters(word: str) -> str:
    """The characters of a word in any order: which way they run, each reader tells in a way of its own."""
    return "".join(sorted(one for one in unicodedata.normalize("NFKC", word) if unicodedata.category(one) != "Cf"))


def test_every_message_of_the_trail_is_said_somewhere() -> None:
    source = Path(audit_trail.__file__).read_text()
    keys = set(re.findall(r'["\']([a-z_]+(?:\.[a-z_]+)*)["\']', source))
    built = re.compile(r"(event|detail|change|group|way|kind)\.|outcome\.(api|signed|approved)(_at)?$")
    keys.add("unnamed")  # submissions says it, where a submission must be called something
    assert {key for key in messages("en", "trail") if key not in keys and not built.match(key)} == set()


def test_a_language_from_right_to_left_is_mirrored(
    blobs: BlobStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Judged by poppler: where words stand on the page. The words are English, so that the two can be compared."""
    request = seal_request(blobs)
    plain = words_at(made(request, blobs), tmp_path)
    monkeypatch.setattr(Language, "direction", property(lambda _: "rtl"))
    data = made(request, blobs)
    assert_clean(data, tmp_path)
    mirrored = words_at(data, tmp_path)
    for word in ("Documents", "Parties", "SUBMISSION"):
        (left, right), (left_again, right_again) = plain[word], mirrored[word]
        assert left + right < PAGE < left_again + right_again, word
        assert left == pytest.approx(PAGE - right_again, abs=4), word
    assert request.trail[-1].hash in words(data, tmp_path)


PAGE = 595.28


def words_at(data: bytes, tmp_path: Path) -> dict[str, tuple[float, float]]:
    (tmp_path / "trail.pdf").write_bytes(data)
    command = ["pdftotext", "-bbox", str(tmp_path / "trail.pdf"), "-"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.findall(r'xMin="([\d.]+)" yMin="[\d.]+" xMax="([\d.]+)" yMax="[\d.]+">([^<]+)<', text)
    return {word: (float(left), float(right)) for left, right, word in reversed(found)}
