"""A PDF that is signed already keeps its signatures; and the tools that join and verify PDFs."""

import base64
import io
from typing import Any

import pikepdf

from tests.support.files import pdf_files
from tests.support.judges.documents.strict_reader import judged
from tests.support.material.agreement import agreement_pdf, sign
from tests.support.material.outcomes import completed, fetched, pdf_signatures, pdf_text
from tests.support.services.suite import RunningSuite

AREA = {"x": 0.1, "y": 0.6, "w": 0.4, "h": 0.04, "page": 1}


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
    for place in (len(first) // 2, second.index(b"stream", len(first)) + 20):
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
    assert [one.permitted for one in judged(sealed)] == [True, True]
    assert [each["trust"] == "trusted" for each in verdict["signatures"]] == [False, True]


def test_a_certified_file_is_filled_in_where_its_author_left_fields(suite: RunningSuite) -> None:
    """What its author forbids is refused with the name of the field; what has no place in the form is on the trail."""
    form = pdf_files.with_form(
        pdf_files.field("Tx", "Name", (100, 600, 300, 630)), pdf_files.field("Sig", "Sign", (100, 500, 300, 560))
    )
    theirs = pdf_files.signed(form, certified=2)
    template = suite.template(theirs)
    assert {one["name"] for one in template["fields"]} == {"Name", "Sign"}
    assert "form_only" in {one["code"] for one in template["report"]}
    assert len(template["documents"][0]["pages"][0]["places"]) == 2
    extra = {"name": "Place", "type": "text", "role": template["submitters"][0]["name"]}
    refused = suite.api(
        "PUT",
        f"/templates/{template['id']}",
        {"fields": [*template["fields"], {**extra, "areas": [AREA]}]},
        status=422,
    )
    assert [one["field"] for one in refused["details"]] == ["fields[2].areas[0]"], refused
    assert "is not a form field of the document" in refused["error"]
    suite.api("PUT", f"/templates/{template['id']}", {"fields": [*template["fields"], extra]})
    body = {"template_id": template["id"], "submitters": [{"email": "a@example.com"}], "send_email": False}
    (signer,) = suite.api("POST", "/submissions", body)
    sign(suite, signer["slug"], {"Name": "Zoë Ångström", "Place": "Göteborg"})
    submission = completed(suite, signer["submission_id"])
    sealed = fetched(submission["documents"][0]["url"])
    assert sealed.startswith(theirs)
    assert [one.permitted for one in judged(sealed)] == [
        True,
        True,
        True,
    ]  # theirs; ours, which is shown in a field of theirs
    said = pdf_signatures(sealed)
    assert "Invalid" not in said
    assert "Zoë Ångström" in pdf_text(sealed)
    assert "Göteborg" not in pdf_text(sealed)
    trail = pdf_text(fetched(submission["audit_log_url"]))
    assert "Göteborg" in trail
    verdict = suite.api("POST", "/tools/verify", {"file": encoded(sealed)})
    assert verdict["checksum_status"] == "valid"
    assert len(verdict["signatures"]) == 2


def test_a_seal_certifies_when_the_account_wants_it(suite: RunningSuite) -> None:
    suite.api("PUT", "/account", {"with_certification": True})
    try:
        submission = signed_once(suite, agreement_pdf(["{{One}}"]), "One", "A value")
    finally:
        suite.api("PUT", "/account", {"with_certification": None})
    for url in (submission["documents"][0]["url"], submission["audit_log_url"]):
        (ours,) = judged(fetched(url))
        assert ours.permitted
        with pikepdf.open(io.BytesIO(fetched(url))) as pdf:
            assert pdf.Root.Perms.DocMDP.Reference[0].TransformParams.P == 2


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
