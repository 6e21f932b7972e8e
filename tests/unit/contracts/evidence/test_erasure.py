"""The receipt of a deletion as it is signed."""

from datetime import UTC, datetime

from contracts.evidence import erasure
from contracts.evidence.erasure import ErasedDocument, ErasedPart, ErasureReason, ErasureReceipt
from contracts.evidence.statements import LineReference

AT = datetime(2026, 3, 5, 9, tzinfo=UTC)


def test_it_is_written_in_one_form_and_read_again() -> None:
    receipt = ErasureReceipt(
        submission=31,
        why=ErasureReason(reason=erasure.RETENTION, keep_days=30, due_at=AT),
        erased_at=AT,
        completed_at=AT,
        trail=LineReference(number=14, hash="ab"),
        documents=[ErasedDocument(kind="sealed", sha256="cd")],
        parts={"files": ErasedPart(at=AT, deleted={"files": 7})},
    )
    text = erasure.encoded(receipt)
    assert text == (
        '{"completed_at":"2026-03-05T09:00:00.000Z","documents":[{"kind":"sealed","sha256":"cd"}],'
        '"erased_at":"2026-03-05T09:00:00.000Z","parts":{"files":{"at":"2026-03-05T09:00:00.000Z","deleted":{"files":7},'
        '"storage":null}},"submission":31,"trail":{"hash":"ab","number":14},"type":"erasure","version":1,'
        '"why":{"due_at":"2026-03-05T09:00:00.000Z","keep_days":30,"key":null,"reason":"retention","user":null}}'
    )
    assert ErasureReceipt.model_validate_json(text) == receipt
    assert erasure.digest("ü") == "607474ca475a9724d7360aba71a56d5df77e61350e3f724cfa1f46e857e2d85f"


def test_every_part_has_to_be_confirmed() -> None:
    assert set(erasure.PARTS) == {"submissions", "files", "notifications", "rendering", "webhooks"}
