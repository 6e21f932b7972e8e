"""What /verify says: which words for which finding, who is told names, how often one may ask."""

import io
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import flask
import pytest
from werkzeug.datastructures import FileStorage
from werkzeug.test import TestResponse

from contracts.errors import ServiceError, invalid, not_found
from contracts.evidence.statements import LineReference, Statement
from contracts.rpc import rendering, submissions
from contracts.rpc.rendering import Recognised, Verification, VerifiedSignature
from contracts.rpc.submissions.receipts import FoundReceipt, FoundSealed, NamedParty
from contracts.runtime.bus import caller
from contracts.runtime.data.files.blobstore import BlobStore
from services.gateway.pages import verify
from services.gateway.pages.app import create_pages
from tests.unit.gateway.pages.conftest import RecordingBus, Settings

AT = datetime(2026, 11, 23, 1, 2, 3, tzinfo=UTC)
NAMES = ("Sam Seller", "Bo Buyer")
RECEIPT = "7K2M-0000-ABCD-EFGH-JKMN"


def signature(field: str = "Signature1", **more: Any) -> VerifiedSignature:
    given = {
        "indication": "TOTAL-PASSED",
        "integrity": "valid",
        "trust": "trusted",
        "covers_whole_document": True,
        "changed_after_signing": False,
        "signer_name": "Somebody <b>else</b>",
        **more,
    }
    return VerifiedSignature(field=field, **given)


def found(status: str, *signatures: VerifiedSignature, own: tuple[str, ...] = (), here: bool = False) -> Recognised:
    verification = Verification(checksum_status=status, sealed_here=here, signatures=list(signatures))
    known = {"sealed_at": AT, "submission_id": 12} if here else {}
    return Recognised(verification=verification, own_seals=list(own), **known)


BROKEN = signature(integrity="invalid")
CHANGED = signature(changed_after_signing=True)
UNCHECKED = signature(integrity="unknown")


@pytest.fixture
def pages(make_pages: Callable[..., flask.Flask], bus: RecordingBus) -> flask.Flask:
    bus.answers[rendering.ROOT] = rendering.Root(pem="-----BEGIN", subject="CN=Root", sha256="ab" * 32)
    bus.answers[rendering.RECOGNISE] = found("sealed_here", here=True)
    parties = [NamedParty(name=name, completed_at=AT, by_api=name.startswith("Bo")) for name in NAMES]
    bus.answers[submissions.receipts.SEALED_FILE] = FoundSealed(
        submission_id=12, name="Lease", document="Contract", sealed_at=AT, parties=parties
    )
    return make_pages()


def sent(
    pages: flask.Flask, path: str = "/verify", address: str = "192.0.2.1", data: bytes = b"%PDF-1.7"
) -> TestResponse:
    file = FileStorage(stream=io.BytesIO(data), filename="lease.pdf", content_type="application/pdf")
    return pages.test_client().post(path, data={"file": file}, environ_base={"REMOTE_ADDR": address})


def kind(answer: TestResponse) -> str | None:
    _, there, rest = answer.text.partition('data-kind="')
    return rest.partition('"')[0] if there else None


@pytest.mark.parametrize(
    ("recognised", "expected"),
    [
        (found("valid", signature(), own=("Signature1",), here=True), "sealed"),
        (found("unknown", UNCHECKED, here=True), "sealed"),
        (found("invalid", BROKEN, own=("Signature1",)), "changed"),
        (found("invalid", CHANGED, own=("Signature1",)), "changed"),
        (found("unknown", UNCHECKED, own=("Signature1",)), "unknown"),
        (found("valid", signature(), own=("Signature1",)), "extended"),
        (found("valid", signature(), signature("Two"), own=("Signature1",)), "extended"),
        (found("invalid", signature(), signature("Two", integrity="invalid"), own=("Signature1",)), "extended"),
        (found("valid", signature()), "others"),
        (found("invalid", BROKEN), "others_broken"),
        (found("unknown", UNCHECKED), "unknown"),
        (found("unsigned"), "unsigned"),
    ],
)
def test_each_finding_has_its_words(
    pages: flask.Flask, bus: RecordingBus, recognised: Recognised, expected: str
) -> None:
    bus.answers[rendering.RECOGNISE] = recognised
    answer = sent(pages)
    assert answer.status_code == 200
    assert kind(answer) == expected
    told = expected == "sealed"
    assert all((name in answer.text) == told for name in NAMES)
    assert bool(bus.requests(submissions.receipts.SEALED_FILE)) == told
    assert "<b>else</b>" not in answer.text


def test_what_the_account_trusts_for_its_providers_is_trusted(
    pages: flask.Flask, bus: RecordingBus, blobs: BlobStore
) -> None:
    bus.answers[rendering.RECOGNISE] = found("valid", signature())
    pages = create_pages(Settings(), bus, blobs, lambda _: False, trust_anchors=lambda: ["-----BEGIN CERTIFICATE"])
    assert sent(pages).status_code == 200
    (asked,) = bus.requests(rendering.RECOGNISE)
    assert asked.trust_anchors == ["-----BEGIN CERTIFICATE"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (signature(), "holds"),
        (signature(trust="untrusted"), "holds_unknown"),
        (BROKEN, "broken"),
        (CHANGED, "broken"),
        (UNCHECKED, "unknown"),
    ],
)
def test_other_signatures_are_told(
    pages: flask.Flask, bus: RecordingBus, given: VerifiedSignature, expected: str
) -> None:
    bus.answers[rendering.RECOGNISE] = found("valid", given)
    assert f"verify__verdict--{expected}" in sent(pages).text


def test_what_the_api_did_is_not_called_signing(pages: flask.Flask) -> None:
    told = " ".join(sent(pages).text.split())
    assert "Sam Seller</bdi>, signed <time" in told
    assert "Bo Buyer</bdi>, completed for them by the sender’s program <time" in told


def test_a_file_of_several_documents_names_nobody(pages: flask.Flask, bus: RecordingBus) -> None:
    bus.answers[rendering.RECOGNISE] = found("valid", here=True).model_copy(update={"submission_id": None})
    answer = sent(pages)
    assert kind(answer) == "sealed"
    assert "put together from several documents" in answer.text
    assert bus.requests(submissions.receipts.SEALED_FILE) == []


def test_a_file_that_submissions_does_not_know_names_nobody(pages: flask.Flask, bus: RecordingBus) -> None:
    bus.answers[submissions.receipts.SEALED_FILE] = not_found("File")
    assert kind(sent(pages)) == "sealed"


def test_paper_of_another_submission_is_told(pages: flask.Flask) -> None:
    assert 'id="other-submission"' not in sent(pages, "/verify?submission=12").text
    assert 'id="other-submission"' in sent(pages, "/verify?submission=13").text
    assert 'id="expected"' in pages.test_client().get("/verify?submission=13").text
    for nonsense in ("x", "-1", "1" * 30, "\u0661"):
        answer = pages.test_client().get("/verify", query_string={"submission": nonsense})
        assert answer.status_code == 200
        assert 'id="expected"' not in answer.text


@pytest.mark.parametrize("outcome", ["sealed", "refused", "crashed"])
def test_nothing_of_the_file_is_kept(pages: flask.Flask, bus: RecordingBus, blobs: BlobStore, outcome: str) -> None:
    def answer(_request: Any) -> Any:
        assert len(list(blobs.everything())) == 1
        assert caller.current() == "page/verify"  # strangers together have one caller's share of the children
        if outcome == "crashed":
            raise RuntimeError("oops")
        return found("unsigned") if outcome == "sealed" else invalid("Malformed PDF")

    bus.answers[rendering.RECOGNISE] = answer
    got = sent(pages)
    assert got.status_code == {"sealed": 200, "refused": 422, "crashed": 500}[outcome]
    assert ("cannot be read as a PDF" in got.text) == (outcome == "refused")
    assert list(blobs.everything()) == []
    assert caller.current() is None


def test_a_large_file_and_none_at_all_are_said_on_the_page(pages: flask.Flask) -> None:
    for data, status, words in ((b"", 422, "choose a file first"), (b"x" * (4 * 2**20), 413, "larger than 1 MB")):
        answer = sent(pages, data=data)
        assert answer.status_code == status
        assert words in answer.text
        assert 'role="alert"' in answer.text


def test_an_address_may_ask_so_often(pages: flask.Flask) -> None:
    answers = [sent(pages).status_code for _ in range(verify._FILES + 3)]
    assert answers == [200] * verify._FILES + [429] * 3
    assert sent(pages, address="192.0.2.2").status_code == 200
    assert pages.test_client().get("/verify").status_code == 200


def test_receipts_are_not_tried_one_after_the_other(pages: flask.Flask) -> None:
    client = pages.test_client()
    answers = [client.get("/verify?receipt=x").status_code for _ in range(2 * verify._RECEIPTS)]
    assert answers[: verify._RECEIPTS] == [404] * verify._RECEIPTS
    assert 429 in answers


def test_a_household_of_ipv6_counts_as_one(pages: flask.Flask) -> None:
    answers = [sent(pages, address=f"2001:db8::{number:x}").status_code for number in range(verify._FILES + 1)]
    assert answers[-1] == 429
    assert sent(pages, address="2001:db8:0:1::1").status_code == 200


@contextmanager
def under_way(pages: flask.Flask, bus: RecordingBus, addresses: Sequence[str]) -> Iterator[None]:
    """A file of each of the addresses is being checked inside."""
    begun, go_on = threading.Semaphore(0), threading.Event()

    def answer(_request: Any) -> Any:
        begun.release()
        assert go_on.wait(120)
        return found("unsigned")

    bus.answers[rendering.RECOGNISE] = answer
    waiting = [threading.Thread(target=sent, args=(pages, "/verify", one)) for one in addresses]
    for one in waiting:
        one.start()
    try:
        for _ in waiting:
            assert begun.acquire(timeout=120)
        yield
    finally:
        bus.answers[rendering.RECOGNISE] = found("unsigned")
        go_on.set()
        for one in waiting:
            one.join()


def test_few_files_are_checked_at_once(pages: flask.Flask, bus: RecordingBus) -> None:
    with under_way(pages, bus, [f"192.0.2.{number}" for number in range(verify.AT_ONCE)]):
        refused = sent(pages, address="198.51.100.1")
    assert refused.status_code == 503
    assert "Too many files" in refused.text
    assert sent(pages, address="198.51.100.1").status_code == 200


@pytest.mark.parametrize(("one", "other"), [("192.0.2.1", "192.0.2.2"), ("2001:db8::1", "2001:db8:0:1::1")])
def test_a_visitor_has_a_share_of_the_turns(pages: flask.Flask, bus: RecordingBus, one: str, other: str) -> None:
    with under_way(pages, bus, [one] * verify.SHARE):
        bus.answers[rendering.RECOGNISE] = found("unsigned")
        assert sent(pages, address=one).status_code == 503
        assert sent(pages, address=other).status_code == 200
    assert sent(pages, address=one).status_code == 200


def receipt(**more: Any) -> FoundReceipt:
    line = LineReference(number=1, hash="ab")
    statement = Statement(
        submission=12, submitter=34, completed_at=AT, line=line, head=line, values="cd", documents={}, paper="ef"
    )
    return FoundReceipt(receipt=RECEIPT, statement=statement, completed_at=AT, **more)


def test_a_receipt_tells_when_and_whether_all_is_sealed(pages: flask.Flask, bus: RecordingBus) -> None:
    bus.answers[submissions.receipts.RECEIPT] = receipt()
    typed = RECEIPT.lower().replace("-", " ").replace("0", "o")
    answer = pages.test_client().get("/verify", query_string={"receipt": typed})
    assert kind(answer) == "receipt"
    assert "2026-11-23 01:02:03 UTC" in answer.text
    assert "not sealed yet" in answer.text
    assert [one.receipt for one in bus.requests(submissions.receipts.RECEIPT)] == [RECEIPT]
    bus.answers[submissions.receipts.RECEIPT] = receipt(sealed_at=AT, sealed=["11" * 32, "22" * 32])
    sealed = pages.test_client().get(f"/verify?receipt={RECEIPT}").text
    assert "the documents were sealed on" in sealed
    assert "11" * 32 in sealed


@pytest.mark.parametrize("typed", ["nonsense", RECEIPT])
def test_a_receipt_that_nobody_knows(pages: flask.Flask, bus: RecordingBus, typed: str) -> None:
    bus.answers[submissions.receipts.RECEIPT] = not_found("Receipt")
    answer = pages.test_client().get("/verify", query_string={"receipt": typed})
    assert answer.status_code == 404
    assert "We know no such receipt" in answer.text
    assert f'value="{typed}"' in answer.text


def test_the_page_is_there_when_rendering_is_not(pages: flask.Flask, bus: RecordingBus) -> None:
    bus.answers[rendering.ROOT] = ServiceError("unavailable", "later")
    bus.answers[rendering.RECOGNISE] = ServiceError("unavailable", "later")
    assert pages.test_client().get("/verify").status_code == 200
    assert sent(pages).status_code == 503


def test_no_other_site_may_have_a_visitor_send_a_file(pages: flask.Flask) -> None:
    answer = pages.test_client().post("/verify", headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
