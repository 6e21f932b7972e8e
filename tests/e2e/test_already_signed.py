"""A PDF that is signed already keeps its signatures; and the tools that join and verify PDFs."""

import base64
from typing import Any

import pytest

from tests.support import pdf_files
from tests.support.agreement import agreement_pdf, sign
from tests.support.outcomes import completed, fetched, pdf_signatures, pdf_text
from tests.support.suite import RunningSuite

AREA = {"x": 0.1, "y": 0.6, "w": 0.4, "h": 0.04, "page": 1}


@pytest.fixture(scope="module")
def suite(sqlite_suite: RunningSuite) -> RunningSuite:
    """The database makes no difference to what is in a PDF."""
    return sqlite_suite


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def signed_once(suite: RunningSuite, pdf: bytes, name: str, value: str, **document: Any) -> dict[str, Any]:
    """The submission of one signer who wrote ``value`` into the field ``name``."""
    template = suite.template(pdf, name="Signed", document=document)
    body = {"template_id": template["id"], "submitters": [{"email": "a@example.com"}], "send_email": False}
    (signer,) = suite.api("POST", "/submissions", body)
    sign(suite, signer["slug"], {name: value})
    return completed(suite, signer["submission_id"])


def field(name: str, **area: Any) -> list[dict[str, Any]]:
    return [{"name": name, "type": "text", "role": "Signer", "areas": [{**AREA, **area}]}]


def test_what_the_suite_sealed_is_sealed_again(suite: RunningSuite) -> None:
    first = fetched(signed_once(suite, agreement_pdf(["{{One}}"]), "One", "First value")["documents"][0]["url"])
    again = signed_once(suite, first, "Two", "Second value", fields=field("Two"))
    second = fetched(again["documents"][0]["url"])
    assert second.startswith(first), "the first revision is there byte for byte"
    said = pdf_signatures(second)
    assert said.count("Signature is Valid") == 2, said
    assert "Signature is Invalid" not in said
    text = pdf_text(second)
    assert "First value" in text
    assert "Second value" in text
    verdict = suite.api("POST", "/tools/verify", {"file": encoded(second)})
    assert verdict["checksum_status"] == "valid"
    assert [each["integrity"] for each in verdict["signatures"]] == ["valid", "valid"]
    assert [each["covers_whole_document"] for each in verdict["signatures"]] == [False, True]
    # A byte of either revision changed is seen.
    for place in (len(first) // 2, (len(first) + len(second)) // 2):
        changed = bytearray(second)
        changed[place] ^= 1
        assert suite.api("POST", "/tools/verify", {"file": encoded(bytes(changed))})["checksum_status"] == "invalid"


def test_somebody_elses_signature_stays_valid(suite: RunningSuite) -> None:
    theirs = pdf_files.signed(agreement_pdf(["A contract, signed before"]))
    template = suite.template(theirs, flatten=True, document={"fields": field("Name")})
    assert {"signed"} <= {each["code"] for each in template["report"]}
    submission = signed_once(suite, theirs, "Name", "Zoë Ångström", fields=field("Name"))
    sealed = fetched(submission["documents"][0]["url"])
    assert sealed.startswith(theirs)
    said = pdf_signatures(sealed)
    assert said.count("Signature is Valid") == 2, said
    assert "Zoë Ångström" in pdf_text(sealed)
    verdict = suite.api("POST", "/tools/verify", {"file": encoded(sealed)})
    assert verdict["checksum_status"] == "valid"
    assert [each["trust"] == "trusted" for each in verdict["signatures"]] == [False, True]


def test_merge(suite: RunningSuite) -> None:
    files = [agreement_pdf([f"Part {number}"]) for number in (1, 2)]
    merged = suite.api("POST", "/tools/merge", {"files": [encoded(each) for each in files]})
    text = pdf_text(base64.b64decode(merged["data"]))
    assert text.index("Part 1") < text.index("Part 2")
    signed = suite.api("POST", "/tools/merge", {"files": [encoded(pdf_files.signed(files[0])), encoded(files[1])]})
    assert signed["warnings"]
    assert suite.api("POST", "/tools/verify", {"file": signed["data"]})["checksum_status"] == "unsigned"
    for bad, words in (
        ([encoded(files[0])], "At least 2"),
        ([encoded(files[0]), encoded(b"text")], "File 2"),
        ([encoded(files[0]), encoded(pdf_files.encrypted(files[1], user="x"))], "File 2"),
        (["!", encoded(files[0])], "files[0]"),
        ([], "At least 2"),
    ):
        refused = suite.api("POST", "/tools/merge", {"files": bad}, status=422)
        assert refused["details"][0]["field"] == {"File 2": "files[1]", "files[0]": "files[0]"}.get(words, "files"), (
            refused
        )
        assert words in refused["error"], refused


def test_verify_refuses_what_is_no_pdf(suite: RunningSuite) -> None:
    for bad in (encoded(b"text"), "!", encoded(agreement_pdf()[:200]), encoded(pdf_files.circular_page_tree())):
        answer = suite.call("POST", "/tools/verify", {"file": bad})
        assert answer.status_code in (200, 422), answer.text
        if answer.status_code == 422:
            assert answer.json()["details"][0]["field"] == "file"
        else:
            assert answer.json()["checksum_status"] in ("unsigned", "invalid")
