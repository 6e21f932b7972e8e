"""One-time codes by mail and by phone, as programs meet them: what is asked for, what is refused, where the codes go."""

import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.support.material.agreement import agreement_pdf
from tests.support.material.outcomes import completed, fetched, mail_text, mails_to, pdf_text
from tests.support.servers.receiver import Receiver
from tests.support.services.suite import RunningSuite, wait_until

TOKEN = "the-token-of-the-webhook"


@pytest.fixture
def phones(suite: RunningSuite) -> Iterator[Receiver]:
    """The account's phone OTP webhook."""
    with Receiver() as receiver:
        suite.api("PUT", "/account", {"phone_otp_webhook": {"url": receiver.url, "bearer_token": TOKEN}})
        yield receiver
        suite.api("PUT", "/account", {"phone_otp_webhook": None})


def signer(suite: RunningSuite, fields: list[dict[str, Any]], **person: Any) -> dict[str, Any]:
    area = {"x": 0.1, "w": 0.3, "h": 0.03, "page": 1}
    placed = [{"areas": [{**area, "y": 0.1 * (n + 1)}], **each} for n, each in enumerate(fields)]
    template = suite.template(agreement_pdf(["Agreement"]), name="Private matters", document={"fields": placed})
    made = suite.api("POST", "/submissions", {"template_id": template["id"], "submitters": [person]})
    party: dict[str, Any] = made[0]
    return party


def code_mailed(suite: RunningSuite, address: str) -> str:
    def look() -> str | None:
        texts = [mail_text(mail) for mail in mails_to(suite, address)]
        found = [code for text in texts for code in re.findall(r"^(\d{6})\s*$", text, re.MULTILINE)]
        return found[-1] if found else None

    return str(wait_until(look, what=f"the code to {address}"))


def codes_posted(phones: Receiver, phone: str) -> list[str]:
    bodies = [json.loads(one.body) for one in phones.requests]
    return [one["otp"] for one in bodies if one["phone_number"] == phone]


def test_a_form_behind_two_codes_and_a_field_with_a_third(suite: RunningSuite, phones: Receiver) -> None:
    name = uuid.uuid4().hex[:8]
    address, own, given = f"{name}@example.com", "+14155550123", "+442079460031"
    party = signer(
        suite,
        [{"name": "Who"}, {"name": "Mobile", "type": "phone", "preferences": {"one_time_code": True}}],
        email=address,
        phone=own,
        name="Pat Private",
        require_email_2fa=True,
        require_phone_2fa=True,
    )
    assert party["preferences"]["require_phone_2fa"] is True
    base, slug = suite.base_url, party["slug"]
    browser = requests.Session()

    def post(what: str, *, status: int = 200, **body: Any) -> Any:
        answer = browser.post(f"{base}/s/{slug}/{what}", json={"request_id": uuid.uuid4().hex, **body}, timeout=60)
        assert answer.status_code == status, (what, answer.status_code, answer.text)
        return answer

    page = browser.get(f"{base}/s/{slug}", timeout=60)
    assert page.status_code == 200
    for secret in ("Private", address, own):
        assert secret not in page.text
    for what in ("view", "values", "complete", "decline"):
        assert post(what, status=403, values={}).json()["details"][0] == {"field": "state", "reason": "code"}
    picture = requests.get(f"{base}/s/{slug}/pages/{uuid.uuid4()}/1.png", timeout=60)
    assert picture.status_code == 403
    form = {"submitter_slug": slug, "type": "signature"}
    upload = requests.post(f"{base}/api/attachments", data=form, files={"file": ("a.png", b"x")}, timeout=60)
    assert upload.status_code == 403
    early = suite.call("POST", "/send_phone_verification_code", {"submitter_slug": slug, "phone": own})
    assert early.status_code == 403  # the code by mail comes first

    assert post("code/send").json()["retry_after"] == 60
    again = post("code/send", status=429)
    assert 0 < int(again.headers["Retry-After"]) <= 60
    mailed = code_mailed(suite, address)
    wrong = post("code", status=422, code=f"{(int(mailed) + 1) % 10**6:06}").json()["details"][0]
    assert (wrong["reason"], wrong["tries_left"]) == ("wrong", 4)
    cookie = post("code", code=mailed).headers["Set-Cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Lax", f"Path=/s/{slug}"))
    assert browser.get(f"{base}/s/{slug}/results.json", timeout=60).json()["code"]["method"] == "phone"

    other = browser.post(
        f"{base}/s/{slug}/code/send", json={"request_id": uuid.uuid4().hex, "phone": given}, timeout=60
    )
    assert (other.status_code, other.json()["details"][0]["field"]) == (422, "phone")
    post("code/send")
    wait_until(lambda: codes_posted(phones, own), what="the code to the phone")
    assert phones.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
    post("code", code=codes_posted(phones, own)[-1])
    fields = {each["name"]: each for each in browser.get(f"{base}/s/{slug}/form", timeout=60).json()["fields"]}
    assert requests.get(f"{base}/s/{slug}/form", timeout=60).json()["fields"] == []

    values = {fields["Who"]["uuid"]: "Pat", fields["Mobile"]["uuid"]: given}
    refused = post("complete", status=422, values=values).json()
    assert refused["details"][0]["field"] == fields["Mobile"]["uuid"]
    post("code/send", phone=given)
    post("code/send", status=429, phone=given)
    wait_until(lambda: codes_posted(phones, given), what="the code to the number in the field")
    post("code", code=codes_posted(phones, given)[-1], phone=given)
    post("complete", values=values)

    submission = completed(suite, party["submission_id"])
    kinds = [each["event_type"] for each in submission["submission_events"]]
    for kind, times in (("send_2fa_email", 1), ("email_verified", 1), ("send_2fa_phone", 2), ("phone_verified", 2)):
        assert kinds.count(kind) == times, kind
    trail = " ".join(pdf_text(fetched(submission["audit_log_url"])).split())
    for text in ("E-MAIL ADDRESS VERIFIED", "PHONE NUMBER VERIFIED", "Verification code sent by phone"):
        assert text in trail
    codes = {mailed, *codes_posted(phones, own), *codes_posted(phones, given)}
    told = json.dumps(suite.api("GET", f"/submissions/{submission['id']}")) + trail
    logs = "".join(log.read_text(errors="replace") for log in (suite.var_dir / "log").glob("*.log"))
    assert not [code for code in codes if re.search(rf"(?<![\w.-]){code}(?![\w.-])", told + logs)]
    assert TOKEN not in logs + json.dumps(suite.api("GET", "/account"))


def test_a_program_has_the_code_for_a_phone_sent(suite: RunningSuite, phones: Receiver) -> None:
    number = f"+1415{uuid.uuid4().int % 10**7:07}"
    party = signer(suite, [{"name": "Who"}], phone=number, require_phone_2fa=True)
    body = {"submitter_slug": party["slug"], "phone": number, "locale": "en"}
    url = f"{suite.base_url}/api/send_phone_verification_code"
    key = {"Idempotency-Key": uuid.uuid4().hex}
    answers = [requests.post(url, json=body, headers=key, timeout=60) for _ in range(3)]
    assert [(one.status_code, one.json()) for one in answers] == [(200, {"status": "ok"})] * 3
    assert requests.post(url, json={**body, "phone": "+14155550199"}, headers=key, timeout=60).status_code == 409
    late = requests.post(url.replace("/api", ""), json={"submitter_slug": party["slug"]}, timeout=60)
    assert (late.status_code, late.json()["code"]) == (429, "rate_limited")
    assert 0 < int(late.headers["Retry-After"]) <= 60
    wait_until(lambda: codes_posted(phones, number), what="the code to the phone")
    assert len(codes_posted(phones, number)) == 1
    for wrong, field in (({}, "submitter_slug"), ({"submitter_slug": party["slug"], "phone": "123"}, "phone")):
        refused = requests.post(url, json=wrong, timeout=60)
        assert (refused.status_code, refused.json()["details"][0]["field"]) == (422, field)
    template = suite.api("GET", f"/submitters/{party['id']}")["template"]["id"]
    others = []
    for people, wish, way in (
        ({}, {}, None),
        ({"require_phone_2fa": True}, {}, "phone"),
        ({}, {"preferences": {"require_email_2fa": True}}, "email"),
        ({}, {"preferences": {"require_email_2fa": False, "require_phone_2fa": True}}, "phone"),
    ):
        person: dict[str, Any] = {"email": "guarded@example.com", "phone": number, **people}
        asked: dict[str, Any] = {"template_id": template, "submitters": [person], "send_email": False, **wish}
        (guarded,) = suite.api("POST", "/submissions", asked)
        others.append(guarded)
        asked = suite.page("GET", f"/s/{guarded['slug']}/form")
        assert (asked["state"], (asked["code"] or {}).get("method")) == ("code" if way else "open", way)
    suite.api("PUT", f"/submitters/{others[0]['id']}", {"require_phone_2fa": True})
    assert suite.page("GET", f"/s/{others[0]['slug']}/form")["state"] == "code"
    suite.api("PUT", "/account", {"phone_otp_webhook": None})
    unconfigured = suite.api("PUT", f"/submitters/{party['id']}", {"require_phone_2fa": True}, status=422)
    assert unconfigured["error"] == "Phone verification not configured"
    refused = requests.post(url, json={"submitter_slug": party["slug"]}, timeout=60)
    assert (refused.status_code, refused.json()["error"]) == (422, "Phone verification not configured")


def test_no_more_codes_than_its_cap_go_to_a_country(suite: RunningSuite, phones: Receiver) -> None:
    """Each for another submission and to another number: no other limit is near."""
    numbers = [f"+8821330000{last}" for last in range(4)]
    slugs = [signer(suite, [{"name": "Who"}], phone=one, require_phone_2fa=True)["slug"] for one in numbers]
    url = f"{suite.base_url}/api/send_phone_verification_code"
    answers = [requests.post(url, json={"submitter_slug": slug}, timeout=60) for slug in slugs]
    assert [one.status_code for one in answers] == [200, 200, 429, 429]
    assert 3_600 < int(answers[-1].headers["Retry-After"]) <= 86_400
    wait_until(lambda: codes_posted(phones, numbers[1]), what="the second code")
    assert not codes_posted(phones, numbers[2])


def test_an_invitation_by_sms_is_shown_where_no_provider_is(suite: RunningSuite) -> None:
    number = f"+1415{uuid.uuid4().int % 10**7:07}"
    party = signer(suite, [{"name": "Who"}], phone=number, send_sms=True)
    assert (party["email"], party["preferences"]["send_sms"]) == (None, True)

    def sent() -> list[str]:
        within_it = rf"{re.escape(number)}(?:(?!mails__item).)*?(http\S+/s/\w+)\""  # it has no text yet while it waits
        return re.findall(within_it, suite_page(suite), re.DOTALL)

    link = wait_until(sent, what="the SMS")[0]
    assert link == party["embed_src"]
    assert requests.get(link, timeout=60).status_code == 200
    shown = wait_until(lambda: suite.api("GET", f"/submitters/{party['id']}")["sent_at"], what="sent_at")
    assert shown
    again = suite.api("PUT", f"/submitters/{party['id']}", {"send_sms": True})  # within a minute: nothing is sent
    assert again["preferences"]["send_sms"] is True
    submission = suite.api("GET", f"/submissions/{party['submission_id']}")
    lines = [each for each in submission["submission_events"] if each["event_type"] == "send_sms"]
    assert [each["data"]["phone"] for each in lines] == [number]
    number = f"+1415{uuid.uuid4().int % 10**7:07}"
    later = signer(suite, [{"name": "Who"}], phone=number)
    assert later["preferences"]["send_sms"] is False
    suite.api("PUT", f"/submitters/{later['id']}", {"send_sms": True})
    assert wait_until(sent, what="the SMS that was asked for later")[0] == later["embed_src"]


def suite_page(suite: RunningSuite) -> str:
    return requests.get(f"{suite.base_url}/dev/mail", timeout=60).text


def test_a_shared_link_as_a_program_meets_it(suite: RunningSuite) -> None:
    area = {"x": 0.1, "y": 0.1, "w": 0.3, "h": 0.03, "page": 1}
    fields = [{"name": "Who", "areas": [area]}]
    template = suite.template(agreement_pdf(["Agreement"]), name="Waiver", document={"fields": fields})
    link, address = f"{suite.base_url}/d/{template['slug']}", f"{uuid.uuid4().hex[:8]}@example.com"
    for wrong, name in (
        ({"link_form_fields": []}, "preferences.link_form_fields"),
        ({"link_form_fields": ["email", "email"]}, "preferences.link_form_fields"),
        ({"link_form_fields": ["address"]}, "preferences.link_form_fields[0]"),
        ({"shared_link_2fa": "maybe"}, "preferences.shared_link_2fa"),
        ({"bcc_completed": "nobody"}, "preferences.bcc_completed"),
        ({"certsign_sign_enabled": "true"}, "preferences.certsign_sign_enabled"),
    ):
        refused = suite.api("PUT", f"/templates/{template['id']}", {"preferences": wrong}, status=422)
        assert refused["details"][0]["field"] == name
    kept = suite.api("PUT", f"/templates/{template['id']}", {"preferences": {"shared_link_2fa": True}})
    assert kept["preferences"] == {"shared_link_2fa": True}
    early = requests.post(f"{link}/start", json={"request_id": uuid.uuid4().hex, "email": address}, timeout=60)
    assert (early.status_code, early.json()["details"][0]["reason"]) == (403, "code")
    assert suite.api("GET", "/submissions", params={"template_id": template["id"]})["data"] == []
    said = {"email": address, "request_id": uuid.uuid4().hex}
    assert requests.post(f"{link}/code/send", json=said, timeout=60).status_code == 200
    assert requests.post(f"{link}/code/send", json=said, timeout=60).status_code == 200  # the same request again
    late = requests.post(f"{link}/code/send", json={**said, "request_id": "other"}, timeout=60)
    assert (late.status_code, 0 < int(late.headers["Retry-After"]) <= 60) == (429, True)
    browser = requests.Session()
    code = code_mailed(suite, address)
    body = {**said, "request_id": uuid.uuid4().hex, "code": code}
    answers = [browser.post(f"{link}/code", json=body, timeout=60) for _ in range(2)]
    assert [one.status_code for one in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    (made,) = suite.api("GET", "/submissions", params={"template_id": template["id"]})["data"]
    assert (made["source"], made["submitters"][0]["email"]) == ("link", address)
    form = f"{suite.base_url}{answers[0].json()['url']}/form"
    assert requests.get(form, timeout=60).json()["state"] == "code"
    assert browser.get(form, timeout=60).json()["state"] == "open"
    cleared = suite.api("PUT", f"/templates/{template['id']}", {"preferences": {"shared_link_2fa": None}})
    assert cleared["preferences"] == {}
    by_api = {"template_id": template["id"], "submitters": [{"email": address}], "send_email": False}
    suite.api("POST", "/submissions", {**by_api, "preferences": {"shared_link_2fa": True}})

    def started() -> int:
        body = {"request_id": uuid.uuid4().hex, "email": f"{uuid.uuid4().hex[:8]}@example.com"}
        return requests.post(f"{link}/start", json=body, timeout=60).status_code

    wait_until(lambda: started() == 403, what="the preference that came with a submission")
    for path in ("x" * 22, "x" * 200, "%00"):
        assert requests.get(f"{suite.base_url}/d/{path}", timeout=60).status_code == 404
