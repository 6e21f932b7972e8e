"""The evidence ZIP without a suite: its layout, and that verify.py finds what somebody changed who also made all hashes anew."""

import contextlib
import hashlib
import json
import random
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contracts.blobs import DOCX, BlobRef
from contracts.errors import ServiceError
from contracts.evidence import statements
from contracts.evidence.audit_chain import START, as_hashed
from contracts.evidence.statements import LineReference, Statement
from contracts.rpc.rendering import SignedEvidence
from contracts.rpc.submissions.api import Evidence, EvidenceDocument
from contracts.runtime.data.files.blobstore import BlobDamaged, BlobStore
from services.gateway.evidence import archive, verify
from services.gateway.evidence.archive import Archive
from services.rendering.sealing.evidence import written

AT = datetime(2026, 11, 23, 1, 2, 3, tzinfo=UTC)
SHOWN = b"%PDF-1.7 as it was shown"
SIGNER = 34


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore.from_url(f"file://{tmp_path}/blobs")


def lines(**more: Any) -> list[str]:
    done = {"documents": [hashlib.sha256(SHOWN).hexdigest()], "shown": "1.ab", "values": "cd" * 32, **more}
    told = [("create_submission", None, {}), ("complete_form", SIGNER, done), ("complete_submission", None, {})]
    return [as_hashed(submitter_id=who, event_type=kind, occurred_at=AT, data=data) for kind, who, data in told]


def hashes(told: list[str]) -> list[str]:
    found = [START]
    for line in told:
        found.append(hashlib.sha256((found[-1] + line).encode()).hexdigest())
    return found[1:]


def statement(told: list[str], **more: Any) -> Statement:
    data = json.loads(told[1])["data"]
    done = LineReference(number=2, hash=hashes(told)[1])
    given = {"shown": data["shown"], "values": data["values"], "documents": {"u": data["documents"][0]}, **more}
    return Statement(submission=12, submitter=SIGNER, completed_at=AT, line=done, head=done, paper="ef", **given)


def trail_of(told: list[str], *sealed: bytes) -> bytes:
    """As far as it is looked at."""
    files = " ".join(hashlib.sha256(one).hexdigest() for one in sealed)
    return f"%PDF << /CountersignEvents (2 {hashes(told)[1]}) /CountersignSealed ({files}) >>".encode()


def evidence(blobs: BlobStore, told: list[str], name: str = "Lease/../of a flat ü") -> Evidence:
    original, shown, sealed, trail = (
        blobs.put(data, kind, "submissions/12/")
        for data, kind in (
            (b"PK word", DOCX),
            (SHOWN, "application/pdf"),
            (b"%PDF sealed", "application/pdf"),
            (trail_of(told, b"%PDF sealed"), "application/pdf"),
        )
    )
    document = EvidenceDocument(uuid="u", name=name, original=original, shown=shown, sealed=sealed)
    return Evidence(
        id=12, sealed_at=AT, documents=[document], audit_trail=trail, completed=[SIGNER],
        line_count=len(told), head=hashes(told)[-1], lines=told,
    )  # fmt: skip


def folder(path: Path, blobs: BlobStore, told: list[str], *stated: Statement) -> Path:
    """Evidence of these lines and statements, unpacked, all of whose hashes are right."""
    entries, manifest = archive.members(evidence(blobs, told), told, blobs)
    files = {entry.path: b"".join(entry.chunks()) for entry in entries}
    made = json.loads(written(manifest))
    for one in stated:
        data = statements.encoded(one)
        name = f"statements/{SIGNER}-{statements.digest(one)}.json"
        files |= {name: data, name.replace("json", "p7s"): b"signature"}
        made["parties"][0]["statements"].append({"statement": name, "signature": name.replace("json", "p7s")})
    made["members"] = {
        name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name, data in files.items()
    }
    files |= {"manifest.json": json.dumps(made).encode(), "manifest.json.p7s": b"signature"}
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def faults(path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    verify.check(verify.Folder(path), verify.Report())
    return [line.removeprefix("WRONG  ") for line in capsys.readouterr().out.splitlines() if line.startswith("WRONG")]


def test_what_is_as_it_was_has_no_fault(tmp_path: Path, blobs: BlobStore, capsys: pytest.CaptureFixture[str]) -> None:
    told = lines()
    made = statement(told)
    assert faults(folder(tmp_path / "a", blobs, told, made), capsys) == []
    verify.check(verify.Folder(tmp_path / "a"), verify.Report())
    assert statements.receipt(statements.digest(made)) in capsys.readouterr().out
    assert faults(folder(tmp_path / "b", blobs, told), capsys) == []  # of an older version


Change = Callable[[list[str]], tuple[list[str], list[Statement]]]


def changed_value(told: list[str]) -> tuple[list[str], list[Statement]]:
    return lines(values="ee" * 32), [statement(told)]


def changed_values_of_the_statement(told: list[str]) -> tuple[list[str], list[Statement]]:
    return told, [statement(told, values="ee" * 32)]


def other_shown(told: list[str]) -> tuple[list[str], list[Statement]]:
    return told, [statement(told, shown="2.ab")]


def other_documents(told: list[str]) -> tuple[list[str], list[Statement]]:
    return told, [statement(told, documents={"u": "00" * 32})]


def other_uuid(told: list[str]) -> tuple[list[str], list[Statement]]:
    return told, [statement(told, documents={"w": hashlib.sha256(SHOWN).hexdigest()})]


def other_moment(told: list[str]) -> tuple[list[str], list[Statement]]:
    return told, [statement(told).model_copy(update={"completed_at": AT.replace(minute=9)})]


def other_submission(told: list[str]) -> tuple[list[str], list[Statement]]:
    return told, [statement(told).model_copy(update={"submission": 13})]


def other_line(told: list[str]) -> tuple[list[str], list[Statement]]:
    line = LineReference(number=1, hash=hashes(told)[0])
    return told, [statement(told).model_copy(update={"line": line})]


def other_head(told: list[str]) -> tuple[list[str], list[Statement]]:
    return told, [statement(told).model_copy(update={"head": LineReference(number=9, hash="ab")})]


def two_statements(told: list[str]) -> tuple[list[str], list[Statement]]:
    return told, [statement(told), statement(told).model_copy(update={"paper": "00"})]


def other_file_signed(told: list[str]) -> tuple[list[str], list[Statement]]:
    again = lines(documents=["00" * 32])
    return again, [statement(again)]


def nobody_completed(told: list[str]) -> tuple[list[str], list[Statement]]:
    return [told[0], told[2]], []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (changed_value, "line 2 has another hash"),
        (changed_values_of_the_statement, "the values: another digest"),
        (other_shown, "what was shown: another digest"),
        (other_documents, "the documents: another digest"),
        (other_uuid, "is another document"),
        (other_moment, "the completion was at another time"),
        (other_submission, "it is about another submission"),
        (other_line, "the line is not the completion"),
        (other_head, "line 9 has another hash"),
        (two_statements, "2 different statements on party 34"),
        (other_file_signed, "the completion in line 2 is not of shown/"),
        (nobody_completed, "no line says that party 34 completed"),
    ],
)
def test_a_careful_forger_is_found(
    tmp_path: Path, blobs: BlobStore, capsys: pytest.CaptureFixture[str], change: Change, expected: str
) -> None:
    told, stated = change(lines())
    found = faults(folder(tmp_path / "evidence", blobs, told, *stated), capsys)
    assert any(expected in fault for fault in found), found


def test_a_broken_chain_is_found(tmp_path: Path, blobs: BlobStore, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder(tmp_path / "evidence", blobs, lines())
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["events"]["head"] = "00" * 32
    (path / "manifest.json").write_text(json.dumps(manifest))
    assert any("the chain of events does not hold" in fault for fault in faults(path, capsys))


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (trail_of(lines(shown="2.ab"), b"%PDF sealed"), "was made of other events"),
        (trail_of(lines(), b"%PDF sealed") * 2, "was made of other events"),
        (trail_of(lines(), b"%PDF another"), "is of other sealed documents"),
        (trail_of(lines(), b"%PDF sealed", b"%PDF another"), "is of other sealed documents"),
        (b"%PDF /CountersignSealed ()", "was made of other events"),
    ],
)
def test_a_trail_of_something_else_is_found(
    tmp_path: Path, blobs: BlobStore, capsys: pytest.CaptureFixture[str], other: bytes, expected: str
) -> None:
    path = folder(tmp_path / "evidence", blobs, lines())
    replace_trail(path, other)
    (fault,) = faults(path, capsys)
    assert expected in fault


def test_a_trail_of_an_older_version_is_compared_by_people(
    tmp_path: Path, blobs: BlobStore, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder(tmp_path / "evidence", blobs, lines())
    replace_trail(path, b"%PDF")
    verify.check(verify.Folder(path), verify.Report())
    said = capsys.readouterr().out
    assert "WRONG" not in said
    assert "compare the hashes at its end" in said


def replace_trail(path: Path, data: bytes) -> None:
    (path / archive.TRAIL).write_bytes(data)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["members"][archive.TRAIL] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    (path / "manifest.json").write_text(json.dumps(manifest))


def test_no_statement_is_left_out_of_what_is_said(
    tmp_path: Path, blobs: BlobStore, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder(tmp_path / "evidence", blobs, lines())
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["parties"] = []
    (path / "manifest.json").write_text(json.dumps(manifest))
    assert faults(path, capsys) == ["party 34 completed, and the manifest does not have it"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, verify.__file__, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "hostile",
    [
        "[" * 100_000,
        "[]",
        "1" * 5_000,
        '{"type": NaN}',
        ("members", []),
        ("parties", [{"submitter": [], "statements": []}]),
        ("parties", [{"submitter": "34", "statements": []}]),
        ("documents", [{"original": [], "shown": {}, "sealed": 1}]),
        ("sealed_at", "9999-99-99T99:99:99.999Z"),
        ("revocation", 1),
    ],
    ids=lambda one: str(one)[:40],
)
def test_a_hostile_manifest_is_refused_in_words(tmp_path: Path, blobs: BlobStore, hostile: Any) -> None:
    path = folder(tmp_path / "evidence", blobs, lines())
    if isinstance(hostile, tuple):
        hostile = json.dumps({**json.loads((path / "manifest.json").read_text()), hostile[0]: hostile[1]})
    (path / "manifest.json").write_text(hostile)
    ended = run(str(path))
    assert ended.returncode in (1, 2)
    assert "WRONG" in ended.stdout
    assert ended.stderr == ""


# --- the ZIP ---------------------------------------------------------------------------------------------------------------


def packed(path: Path, blobs: BlobStore) -> Path:
    told = lines()
    entries, manifest = archive.members(evidence(blobs, told), told, blobs)
    kept = blobs.put(b"{}", "application/json", "statements/12/")
    signed = SignedEvidence(manifest=written(manifest), signature="AAAA", made={}, stored={"statements/1.json": kept})
    whole = Archive.of([*entries, *archive.signed_members(signed, blobs)])
    data = b"".join(whole.chunks())
    assert len(data) == whole.size
    path.write_bytes(data)
    return path


def test_other_programs_read_the_zip(tmp_path: Path, blobs: BlobStore) -> None:
    path = packed(tmp_path / "a.zip", blobs)
    with zipfile.ZipFile(path) as read:
        assert read.testzip() is None
        names = [one.filename for one in read.infolist()]
        assert {one.compress_type for one in read.infolist()} == {zipfile.ZIP_STORED}
        assert {one.date_time for one in read.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert read.read("shown/01-Lease-of-a-flat-u.pdf") == SHOWN
    assert names == sorted(names)
    assert "originals/01-Lease-of-a-flat-u.docx" in names
    assert packed(tmp_path / "b.zip", blobs).read_bytes() == path.read_bytes()
    assert verify.Zip(path).names() == names


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "con", "漢字", "a" * 500, "-rf", "x.pdf\n"])
def test_whatever_a_document_is_called_its_file_has_a_plain_name(tmp_path: Path, blobs: BlobStore, name: str) -> None:
    told = lines()
    entries, manifest = archive.members(evidence(blobs, told, name), told, blobs)
    path = tmp_path / "a.zip"
    path.write_bytes(b"".join(Archive.of(entries).chunks()))
    assert len(verify.Zip(path).names()) == len(entries)
    assert manifest.documents[0].name == name


def test_a_damaged_file_is_found_before_anything_is_sent(tmp_path: Path, blobs: BlobStore) -> None:
    ref = blobs.put(b"as it was", "application/pdf", "submissions/12/")
    (tmp_path / "blobs" / ref.key).write_bytes(b"as it is ")
    with pytest.raises(BlobDamaged):
        Archive.of([archive.of_blob("a.pdf", ref, blobs)])


def test_what_no_zip_holds_is_refused(blobs: BlobStore) -> None:
    huge = BlobRef(key="submissions/12/x", sha256="ab" * 32, size=2**32, media_type="application/pdf")
    with pytest.raises(ServiceError, match="larger than 4 GB") as refused:
        Archive.of([archive.of_blob("a.pdf", huge, blobs)])
    assert refused.value.status == 413


def test_each_changed_byte_of_the_zip_is_found(tmp_path: Path, blobs: BlobStore) -> None:
    """Every byte that is no member's, and many that are."""
    data = packed(tmp_path / "a.zip", blobs).read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as read:
        heads = [range(one.header_offset, one.header_offset + 30 + len(one.filename) + 2) for one in read.infolist()]
        directory = read.start_dir
    chance = random.Random(12)
    places = {place for head in heads for place in head} | {*range(directory, len(data))}
    places |= {chance.randrange(len(data)) for _ in range(500)}
    path, missed = tmp_path / "changed.zip", []
    for place in sorted(places):
        changed = bytearray(data)
        changed[place] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        with contextlib.suppress(verify.Unreadable):
            verify.Zip(path)
            missed.append(place)
    assert len(places) > 1_500
    assert missed == []


@pytest.mark.parametrize("how", ["before", "behind", "between", "cut", "twice"])
def test_what_is_added_to_the_zip_is_found(tmp_path: Path, blobs: BlobStore, how: str) -> None:
    data = packed(tmp_path / "a.zip", blobs).read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as read:
        directory = read.start_dir
    changed = {
        "before": b"#!/bin/sh\n" + data,
        "behind": data + b"\0",
        "between": data[:directory] + b"hidden" + data[directory:-6] + struct.pack("<IH", directory + 6, 0),
        "cut": data[:-1],
        "twice": data + data,
    }[how]
    (tmp_path / "a.zip").write_bytes(changed)
    with pytest.raises(verify.Unreadable):
        verify.Zip(tmp_path / "a.zip")
