"""Ways on beside completing and declining: who was asked hands over, and the sealed trail names both."""

import uuid
from pathlib import Path

from tests.e2e.evidence.test_evidence import CHECKER, evidence, verify
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, form, sign
from tests.support.material.outcomes import completed, fetched, mail_text, mails_to, pdf_text
from tests.support.services.suite import RunningSuite, wait_until


def kept(suite: RunningSuite, template_id: int) -> object:
    return suite.api("GET", f"/templates/{template_id}")["preferences"]["allow_to_delegate"]


def test_who_is_asked_hands_over_and_the_new_person_signs(suite: RunningSuite) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Lease to hand over")
    allowed = suite.api("PUT", f"/templates/{template['id']}", {"preferences": {"allow_to_delegate": True}})
    assert allowed["preferences"]["allow_to_delegate"] is True
    mark = uuid.uuid4().hex[:8]
    ann, dee = f"ann.{mark}@example.com", f"dee.{mark}@example.com"
    people = [
        {"role": "Seller", "name": "Ann Ray", "email": ann},
        {"role": "Buyer", "name": "Bo Buyer", "email": "buyer@example.com"},
    ]
    sent = {"template_id": template["id"], "submitters": people}
    closed = suite.api("POST", "/submissions", {**sent, "preferences": {"allow_to_delegate": False}})[0]
    said = {"request_id": uuid.uuid4().hex, "email": dee, "name": "Dee Puty", "reason": "She signs for us"}
    refused = suite.page("POST", f"/s/{closed['slug']}/delegate", said, status=403)
    assert refused["error"] == "The sender does not allow that."
    # What was given with a submission is the template's from then on.
    wait_until(lambda: kept(suite, template["id"]) is False, what="the template's preference")
    suite.api("PUT", f"/templates/{template['id']}", {"preferences": {"allow_to_delegate": True}})
    seller, buyer = suite.api("POST", "/submissions", sent)
    assert form(suite, seller["slug"])["ways"] == ["later", "ask", "delegate"]
    for _ in range(2):
        assert suite.page("POST", f"/s/{seller['slug']}/delegate", said) == {"state": "delegated"}
    gone = suite.page("GET", f"/s/{seller['slug']}/form", status=404)
    assert gone["details"] == [{"field": "state", "reason": "delegated", "to": "Dee Puty"}]
    deputy = suite.api("GET", f"/submitters/{seller['id']}")
    assert (deputy["email"], deputy["name"]) == (dee, "Dee Puty")
    mail = mail_text(wait_until(lambda: mails_to(suite, dee), what="the invitation")[0])
    assert "Ann Ray was asked before you, and has named you in their place." in mail
    assert "> She signs for us" in mail
    assert f"/s/{deputy['slug']}" in mail

    def told() -> list[str]:
        return [text for one in mails_to(suite, "admin@example.com") if dee in (text := mail_text(one))]

    (notice,) = wait_until(told, what="the sender's mail")
    assert f"Ann Ray ({ann}) has handed “Lease to hand over” over to Dee Puty ({dee})." in notice
    assert "/s/" not in notice, "nobody signs from this mail"
    sign(suite, deputy["slug"], SELLER_VALUES)
    sign(suite, buyer["slug"], BUYER_VALUES)
    submission = completed(suite, seller["submission_id"])
    assert submission["submitters"][0]["email"] == dee
    trail = " ".join(pdf_text(fetched(submission["audit_log_url"])).split())
    assert "Signing delegated" in trail
    assert dee in trail


def test_it_is_sent_back_corrected_and_sent_again(suite: RunningSuite, tmp_path: Path) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Sale to correct")
    suite.api("PUT", f"/templates/{template['id']}", {"preferences": {"allow_to_return": False}})
    mark = uuid.uuid4().hex[:8]
    sam, bo = f"sam.{mark}@example.com", f"bo.{mark}@example.com"
    people = [
        {"role": "Seller", "name": "Sam Seller", "email": sam},
        {"role": "Buyer", "name": "Bo Buyer", "email": bo},
    ]
    sent = {"template_id": template["id"], "submitters": people, "preferences": {"allow_to_return": True}}
    seller, buyer = suite.api("POST", "/submissions", sent)
    number = seller["submission_id"]
    sign(suite, seller["slug"], SELLER_VALUES)
    refused = suite.api("POST", f"/submissions/{number}/send_again", {}, status=422)
    assert refused["details"] == [{"field": "returned", "reason": "is pending"}]
    said = {"request_id": uuid.uuid4().hex, "reason": "The company has another name now"}
    for _ in range(2):
        assert suite.page("POST", f"/s/{buyer['slug']}/return", said) == {"state": "returned"}
    page = suite.page("GET", f"/s/{seller['slug']}/form")
    assert (page["state"], page["return_reason"]) == ("returned", said["reason"])

    def told() -> list[str]:
        return [text for one in mails_to(suite, "admin@example.com") if bo in (text := mail_text(one))]

    (notice,) = wait_until(told, what="the sender's mail")
    assert f"Bo Buyer ({bo}) has sent “Sale to correct” back to you for correction." in notice
    assert "> The company has another name now" in notice

    def of_this() -> list[object]:
        events = suite.api("GET", "/events/submission/submission.returned?limit=100")["data"]
        return [one["data"]["returned"] for one in events if one["data"]["id"] == number]

    (event,) = wait_until(of_this, what="the event")
    assert event == suite.api("GET", f"/submissions/{number}")["returned"]
    assert (
        suite.api("PUT", f"/submitters/{seller['id']}", {"values": {"Company": "Seller & Sons"}})["status"] == "pending"
    )
    again = suite.api("POST", f"/submissions/{number}/send_again", {"sign_again": []})
    assert (again["status"], again["returned"]) == ("pending", None)
    mails = wait_until(
        lambda: [text for one in mails_to(suite, sam) if "has been corrected since" in (text := mail_text(one))],
        what="the invitation to sign once more",
    )
    assert f"/s/{seller['slug']}" in mails[0]
    sign(suite, seller["slug"], {**SELLER_VALUES, "Company": "Seller & Sons"})
    sign(suite, buyer["slug"], BUYER_VALUES)
    submission = completed(suite, number)
    assert "Seller & Sons" in pdf_text(fetched(submission["documents"][0]["url"]))
    trail = " ".join(pdf_text(fetched(submission["audit_log_url"])).split())
    for line in ("Sent back for correction", "To be signed once more", "Sent again by the sender"):
        assert line in trail, line
    (tmp_path / "evidence.zip").write_bytes(evidence(suite, number))
    judged = verify(CHECKER, tmp_path / "evidence.zip")
    assert (judged.returncode, "WRONG" in judged.stdout) == (0, False), judged.stdout
    assert f"party {seller['id']} completed once more: what they had signed was changed" in judged.stdout
