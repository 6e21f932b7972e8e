"""A signer names the next one on the page; one submitter with several roles."""

import base64
import uuid

from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, filled, form, sign
from tests.support.material.outcomes import completed, fetched, mail_text, mails_to, pdf_text
from tests.support.services.suite import RunningSuite, wait_until


def test_the_seller_names_the_buyer(suite: RunningSuite) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Agreement")
    address = f"named.{uuid.uuid4().hex[:8]}@example.com"
    people = [{"role": "Seller", "email": "seller@example.com"}, {"role": "Buyer", "invite_by": "Seller"}]
    body = {"template_id": template["id"], "submitters": people, "message": {"body": "Sign: {{submitter.link}}"}}
    (seller,) = suite.api("POST", "/submissions", body)
    path = f"/s/{seller['slug']}"
    asked = form(suite, seller["slug"])["invites"]
    assert [each["role"] for each in asked] == ["Buyer"]
    draft = suite.api("GET", f"/submissions/{seller['submission_id']}/documents")["documents"]
    assert len(draft) == 1
    command = {"values": filled(suite, seller["slug"], SELLER_VALUES), "request_id": uuid.uuid4().hex}
    refused = suite.page("POST", f"{path}/complete", command, status=422)
    assert refused["details"][0]["field"] == "submitters"
    for wrong in ("text", [1], [{"email": 1, "uuid": asked[0]["uuid"]}], [{"email": "x", "uuid": asked[0]["uuid"]}]):
        suite.page("POST", f"{path}/invite", {**command, "submitters": wrong}, status=422)
    invited = {**command, "submitters": [{"uuid": asked[0]["uuid"], "email": address}], "request_id": uuid.uuid4().hex}
    for _ in range(2):
        assert suite.page("POST", f"{path}/invite", invited)["state"] == "completed"
    mail = wait_until(lambda: mails_to(suite, address), what="the invitation")[0]
    buyer = suite.api("GET", f"/submissions/{seller['submission_id']}")["submitters"][1]
    assert (buyer["email"], buyer["role"], buyer["embed_src"] in mail_text(mail)) == (address, "Buyer", True)
    sign(suite, buyer["slug"], BUYER_VALUES)
    submission = completed(suite, seller["submission_id"])
    assert "Łukasz" in pdf_text(fetched(submission["documents"][0]["url"]))
    trail = " ".join(pdf_text(fetched(submission["audit_log_url"])).split())
    assert "Next party named" in trail
    assert address in trail


def test_one_person_signs_for_both_roles(suite: RunningSuite) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Agreement")
    person = {"roles": ["Seller", "Buyer"], "email": "both@example.com", "values": {"Company": "Both & Co"}}
    (both,) = suite.api(
        "POST", "/submissions", {"template_id": template["id"], "submitters": [person], "send_email": False}
    )
    assert (both["role"], both["values"]) == ("Seller / Buyer", {"Company": "Both & Co"})
    sign(suite, both["slug"], {**SELLER_VALUES, **BUYER_VALUES})
    submission = completed(suite, both["submission_id"])
    text = pdf_text(fetched(submission["documents"][0]["url"]))
    assert "Łukasz" in text
    assert "Wörner & Søn" in text
    refused = suite.api(
        "POST",
        "/submissions",
        {"template_id": template["id"], "submitters": [{**person, "roles": ["Seller", "Witness"]}]},
        status=422,
    )
    assert refused["error"] == "Witness role doesn't exist"


def test_a_one_off_submission_has_all_of_it(suite: RunningSuite) -> None:
    """Consent, a name of one's own and ``invite_by`` do not need a template."""
    file = base64.b64encode(agreement_pdf()).decode()
    body = {
        "documents": [{"name": "agreement", "file": file}],
        "consent_enabled": True,
        "logo_url": "",
        "company_name": "One-off Ltd",
        "submitters": [
            {"role": "Seller", "email": "seller@example.com", "consent_enabled": False},
            {"role": "Buyer", "invite_by": "Seller", "company_name": ""},
        ],
        "send_email": False,
    }
    made = suite.api("POST", "/submissions/pdf", body)
    (seller,) = made["submitters"]
    shown = form(suite, seller["slug"])
    assert (shown["consent"], shown["account_name"]) == (None, "One-off Ltd")
    invited = {
        "values": filled(suite, seller["slug"], SELLER_VALUES),
        "submitters": [{"role": "Buyer", "email": "b@example.com"}],
        "request_id": uuid.uuid4().hex,
    }
    suite.page("POST", f"/s/{seller['slug']}/invite", invited)
    buyer = suite.api("GET", f"/submissions/{made['id']}")["submitters"][1]
    assert form(suite, buyer["slug"])["consent"] is not None
    command = {"values": filled(suite, buyer["slug"], BUYER_VALUES), "request_id": uuid.uuid4().hex, "consent": True}
    suite.page("POST", f"/s/{buyer['slug']}/complete", command)
    assert "Łukasz" in pdf_text(fetched(completed(suite, made["id"])["documents"][0]["url"]))
