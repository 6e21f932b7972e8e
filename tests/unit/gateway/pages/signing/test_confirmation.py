"""The way to the provider of certificates and back: what the browser keeps, who may come back, what the page's script is told."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import SecretStr

from contracts.errors import ServiceError, invalid
from contracts.providers import ConfirmationQuestion, ConfirmationStep, ConfirmationView
from contracts.rpc import submissions
from contracts.rpc.submissions.signing import confirmation
from contracts.runtime.clock import now
from contracts.types import Account
from services.gateway.pages.signing.confirmation import RETURN, _cookie
from tests.unit.gateway.pages.conftest import SLUG, MakePages, RecordingBus, signing_form

STATE = "s7-the-state-that-the-provider-gives-back"
OTHER = "s8-the-state-of-another-way"
OTHER_SLUG = "aa3VtR9mQzXw2LpHbN7Yc4"
ADDRESS = "https://provider.example/oauth2/authorize?request_uri=urn:1"
QUESTION = ConfirmationQuestion(id="OTP", label="Code", numeric=True)


def redirect(**more: Any) -> ConfirmationView:
    until = now() + timedelta(minutes=5)
    given = {
        "provider": "provider.example",
        "ask": 3,
        "action_url": ADDRESS,
        "state": STATE,
        "expires_at": until,
        **more,
    }
    return ConfirmationView(step=ConfirmationStep.REDIRECT, **given)


@pytest.fixture
def bus(bus: RecordingBus) -> RecordingBus:
    bus.answers |= {
        confirmation.CONFIRMATION: redirect(),
        confirmation.RETURN_CONFIRMATION: ConfirmationView(step=ConfirmationStep.SIGNING),
        confirmation.ANSWER_CONFIRMATION: ConfirmationView(step=ConfirmationStep.SIGNING, ask=3),
        confirmation.TRY_CONFIRMATION_AGAIN: ConfirmationView(step=ConfirmationStep.PREPARING),
        confirmation.LEAVE_CONFIRMATION: submissions.form.Done(state="open"),
        confirmation.START_CONFIRMATION: ConfirmationView(step=ConfirmationStep.PREPARING, documents=2),
    }
    return bus


def post(client: Any, what: str, **body: Any) -> Any:
    return client.post(f"/s/{SLUG}/confirmation/{what}", json=body)


def gone(client: Any, slug: str = SLUG, ask: int = 3) -> Any:
    """Send the signer to the provider; the answer, whose cookie the browser keeps."""
    answer = client.post(f"/s/{slug}/confirmation/go", json={"ask": ask})
    if answer.status_code == 200:
        name, _, value = answer.headers["Set-Cookie"].partition(";")[0].partition("=")
        client.set_cookie(name, value, path=RETURN)  # the test client keeps no cookies of another path than it asks for
    return answer


def come_back(client: Any, **said: Any) -> Any:
    return client.get(RETURN, query_string={"code": "the-code", "state": STATE, **said})


def test_the_script_is_told_how_far_it_is_and_nothing_that_would_let_somebody_come_back(
    client: Any, bus: RecordingBus
) -> None:
    client.set_cookie("code_email", "a proof", path=f"/s/{SLUG}")
    told = client.get(f"/s/{SLUG}/confirmation", headers={"User-Agent": "Browser"})
    assert (told.json["step"], told.json["ask"], told.json["provider"]) == ("redirect", 3, "provider.example")
    assert 290 < told.json["seconds_left"] <= 300
    for secret in (STATE, "oauth2", "expires_at"):
        assert secret not in told.text
    (visit,) = bus.requests(confirmation.CONFIRMATION)
    assert (visit.slug, visit.proofs, visit.user_agent) == (SLUG, ["a proof"], "Browser")
    bus.answers[confirmation.CONFIRMATION] = redirect(expires_at=now() - timedelta(hours=1))
    assert client.get(f"/s/{SLUG}/confirmation").json["seconds_left"] == 0
    bus.answers[confirmation.CONFIRMATION] = ConfirmationView(step=ConfirmationStep.QUESTION, questions=[QUESTION])
    told = client.get(f"/s/{SLUG}/confirmation").json
    assert told["questions"] == [{"id": "OTP", "label": "Code", "hidden": False, "numeric": True}]
    assert told["seconds_left"] is None


def test_only_the_browser_that_goes_there_keeps_what_lets_it_come_back(client: Any, bus: RecordingBus) -> None:
    answer = gone(client)
    assert answer.json == {"url": ADDRESS}
    cookie = answer.headers["Set-Cookie"]
    for part in ("HttpOnly", "SameSite=Lax", "Secure", f"Path={RETURN}", "Expires="):
        assert part in cookie
    for secret in (STATE, SLUG):
        assert secret not in cookie
    assert "Partitioned" not in cookie


def test_it_is_lax_where_other_sites_may_frame_the_form_and_below_a_path_of_the_installation(
    make_pages: MakePages, bus: RecordingBus
) -> None:
    client = make_pages(
        Account(frame_ancestors=["https://portal.example"]), base_url="https://sign.example/sub"
    ).test_client()
    cookie = gone(client).headers["Set-Cookie"]
    assert "SameSite=Lax" in cookie
    assert f"Path=/sub{RETURN}" in cookie


@pytest.mark.parametrize(
    "view",
    [
        redirect(ask=4),
        redirect(action_url=None),
        redirect(action_url="javascript:alert(1)"),
        redirect(action_url="https:///nowhere"),
        redirect(state=None),
        ConfirmationView(step=ConfirmationStep.QUESTION, ask=3, questions=[QUESTION]),
        ConfirmationView(step=ConfirmationStep.NONE),
    ],
)
def test_nobody_is_sent_where_the_provider_does_not_ask_for_it(
    client: Any, bus: RecordingBus, view: ConfirmationView
) -> None:
    bus.answers[confirmation.CONFIRMATION] = view
    answer = gone(client)
    assert answer.status_code == 409
    assert "Set-Cookie" not in answer.headers


def test_who_comes_back_is_taken_to_the_form_and_the_service_hears_it_once(client: Any, bus: RecordingBus) -> None:
    client.set_cookie("code_email", "a proof", path=f"/s/{SLUG}")
    gone(client)
    answer = come_back(client, iss="https://provider.example")
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/s/{SLUG}")
    assert f"{_cookie(STATE)}=;" in answer.headers["Set-Cookie"]
    (told,) = bus.requests(confirmation.RETURN_CONFIRMATION)
    assert (told.slug, told.state, told.answers, told.proofs) == (SLUG, STATE, {"code": "the-code"}, ["a proof"])
    assert STATE not in told.request_id
    said = {"code": None, "error": "access_denied", "error_description": "The person refused"}
    gone(client)
    come_back(client, **said)
    told = bus.requests(confirmation.RETURN_CONFIRMATION)[1]
    assert told.answers == {"error": "access_denied", "error_description": "The person refused"}


def test_what_a_stranger_brings_changes_nothing(client: Any, make_pages: MakePages, bus: RecordingBus) -> None:
    """Another browser, another way's state, a cookie of another way under this one's name, one that somebody made up, one of
    another installation, parameters that came twice."""
    gone(client)
    stranger = make_pages().test_client()
    forger = make_pages().test_client()
    bus.answers[confirmation.CONFIRMATION] = redirect(state=OTHER)
    gone(forger, OTHER_SLUG)
    theirs = forger.get_cookie(_cookie(OTHER), path=RETURN)
    assert theirs is not None
    forger.set_cookie(_cookie(STATE), theirs.value, path=RETURN)
    guesser = make_pages().test_client()
    guesser.set_cookie(_cookie(STATE), "QUFB" * 40, path=RETURN)
    mine = client.get_cookie(_cookie(STATE), path=RETURN).value
    elsewhere = make_pages(link_secret=SecretStr("the secret of another installation")).test_client()
    elsewhere.set_cookie(_cookie(STATE), mine, path=RETURN)
    lost = [come_back(one) for one in (stranger, forger, guesser, elsewhere)]
    lost += [come_back(client, state=other) for other in (OTHER, "", "é", "x" * 501, STATE + "x", "a\nb")]
    lost += [
        client.get(f"{RETURN}?code=a&state={STATE}&state={OTHER}"),
        client.get(RETURN),
        client.get(f"{RETURN}?code=a"),
    ]
    lost += [client.get(f"{RETURN}?code=a&code=b&state={STATE}"), come_back(client, code="x" * 4_001)]
    for answer in lost:
        assert answer.status_code == 403
        assert "This does not belong to this page" in answer.text
        for secret in (SLUG, OTHER_SLUG, "the-code"):
            assert secret not in answer.text
    assert bus.requests(confirmation.RETURN_CONFIRMATION) == []


def test_who_comes_back_too_late_sees_the_form_as_it_is_now(client: Any, bus: RecordingBus) -> None:
    for refusal, status in (
        (invalid("Form has been completed.", "state", "completed"), 303),
        (ServiceError("conflict", "This state is not known"), 403),
        (ServiceError("not_found", "Submitter not found"), 403),
        (ServiceError("unavailable", "no answer"), 503),
    ):
        bus.answers[confirmation.RETURN_CONFIRMATION] = refusal
        gone(client)
        answer = come_back(client)
        assert answer.status_code == status
        # The link back works again when nobody was there to hear of it.
        assert ("Set-Cookie" in answer.headers) is (status == 303)


def test_answers_are_passed_on_and_a_repetition_is_known_by_its_id(client: Any, bus: RecordingBus) -> None:
    answer = post(client, "answer", request_id="r1", ask=3, answers={"OTP": " 123456 ", "PIN": "4711"})
    assert (answer.status_code, answer.json["step"]) == (200, "signing")
    (told,) = bus.requests(confirmation.ANSWER_CONFIRMATION)
    assert (told.request_id, told.ask, told.answers) == ("r1", 3, {"OTP": "123456", "PIN": "4711"})
    assert post(client, "again", request_id="r2").json["step"] == "preparing"
    assert post(client, "leave", request_id="r3").json == {"state": "open"}
    asked = [bus.requests(one)[0] for one in (confirmation.TRY_CONFIRMATION_AGAIN, confirmation.LEAVE_CONFIRMATION)]
    assert [one.request_id for one in asked] == ["r2", "r3"]


def test_the_step_is_begun_with_what_completing_takes(client: Any, bus: RecordingBus) -> None:
    given = {"values": {"u1": "x"}, "reasons": {"u2": "I agree"}, "consent": True, "shown": "digest"}
    invited = [{"role": "Buyer", "email": "b@example.com"}]
    answer = post(client, "start", request_id="r1", submitters=invited, **given)
    assert (answer.json["step"], answer.json["documents"]) == ("preparing", 2)
    (told,) = bus.requests(confirmation.START_CONFIRMATION)
    assert (told.request_id, told.values, told.reasons) == ("r1", {"u1": "x"}, {"u2": "I agree"})
    assert (told.consent, told.shown, told.submitters[0].email) == (True, "digest", "b@example.com")


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("answer", {"ask": 3, "answers": {"OTP": "1"}}),
        ("answer", {"request_id": "r", "ask": "3", "answers": {"OTP": "1"}}),
        ("answer", {"request_id": "r", "ask": True, "answers": {"OTP": "1"}}),
        ("answer", {"request_id": "r", "ask": -1, "answers": {"OTP": "1"}}),
        ("answer", {"request_id": "r", "ask": 3, "answers": {}}),
        ("answer", {"request_id": "r", "ask": 3, "answers": ["1"]}),
        ("answer", {"request_id": "r", "ask": 3, "answers": {"OTP": 1}}),
        ("answer", {"request_id": "r", "ask": 3, "answers": {"OTP": "1" * 201}}),
        ("answer", {"request_id": "r", "ask": 3, "answers": {"O" * 101: "1"}}),
        ("answer", {"request_id": "r", "ask": 3, "answers": {str(number): "1" for number in range(11)}}),
        ("again", {}),
        ("leave", {"request_id": 1}),
        ("go", {"ask": None}),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    client: Any, bus: RecordingBus, what: str, body: dict[str, Any]
) -> None:
    answer = post(client, what, **body)
    assert answer.status_code == 422
    assert answer.json["details"][0]["field"] in ("request_id", "ask", "answers", "OTP")
    assert bus.asked == []


def test_only_our_own_page_commands(client: Any, bus: RecordingBus) -> None:
    for what in ("start", "go", "answer", "again", "leave"):
        path = f"/s/{SLUG}/confirmation/{what}"
        assert client.get(path).status_code == 405
        assert client.post(path, data={"request_id": "r"}).status_code == 415
        stranger = client.post(path, json={"request_id": "r"}, headers={"Sec-Fetch-Site": "cross-site"})
        assert stranger.status_code == 403
    assert bus.asked == []


def test_the_page_of_the_step_shows_the_documents_and_how_far_it_is(client: Any, bus: RecordingBus) -> None:
    bus.answers[submissions.form.OPEN_FORM] = signing_form("confirming", submitter_name="Ann Ray")
    page = client.get(f"/s/{SLUG}")
    assert page.status_code == 200
    assert "/confirming.min.js" in page.text
    assert 'id="decline"' in page.text
    assert "/main.min.js" not in page.text
    for secret in (STATE, ADDRESS):
        assert secret not in page.text
    assert '"step": "redirect"' in page.text or '"step":"redirect"' in page.text
    for path, status in (("attachments", 409), ("typed_signature", 409)):
        assert client.post(f"/s/{SLUG}/{path}", json={"type": "signature", "text": "A"}).status_code == status


def test_it_is_not_asked_for_too_often(client: Any, bus: RecordingBus) -> None:
    answers = [client.get(f"/s/{SLUG}/confirmation").status_code for _ in range(60)]
    assert (answers[0], answers[-1]) == (200, 429)
    assert client.get(f"/s/{OTHER_SLUG}/confirmation").status_code == 200
