"""Values as pictures for the page: what is passed on, what is refused, and how often it may be asked."""

from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.rpc import rendering, submissions
from contracts.types import Account
from services.gateway.pages.answering.pace import Pace
from tests.unit.gateway.pages.conftest import SLUG, RecordingBus

ASKED = {"values": {"f1": "Ana"}, "reasons": {"f2": None}, "areas": [["f1", 0], ["f2", 1]], "width": 1170}
FILLED = rendering.FillRequest(
    submission_id=7, submission_slug="x", name="Lease", account=Account(), documents=[], values=[], base_url=""
)
DRAWN = rendering.DrawnValues(
    areas=[
        rendering.DrawnArea(
            field_uuid="f1", area=0, picture="aGk=", media_type="image/webp", x=0.1, y=0.2, w=0.3, h=0.4
        ),
        rendering.DrawnArea(field_uuid="f2", area=1, problem="has 9 characters too many"),
    ]
)


@pytest.fixture
def drawing(bus: RecordingBus) -> RecordingBus:
    bus.answers |= {submissions.form.FORM_DRAWING: FILLED, rendering.DRAW_VALUES: DRAWN}
    return bus


def post(client: Any, body: Any, **more: Any) -> Any:
    return client.post(f"/s/{SLUG}/drawing", json=body, **more)


def test_what_stands_on_the_page_is_drawn_and_nothing_else_is_done(client: Any, drawing: RecordingBus) -> None:
    client.set_cookie("code_email", "proof", path=f"/s/{SLUG}")
    answer = post(client, {**ASKED, "time_zone": "Asia/Tokyo"})
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    first, second = answer.json["areas"]
    assert (first["field_uuid"], first["area"], first["picture"]) == ("f1", 0, "data:image/webp;base64,aGk=")
    assert (first["x"], first["y"], first["w"], first["h"]) == (0.1, 0.2, 0.3, 0.4)
    assert second["picture"] is None
    assert second["problem"] == "has 9 characters too many"
    assert [rpc for rpc, _ in drawing.asked] == [submissions.form.FORM_DRAWING, rendering.DRAW_VALUES]
    (asked,) = drawing.requests(submissions.form.FORM_DRAWING)
    assert (asked.slug, asked.proofs, asked.time_zone) == (SLUG, ["proof"], "Asia/Tokyo")
    assert (asked.values, asked.reasons, asked.fields) == ({"f1": "Ana"}, {"f2": None}, ["f1", "f2"])
    (order,) = drawing.requests(rendering.DRAW_VALUES)
    assert (order.width, order.submission_id) == (1170, 7)
    assert [(one.field_uuid, one.area) for one in order.areas] == [("f1", 0), ("f2", 1)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"areas": None},
        {"areas": []},
        {"areas": [["f1", 0]] * 101},
        {"areas": [["f1"]]},
        {"areas": [["f1", -1]]},
        {"areas": [["f1", True]]},
        {"areas": [["f" * 65, 0]]},
        {"areas": [{"f1": 0}]},
        {"width": "1400"},
        {"width": 0},
        {"width": 4001},
        {"width": True},
        {"values": []},
        {"reasons": {"f1": 1}},
    ],
)
def test_bad_bodies_are_refused_by_name(client: Any, drawing: RecordingBus, wrong: dict[str, Any]) -> None:
    answer = post(client, {**ASKED, **wrong})
    assert (answer.status_code, answer.json["details"][0]["field"]) == (422, next(iter(wrong)))
    assert drawing.asked == []


def test_another_site_and_a_form_that_is_not_open_get_nothing(client: Any, drawing: RecordingBus) -> None:
    assert post(client, ASKED, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    refused = ServiceError("forbidden", "Verification required", [{"field": "state", "reason": "code"}])
    drawing.answers[submissions.form.FORM_DRAWING] = refused
    assert post(client, ASKED).status_code == 403
    assert drawing.requests(rendering.DRAW_VALUES) == []


def test_who_asks_without_end_is_told_to_wait_and_others_are_not(client: Any, drawing: RecordingBus) -> None:
    answers = [post(client, ASKED) for _ in range(70)]
    assert {one.status_code for one in answers} == {200, 429}
    assert answers[-1].headers["Retry-After"] == "1"
    assert answers[-1].headers["RateLimit-Policy"] == '"requests";q=60;w=15'
    assert len(drawing.requests(rendering.DRAW_VALUES)) < 70
    assert client.post("/s/another-form/drawing", json=ASKED).status_code == 200


def test_pace() -> None:
    now = 100.0
    pace = Pace(2, 0.5, clock=lambda: now)

    def allowed(key: str) -> bool:
        try:
            pace.count(key)
        except ServiceError:
            return False
        return True

    assert [allowed("a"), allowed("a"), allowed("a"), allowed("b")] == [True, True, False, True]
    now += 1
    assert not allowed("a")
    now += 1
    assert [allowed("a"), allowed("a")] == [True, False]
    now += 1000
    assert [allowed("a"), allowed("a"), allowed("a")] == [True, True, False]
    for number in range(10_001):
        pace.count(f"many {number}")
    assert allowed("a")
