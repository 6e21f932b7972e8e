"""What the signing page may have drawn, on real databases: as it would be if this signer completed now, for their eyes only."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from contracts.rpc.rendering import FillRequest
from contracts.rpc.submissions.signing import form as rpc
from contracts.rpc.templates import GetFieldBoxes
from contracts.types import Account, Condition, Submission
from services.submissions.views import documents, forms
from tests.support.material.submissions import NOW, SITE, Desk, Slug, create_command, field, refusal, template

A, B = "First Party", "Second Party"


class DrawingDesk(Desk):
    def drawn(self, slug: Slug, values: dict[str, Any] | None = None, *wanted: str, **more: Any) -> FillRequest:
        everything = [one.uuid for one in self.fields]
        query = rpc.DrawForm(slug=slug, values=values or {}, fields=list(wanted) or everything, **more)
        return self.database.read(forms.drawing, query, self.limits, SITE, self.now)

    def begin(self, *fields: Any, **more: Any) -> Submission:
        self.fields = fields
        found = template(*fields)
        people = [{"role": role, "name": f"{role} Person"} for role in dict.fromkeys(one.role for one in fields)]
        return self.run_create(create_command(found, *people, **more), found)


@pytest.fixture
def desk(database_url: str) -> Iterator[DrawingDesk]:
    desk = DrawingDesk(database_url)
    yield desk
    desk.database.dispose()


def held(filled: FillRequest) -> dict[str, Any]:
    return {one.field.name: one.value for one in filled.values}


def test_values_that_are_not_saved_are_drawn_with_those_that_are_and_nothing_is_stored(desk: DrawingDesk) -> None:
    saved, typed, both = field(name="saved"), field(name="typed"), field(name="both")
    odd, default = field(name="odd", type="date"), field(name="default", default_value="as usual")
    fixed = field(name="fixed", default_value="by the sender", readonly=True)
    made = desk.begin(saved, typed, both, odd, default, fixed, field(name="empty"))
    slug = made.submitters[0].slug
    desk.save(slug, {saved.uuid: "stored", both.uuid: "old"})
    before = desk.rows("SELECT * FROM submissions"), desk.rows("SELECT * FROM submitters"), desk.events()
    values = {typed.uuid: "typed", both.uuid: "new", odd.uuid: "2026-02-3", fixed.uuid: "by the signer"}
    assert held(desk.drawn(slug, values)) == {
        "saved": "stored",
        "typed": "typed",
        "both": "new",
        "default": "as usual",
        "fixed": "by the sender",
    }
    assert held(desk.drawn(slug, {**values, default.uuid: None}, default.uuid, typed.uuid)) == {"typed": "typed"}
    after = desk.rows("SELECT * FROM submissions"), desk.rows("SELECT * FROM submitters"), desk.events()
    assert after == before


def test_it_is_as_if_he_completed_now(desk: DrawingDesk) -> None:
    heading = field(name="heading", type="heading", default_value="Signed on {{date}} by {{name}}")
    sign = field(name="sign", type="signature", preferences={"reasons": ["I agree", "I was there"]})
    stamp, gone = field(name="stamp", type="stamp"), field(name="gone")
    gone.conditions = [Condition(field_uuid=sign.uuid, action="empty")]
    made = desk.begin(heading, sign, stamp, gone, account=Account(time_zone="Europe/Vienna"))
    slug = made.submitters[0].slug
    uuid = desk.attach(slug)
    desk.now = NOW + timedelta(days=1)
    reasons = {sign.uuid: "I agree"}
    filled = desk.drawn(slug, {sign.uuid: uuid, gone.uuid: "x"}, reasons=reasons, time_zone="Asia/Tokyo")
    assert held(filled) == {"heading": None, "sign": uuid, "stamp": None}
    assert filled.values[0].field.default_value == "Signed on 03/05/2026 by First Party Person"
    assert [(one.field_uuid, one.reason) for one in filled.notes] == [(sign.uuid, "I agree")]
    assert [one.uuid for one in filled.attachments] == [uuid]
    (party,) = filled.parties
    assert (party.completed_at, party.time_zone) == (desk.now, "Asia/Tokyo")
    assert desk.drawn(slug, reasons={sign.uuid: None}).notes == []


def test_of_others_only_what_they_have_completed_and_no_files(desk: DrawingDesk) -> None:
    name, papers = field(A, "name"), field(A, "papers", "file", required=False)
    stamp, line = field(A, "stamp", "stamp"), field(A, "line", "strikethrough")
    masked = field(A, "masked", preferences={"mask": True}, default_value="secret")
    hidden = field(A, "hidden", preferences={"hidden": True}, default_value="secret")
    mine = field(B, "mine", default_value="B")
    made = desk.begin(name, papers, stamp, line, masked, hidden, mine, order="random")
    first, second = (one.slug for one in made.submitters)
    desk.save(first, {name.uuid: "Ana", papers.uuid: [desk.attach(first, "file")]})
    assert held(desk.drawn(second)) == {"line": None, "mine": "B"}
    desk.complete(first, {})
    seen = held(desk.drawn(second))
    assert seen == {"name": "Ana", "stamp": None, "line": None, "masked": "secret", "hidden": "secret", "mine": "B"}
    shown = {one.name: one for one in desk.form(second).fields}
    assert shown.keys() == seen.keys() - {"hidden"}
    assert (shown["masked"].value, shown["masked"].display) == (None, "XXXXXX")
    assert desk.drawn(second).attachments == []


def test_nobody_draws_with_what_is_not_his_or_when_it_is_not_his_turn(desk: DrawingDesk) -> None:
    name, sign, other = field(A, "name"), field(A, "sign", "signature"), field(B, "other", "signature")
    made = desk.begin(name, sign, other)
    first, second = (one.slug for one in made.submitters)
    assert refusal(lambda: desk.drawn(first, {other.uuid: "x"})).details[0]["reason"] == "is not a field of this signer"
    assert refusal(lambda: desk.drawn(second)).code == "forbidden"
    assert refusal(lambda: desk.drawn("nobody")).code == "not_found"
    assert refusal(lambda: desk.drawn(first, {name.uuid: "x" * 1_000_000})).details[0]["field"] == "values"
    his = desk.attach(first)
    desk.complete(first, {name.uuid: "Ana", sign.uuid: his})
    assert refusal(lambda: desk.drawn(first)).details == [{"field": "state", "reason": "completed"}]
    assert held(desk.drawn(second, {other.uuid: his})) == {"name": "Ana", "sign": his}


def test_boxes_of_a_submission_name_what_is_empty(desk: DrawingDesk) -> None:
    place = {"x": 0.1, "y": 0.2, "w": 0.3, "h": 0.04}
    filled, empty = field(A, "filled", areas=[place]), field(B, "empty", areas=[place, {**place, "page": 2}])
    made = desk.begin(filled, empty)
    desk.save(made.submitters[0].slug, {filled.uuid: "Ana"})
    uuid = desk.drawn(made.submitters[0].slug).documents[0].uuid
    wanted = GetFieldBoxes(id=made.id, document_uuid=uuid)
    found = desk.database.read(documents.field_boxes, wanted).boxes
    assert [(one.page, one.label, one.role) for one in found] == [(1, "", 0), (1, "empty", 1), (2, "empty", 1)]
    for other in (wanted.model_copy(update={"id": 10**9}), wanted.model_copy(update={"document_uuid": "x"})):
        assert refusal(lambda: desk.database.read(documents.field_boxes, other)).code == "not_found"  # noqa: B023
