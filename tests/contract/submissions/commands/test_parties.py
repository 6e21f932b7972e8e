"""Parties that approve or read and do not sign, and who gets copies, on SQLite and PostgreSQL."""

from typing import Any

import pytest

from contracts.rpc import submissions as rpc
from contracts.types import SubmissionStatus
from tests.support.material.submissions import Desk, create_command, field, refusal, template


def three() -> Any:
    """A role that signs, one without fields, and another one without."""
    return template(field("Signer", "Sign", "signature"), roles=("Boss", "Reader"))


def deeds(desk: Desk, number: int) -> list[str]:
    return [one.acts_as for one in desk.get(number).submitters]


def test_who_has_no_fields_reads_unless_they_are_to_approve(desk: Desk) -> None:
    made = desk.create(three(), {"role": "Signer"}, {"role": "Boss", "acts_as": "approver"}, {"role": "Reader"})
    assert deeds(desk, made.id) == ["signer", "approver", "viewer"]
    assert [desk.form(one.slug).acts_as for one in made.submitters] == ["signer", "approver", "viewer"]


def test_an_approver_is_waited_for_and_a_viewer_is_not(desk: Desk) -> None:
    roles = {"role": "Boss", "acts_as": "approver"}, {"role": "Signer"}, {"role": "Reader"}
    made = desk.create(three(), *roles)
    boss, signer, reader = made.submitters
    assert desk.form(signer.slug).state == "waiting"
    assert [one["data"]["context"]["parties"][0]["acts_as"] for one in desk.events("invitation.due")] == ["approver"]
    assert desk.complete(boss.slug, {}).state == "completed"
    assert desk.form(signer.slug).state == "open"
    desk.complete(signer.slug, {next(one.uuid for one in desk.form(signer.slug).fields): desk.attach(signer.slug)})
    desk.seal(made.id)
    assert desk.get(made.id).status is SubmissionStatus.COMPLETED
    refused = refusal(lambda: desk.complete(reader.slug, {}))
    assert refused.code == "invalid"
    lines = {(one.submitter_id, one.event_type): one.data for one in desk.get(made.id).submission_events or []}
    assert lines[boss.id, "complete_form"]["acts_as"] == "approver"
    assert "acts_as" not in lines[signer.id, "complete_form"]


@pytest.mark.parametrize(
    ("acts_as", "role", "reason"),
    [
        ("viewer", "Signer", "cannot be viewer: Signer has fields"),
        ("approver", "Signer", "cannot be approver: Signer has fields to sign"),
        ("signer", "Boss", "cannot be signer: Boss has no fields"),
    ],
)
def test_what_does_not_fit_is_refused(desk: Desk, acts_as: str, role: str, reason: str) -> None:
    others = [{"role": one} for one in ("Signer", "Boss") if one != role]
    command = create_command(three(), {"role": role, "acts_as": acts_as}, *others)
    refused = refusal(lambda: desk.run_create(command, three()))
    assert {"field": "submitters[0].acts_as", "reason": reason} in refused.details


def test_nobody_signs_by_the_words_for_approving(desk: Desk) -> None:
    made = desk.create(template(field("First Party"), roles=("Boss",)), {}, {"acts_as": "approver"}, order="random")
    signer, boss = made.submitters
    for slug, approves in ((signer.slug, True), (boss.slug, False)):
        words = rpc.form.WordsAbove(language="en", words="Words", approves=approves)
        refused = refusal(lambda slug=slug, words=words: desk.complete(slug, statement=words))
        assert (refused.code, refused.details[0]["field"]) == ("changed_meanwhile", "statement")
        desk.complete(slug, statement=words.model_copy(update={"approves": not approves}))
    lines = [one for one in desk.get(made.id).submission_events or [] if one.event_type == "complete_form"]
    assert [one.data["statement"] for one in lines] == [{"language": "en", "words": "Words"}] * 2


def test_copies_when_it_is_sent_and_when_it_is_done(desk: Desk) -> None:
    copies = {"cc_sent": "legal@x.co, Boss@x.co", "cc_completed": "archive@x.co, signer1@example.com"}
    made = desk.signed(template(field("First Party")), {}, bcc_completed="archive@x.co, quiet@x.co", **copies)
    (sent,) = desk.events("sent_copy_mails.due")
    assert sent["data"]["cc"] == ["legal@x.co", "Boss@x.co"]
    assert [one["name"] for one in sent["data"]["documents"]] == ["agreement 1"]
    desk.seal(made.id)
    (done,) = desk.events("completion_mails.due")
    assert (done["data"]["cc"], done["data"]["bcc"]) == (["archive@x.co"], ["quiet@x.co"])
    desk.create(template(field("First Party")), {})
    assert desk.count("sent_copy_mails.due") == 1


@pytest.mark.parametrize("key", ["cc_sent", "cc_completed"])
def test_an_address_that_is_none_is_refused(desk: Desk, key: str) -> None:
    found = template(field("First Party"))
    refused = refusal(lambda: desk.run_create(create_command(found, {}, **{key: "nobody"}), found))
    assert refused.details[0]["field"] == key


def test_who_approves_or_reads_needs_no_role_of_the_documents(desk: Desk) -> None:
    found = template(field("Tenant"), field("Owner"))
    made = desk.create(
        found, {"acts_as": "approver"}, {}, {"acts_as": "viewer", "role": "Auditor"}, {}, {"acts_as": "approver"}
    )
    assert [(one.role, one.acts_as) for one in desk.get(made.id).submitters] == [
        ("Approver", "approver"),
        ("Tenant", "signer"),
        ("Auditor", "viewer"),
        ("Owner", "signer"),
        ("Approver 2", "approver"),
    ]
    desk.complete(made.submitters[0].slug, {})
    assert desk.form(made.submitters[1].slug).state == "open"
    too_many = create_command(found, {"acts_as": "approver"}, {}, {}, {})
    assert refusal(lambda: desk.run_create(too_many, found)).code == "invalid"
