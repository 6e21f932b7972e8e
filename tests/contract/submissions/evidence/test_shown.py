"""What a signer was shown is what they sign: on SQLite and PostgreSQL."""

from typing import Any

import pytest
import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.types import Area, Submission
from services.submissions.evidence import shown
from services.submissions.models import SubmitterRow
from services.submissions.storage import store
from tests.support.material.submissions import ADMIN, Desk, field, refusal, template


def agreement() -> Any:
    """Ann fills in her name beside a fixed amount, Bob a note beside a fixed rate of interest."""
    paper: dict[str, Any] = {"areas": [Area(x=0.1, y=0.1, w=0.2, h=0.05, page=1)]}
    return template(
        field(name="Amount", uuid="amount", default_value="100", readonly=True, **paper),
        field(name="Name", uuid="name", required=False, **paper),
        field("Second Party", name="Interest", uuid="interest", default_value="1 %", readonly=True, **paper),
        field("Second Party", name="Note", uuid="note", required=False, **paper),
    )


def sent(desk: Desk, order: str = "preserved") -> Submission:
    return desk.create(agreement(), {"name": "Ann"}, {"name": "Bob"}, order=order)


def changed(desk: Desk, submitter_id: int, name: str, value: str) -> None:
    desk.update_submitter(submitter_id, fields=[{"name": name, "readonly": True, "default_value": value}])


def lines(desk: Desk, submission_id: int, event_type: str) -> list[dict[str, Any]]:
    found = desk.get(submission_id).submission_events or []
    return [one.data for one in found if one.event_type == event_type]


def named(refused: ServiceError) -> dict[str, str]:
    return {one["field"]: one["reason"] for one in refused.details}


@pytest.mark.parametrize("told", [True, False], ids=["viewed", "view-lost"])
def test_what_is_changed_while_somebody_looks_is_not_signed(desk: Desk, told: bool) -> None:
    """A dishonest sender changes the amount that stands on the page of a signer who is about to press Complete."""
    made = sent(desk)
    ann = made.submitters[0]
    opened = desk.form(ann.slug)
    if told:
        desk.view(ann.slug, shown=opened.shown)
    desk.save(ann.slug, {"name": "Ann Ray"}, shown=opened.shown)
    changed(desk, ann.id, "Amount", "1000000")
    for attempt in (desk.save, desk.complete):
        refused = refusal(lambda attempt=attempt: attempt(ann.slug, {"name": "Ann"}, shown=opened.shown))
        assert (refused.code, refused.status) == ("changed_meanwhile", 409)
        assert named(refused) == {"shown": "has changed", "amount": "has changed"}
    kept = desk.get(made.id)
    assert (kept.submitters[0].status, kept.submitters[0].values["Name"]) == ("pending", "Ann Ray")

    again = desk.form(ann.slug)
    assert next(one.value for one in again.fields if one.uuid == "name") == "Ann Ray"
    desk.complete(ann.slug, {"name": "Ann Ray"}, shown=again.shown)
    (line,) = lines(desk, made.id, "complete_form")
    assert line["shown"] == again.shown
    (change,) = lines(desk, made.id, "update_submitter")
    assert change["by"] == ADMIN.email
    assert {"what": "values.Amount", "before": None, "after": "1000000"} in change["changes"]


@pytest.mark.parametrize("answer", ["yes", "no"])
@pytest.mark.parametrize("completes", [True, False])
def test_what_another_party_gives_meanwhile_brings_and_takes_nothing(desk: Desk, answer: str, completes: bool) -> None:
    """A condition on what somebody gives beside the signer: what was not on their page is not signed, what they typed stays."""
    found = template(
        field(name="Guaranteed?", uuid="asked"),
        *(
            field("Second Party", name=name, uuid=name.lower(), conditions=[{"field_uuid": "asked", **when}])
            for name, when in (
                ("Guarantee", {"action": "equal", "value": "yes"}),
                ("Reason", {"action": "not_equal", "value": "no"}),
            )
        ),
    )
    made = desk.create(found, {"name": "Ann"}, {"values": {"Guarantee": "1000000"}}, order="random")
    ann, bob = made.submitters
    opened = desk.form(bob.slug)
    assert [one.uuid for one in opened.fields if one.mine] == ["reason"]
    (desk.complete if completes else desk.save)(ann.slug, {"asked": answer})
    desk.complete(bob.slug, {"reason": "No bank"}, shown=opened.shown)
    values = desk.get(made.id).submitters[1].values
    assert (values["Guarantee"], values["Reason"]) == (None, "No bank")


@pytest.mark.parametrize("default", ["100", "100 for {{name}}", "100 on {{date}}"])
def test_a_value_for_a_read_only_field_is_seen_before_it_is_signed(desk: Desk, default: str) -> None:
    """Whatever its default says of the party or the day: the value is what stands on the page and on paper."""
    amount = field(name="Amount", uuid="amount", default_value=default, readonly=True)
    made = desk.create(template(amount, field(name="Name", uuid="name", required=False)), {"name": "Ann"})
    (ann,) = made.submitters
    opened = desk.form(ann.slug)
    desk.update_submitter(ann.id, values={"Amount": "1000000"})
    for attempt in (desk.save, desk.complete):
        refused = refusal(lambda attempt=attempt: attempt(ann.slug, {"name": "Ann"}, shown=opened.shown))
        assert refused.code == "changed_meanwhile"
    again = desk.form(ann.slug)
    assert next(one.value for one in again.fields if one.uuid == "amount") == "1000000"
    desk.update_submitter(ann.id, values={"Amount": "1000001"})
    assert refusal(lambda: desk.complete(ann.slug, {}, shown=again.shown)).code == "changed_meanwhile"
    desk.complete(ann.slug, {"name": "Ann"}, shown=desk.form(ann.slug).shown)
    assert desk.get(made.id).submitters[0].values["Amount"] == "1000001"


@pytest.mark.parametrize(
    "change",
    [
        {"fields": [{"name": "Amount", "title": "Amount in thousands"}]},
        {"fields": [{"name": "Interest", "readonly": True, "default_value": "99 %"}]},
        {"values": {"Amount": "200"}},
    ],
)
def test_whatever_stands_on_the_page_counts(desk: Desk, change: dict[str, Any]) -> None:
    made = sent(desk)
    ann, bob = made.submitters
    opened = desk.form(ann.slug)
    desk.update_submitter((bob if "Interest" in str(change) else ann).id, **change)
    assert refusal(lambda: desk.complete(ann.slug, {"name": "Ann"}, shown=opened.shown)).code == "changed_meanwhile"


def test_what_does_not_concern_the_page_disturbs_nobody(desk: Desk) -> None:
    made = sent(desk)
    ann, bob = made.submitters
    opened = desk.form(ann.slug)
    desk.view(ann.slug, shown=opened.shown)
    desk.save(ann.slug, {"name": "Ann"}, shown=opened.shown)
    desk.update_submitter(bob.id, name="Robert", metadata={"a": 1}, values={"Note": "from the sender"})
    desk.update_submitter(ann.id, external_id="x", values={"Name": "from the sender"})
    assert desk.form(ann.slug).shown == opened.shown
    desk.complete(ann.slug, {"name": "Ann"}, shown=opened.shown)


def test_signers_beside_each_other_do_not_disturb_each_other(desk: Desk) -> None:
    made = sent(desk, order="random")
    ann, bob = made.submitters
    hers, his = desk.form(ann.slug), desk.form(bob.slug)
    desk.complete(bob.slug, {"note": "mine"}, shown=his.shown)
    assert desk.form(ann.slug).shown != hers.shown
    desk.complete(ann.slug, {"name": "Ann"}, shown=hers.shown)
    covered = [line["shown"].partition(".")[0] for line in lines(desk, made.id, "complete_form")]
    assert covered == ["0", "0"]


def test_what_was_covered_stays_covered(desk: Desk) -> None:
    """A value that somebody saw is changed in the database afterwards."""
    made = sent(desk)
    ann, bob = made.submitters
    desk.complete(ann.slug, {"name": "Ann"})
    opened = desk.form(bob.slug)
    assert opened.shown is not None
    assert opened.shown.startswith("1.")
    forged = sa.update(SubmitterRow).where(SubmitterRow.id == ann.id).values(values={"name": "Mallory"})
    desk.database.write(lambda session: session.execute(forged))
    assert refusal(lambda: desk.complete(bob.slug, {}, shown=opened.shown)).code == "changed_meanwhile"


def declaring(**more: Any) -> Any:
    """Ann reads who she and Bob are; a payment that Bob is asked for stands there, too."""
    paper: dict[str, Any] = {"areas": [Area(x=0.1, y=0.1, w=0.2, h=0.05, page=1)]}
    return template(
        field(name="Declaration", uuid="declaration", default_value="I, {{name}}, on {{date}}", readonly=True, **paper),
        field(name="Above", uuid="above", type="heading", default_value="By {name}", **paper),
        field("Second Party", name="Below", uuid="below", type="heading", default_value="And {name}", **paper),
        field("Second Party", name="Fee", uuid="fee", type="payment", preferences={"price": 100}, **paper),
        **more,
    )


def test_a_name_that_stands_in_a_field_is_part_of_what_is_shown(desk: Desk) -> None:
    """The sender renames a party whose declaration, or whose name in a heading, somebody has before their eyes."""
    made = desk.create(declaring(), {"name": "Ann"}, {"name": "Bob"})
    ann, bob = made.submitters
    for renamed, changed_fields in ((ann, {"declaration", "above"}), (bob, {"below"})):
        opened = desk.form(ann.slug)
        desk.view(ann.slug, shown=opened.shown)
        desk.update_submitter(renamed.id, name="Mallory")
        refused = refusal(lambda opened=opened: desk.complete(ann.slug, {}, shown=opened.shown))
        assert refused.code == "changed_meanwhile"
        assert set(named(refused)) == {"shown", *changed_fields}
    desk.update_submitter(bob.id, email="bob@other.example")
    desk.complete(ann.slug, {}, shown=desk.form(ann.slug).shown)


def test_what_stands_in_a_field_is_so_before_and_after_completing(desk: Desk) -> None:
    """Whoever checks a completion later computes its digest of what the API gives then."""
    made = desk.create(declaring(), {"name": "Ann"}, {"name": "Bob"})
    ann = made.submitters[0]
    desk.complete(ann.slug, {}, shown=desk.form(ann.slug).shown)

    def now(session: Any) -> str:
        found = store.lock(session, made.id)
        assert found is not None
        return shown.to(found.submitter(ann.id), found.row, found.snapshot, found.submitters, covers=0).token

    assert desk.database.write(now) == lines(desk, made.id, "complete_form")[0]["shown"]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"fields": [{"name": "Below", "default_value": "And Ann owes everything"}]}, "fields.Below"),
        ({"fields": [{"name": "Fee", "preferences": {"price": 1_000_000}}]}, "fields.Fee"),
        ({"name": "Mallory"}, "fields.Below"),
    ],
)
def test_what_stood_on_paper_for_all_is_frozen(desk: Desk, change: dict[str, Any], path: str) -> None:
    made = desk.create(declaring(), {"name": "Ann"}, {"name": "Bob"})
    ann, bob = made.submitters
    desk.complete(ann.slug, {})
    refused = refusal(lambda: desk.update_submitter(bob.id, **change))
    assert "Ann has signed" in named(refused)[path]
    desk.update_submitter(bob.id, email="bob@other.example", metadata={"a": 1})


def test_a_page_of_an_older_version_is_held_to_its_last_look(desk: Desk) -> None:
    made = sent(desk)
    ann = made.submitters[0]
    desk.view(ann.slug)
    changed(desk, ann.id, "Amount", "1000000")
    refused = refusal(lambda: desk.complete(ann.slug, {"name": "Ann"}))
    assert named(refused) == {"shown": "has changed", "amount": "has changed"}
    desk.view(ann.slug)
    desk.complete(ann.slug, {"name": "Ann"})


@pytest.mark.parametrize("token", ["", "x", "0.", "zz." + "0" * 64, "0." + "0" * 64, "ffffffffffffffffff." + "0" * 64])
def test_an_odd_token_is_a_stale_one(desk: Desk, token: str) -> None:
    ann = sent(desk).submitters[0]
    desk.view(ann.slug)
    if token:
        assert refusal(lambda: desk.complete(ann.slug, {}, shown=token)).code == "changed_meanwhile"
    else:
        desk.complete(ann.slug, {}, shown=token)


def test_a_token_is_worth_nothing_to_another_signer(desk: Desk) -> None:
    ann, bob = sent(desk, order="random").submitters
    foreign = desk.form(bob.slug).shown
    assert refusal(lambda: desk.complete(ann.slug, {}, shown=foreign)).code == "changed_meanwhile"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"fields": [{"name": "Interest", "readonly": True, "default_value": "99 %"}]}, "fields.Interest"),
        ({"fields": [{"name": "Note", "readonly": True}]}, "fields.Note"),
        ({"values": {"Interest": "99 %"}}, "fields.Interest"),
        ({"readonly_fields": ["Note"], "values": {"Note": "I owe everything"}}, "fields.Note"),
    ],
)
def test_what_somebody_has_signed_is_frozen(desk: Desk, change: dict[str, Any], path: str) -> None:
    made = sent(desk)
    ann, bob = made.submitters
    desk.complete(ann.slug, {"name": "Ann"})
    refused = refusal(lambda: desk.update_submitter(bob.id, **change))
    assert refused.code == "invalid"
    assert "Ann has signed" in named(refused)[path]
    assert lines(desk, made.id, "update_submitter") == []
    to_fill_in = [{"name": "Note", "default_value": "for you to change", "title": "A note", "required": True}]
    desk.update_submitter(bob.id, name="Robert", fields=to_fill_in)
    desk.complete(bob.slug, {})


def test_the_line_of_a_completion_says_what_was_signed(desk: Desk) -> None:
    made = sent(desk)
    ann = made.submitters[0]
    opened = desk.form(ann.slug)
    desk.complete(ann.slug, {"name": "Ann Ray"}, shown=opened.shown)
    (line,) = lines(desk, made.id, "complete_form")
    assert line["shown"] == opened.shown
    assert len(line["documents"]) == len(opened.documents)
    assert "Ann Ray" not in str(line)
    other = sent(desk)
    desk.complete(other.submitters[0].slug, {"name": "Ann Roy"})
    (another,) = lines(desk, other.id, "complete_form")
    assert another["values"] != line["values"]
    assert another["documents"] == line["documents"]


def test_zero_is_a_value(desk: Desk) -> None:
    """It is on the next signer's page and on the paper."""
    paper: dict[str, Any] = {"areas": [Area(x=0.1, y=0.1, w=0.2, h=0.05, page=1)], "type": "number"}
    agreed = template(
        field(name="Deposit", uuid="deposit", **paper),
        field(name="Fee", uuid="fee", default_value=0, readonly=True, **paper),
        field("Second Party", name="Months", uuid="months", **paper),
    )
    made = desk.create(agreed, {"name": "Ann"}, {"name": "Bob"})
    ann, bob = (one.slug for one in made.submitters)
    desk.complete(ann, {"deposit": "0"})
    assert {one.uuid: one.display for one in desk.form(bob).fields} == {"deposit": "0", "fee": "0", "months": None}
    desk.complete(bob, {"months": 0})
    (event,) = desk.events("sealing.due")
    assert {one["field"]["uuid"]: one["value"] for one in event["data"]["values"]} == dict.fromkeys(
        ("deposit", "fee", "months"), 0
    )
