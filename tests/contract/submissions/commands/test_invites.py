"""``invite_by`` on real databases: added with the inviter's completion, once, by the inviter alone."""

from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.rpc.submissions.signing import form as rpc
from contracts.runtime.clock import uuid7
from contracts.types import Account, SubmissionStatus
from services.submissions.commands.signing import form as form_commands
from tests.support.material.submissions import SITE, Desk, Slug, assert_chain_holds, at_once, field, refusal, template


def three() -> Any:
    return template(field("A", "Name"), field("B", "Name"), field("C", "Name"))


def waiting(desk: Desk, *more: dict[str, Any], **wish: Any) -> Any:
    later = {"role": "B", "email": None, "invite_by": "a", "metadata": {"kept": 1}, "values": {"Name": "Bea"}}
    return desk.create(three(), {"role": "A"}, later, *more, **wish)


def invite(desk: Desk, slug: Slug, *submitters: dict[str, Any], request_id: str | None = None) -> rpc.Done:
    mine = [one for one in desk.form(slug).fields if one.mine and one.value is None]
    command = rpc.InviteAndComplete(
        request_id=request_id or uuid7(),
        slug=slug,
        values={one.uuid: "something" for one in mine},
        submitters=[rpc.Invited(**one) for one in submitters],
    )
    return desk.database.write(form_commands.complete, command, desk.limits, SITE, desk.now)


def test_the_named_party_is_there_when_the_inviter_has_completed(desk: Desk) -> None:
    made = waiting(desk)
    (inviter,) = made.submitters
    form = desk.form(inviter.slug)
    assert [one.role for one in form.invites] == ["B"]
    assert {one.role for one in form.fields} == {"A"}
    error = refusal(lambda: desk.complete(inviter.slug))
    assert (error.message, error.details[0]["field"]) == ("The e-mail address of B is required.", "submitters")
    for wrong, path in (
        ({"role": "B"}, "submitters[0].email"),
        ({"role": "B", "email": "nobody"}, "submitters[0].email"),
        ({"role": "C", "email": "c@example.com"}, "submitters[0].role"),
        ({"uuid": "unknown", "email": "c@example.com"}, "submitters[0].uuid"),
    ):
        assert refusal(lambda wrong=wrong: invite(desk, inviter.slug, wrong)).details[0]["field"] == path
    assert len(desk.get(made.id).submitters) == 1
    assert desk.form(inviter.slug).state == "open"

    request_id = uuid7()
    person = {"role": "b", "email": "bea@example.com", "name": "Bea"}
    for _ in range(2):
        assert invite(desk, inviter.slug, person, request_id=request_id).state == "completed"
    assert refusal(lambda: invite(desk, inviter.slug, {**person, "email": "eve@example.com"})).code == "invalid"
    shown = desk.get(made.id)
    assert [(one.role, one.email, one.name) for one in shown.submitters] == [
        ("A", "signer1@example.com", None),
        ("B", "bea@example.com", "Bea"),
    ]
    assert (shown.submitters[1].metadata, shown.submitters[1].values) == ({"kept": 1}, {"Name": "Bea"})
    assert [one["data"]["submitter_id"] for one in desk.events("invitation.due")] == [
        one.id for one in shown.submitters
    ]
    types = assert_chain_holds(desk, made.id)
    assert types[-3:] == ["name_party", "complete_form", "invite_party"]
    assert shown.status is SubmissionStatus.PENDING
    assert shown.sealing_status is None
    desk.complete(shown.submitters[1].slug)
    assert desk.get(made.id).sealing_status is not None


def test_who_must_pass_a_code_by_phone_is_named_with_a_number(desk: Desk) -> None:
    """Its sender does not know it yet; without a number nobody could ever open the form."""
    account = Account(phone_codes_available=True, sms_available=True)
    later = {"role": "B", "email": None, "invite_by": "A", "require_phone_2fa": True}
    wish: dict[str, Any] = {"account": account, "send_sms": True}
    made = desk.create(three(), {"role": "A"}, later, **wish)
    slug = made.submitters[0].slug
    assert [(one.role, one.needs_phone) for one in desk.form(slug).invites] == [("B", True)]
    person = {"role": "B", "email": "bea@example.com"}
    for phone in (None, "", "bea", "0171 123456"):
        error = refusal(lambda phone=phone: invite(desk, slug, {**person, "phone": phone}))
        assert error.details[0]["field"] == "submitters[0].phone"
    invite(desk, slug, {**person, "phone": "+44 20 7946-0018"})
    second = desk.get(made.id).submitters[1]
    assert (second.phone, desk.form(second.slug).state) == ("+442079460018", "code")
    assert [one["data"]["phone"] for one in desk.events("sms.due")] == ["+442079460018"]
    # A number that the sender gave stays, and of others none is taken.
    known = desk.create(three(), {"role": "A"}, {**later, "phone": "+14155550123"}, **wish)
    plain = desk.create(three(), {"role": "A"}, {"role": "B", "email": None, "invite_by": "A"})
    for submission, expected in ((known, "+14155550123"), (plain, None)):
        slug = submission.submitters[0].slug
        assert not desk.form(slug).invites[0].needs_phone
        invite(desk, slug, {**person, "phone": "+442079460018"})
        assert desk.get(submission.id).submitters[1].phone == expected


def test_of_two_at_once_one_counts(desk: Desk) -> None:
    made = waiting(desk, order="random")
    slug = made.submitters[0].slug
    people = [{"role": "B", "email": f"{n}@example.com"} for n in range(4)]
    results = at_once(*(lambda one=one: invite(desk, slug, one) for one in people))
    assert sorted(isinstance(one, ServiceError) for one in results) == [False, True, True, True]
    assert len(desk.get(made.id).submitters) == 2
    assert len(desk.events("invitation.due")) == 2


def test_one_invites_the_next_and_nobody_else_can(desk: Desk) -> None:
    made = waiting(desk, {"role": "C", "email": None, "invite_by": "B"})
    (first,) = made.submitters
    assert refusal(lambda: desk.update_submitter(first.id, completed=True)).details[0]["field"] == "completed"
    invite(desk, first.slug, {"role": "B", "email": "b@example.com"})
    second = desk.get(made.id).submitters[1]
    assert [one.role for one in desk.form(second.slug).invites] == ["C"]
    invite(desk, second.slug, {"role": "C", "email": "c@example.com"})
    third = desk.get(made.id).submitters[2]
    assert desk.form(third.slug).invites == []
    assert {one.role for one in desk.form(third.slug).fields} == {"A", "B", "C"}
    desk.complete(third.slug)
    assert desk.get(made.id).sealing_status is not None
    desk.remove(made.id, permanently=True)


@pytest.mark.parametrize(
    ("submitters", "path"),
    [
        ([{"role": "A", "invite_by": "B", "email": None}, {"role": "B"}], "submitters[0].invite_by"),
        ([{"role": "A"}, {"role": "B", "invite_by": "C", "email": None}, {"role": "C"}], "submitters[1].invite_by"),
        ([{"role": "A"}, {"role": "B", "invite_by": "B", "email": None}], "submitters[1].invite_by"),
        ([{"role": "A"}, {"role": "B", "invite_by": "A"}], "submitters[1].email"),
        ([{"role": "A", "completed": True}, {"role": "B", "invite_by": "A", "email": None}], "submitters[1].invite_by"),
    ],
)
def test_an_invitation_that_could_never_be_is_refused(desk: Desk, submitters: list[dict[str, Any]], path: str) -> None:
    error = refusal(lambda: desk.create(three(), *submitters))
    assert error.details[0]["field"] == path
