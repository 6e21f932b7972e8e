"""One-off submissions on real databases: whose they are, what is kept of them, and what goes with them."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.rpc.submissions import api as rpc
from contracts.rpc.templates import Composition
from contracts.runtime.clock import uuid7
from contracts.types import Account, Actor, Notice, Role, Submission, SubmissionStatus
from services.submissions.commands import submissions
from services.submissions.planning import one_off
from tests.support.material.submissions import SITE, Desk, blob, template, two_signers

CREATOR = Actor(user_id=7, role=Role.EDITOR, email="creator@example.com")
COLLEAGUE = Actor(user_id=8, role=Role.EDITOR, email="colleague@example.com")
VIEWER = Actor(user_id=9, role=Role.VIEWER, email="viewer@example.com")


def own(name: str) -> BlobRef:
    return blob(f"submissions/{name}")


def composition(**more: Any) -> Composition:
    """One document that came along, and one of a template."""
    found = two_signers(documents=2)
    mine = found.documents[0].model_copy(update={"file": own("file-"), "original": own("original-")})
    documents = [mine, found.documents[1]]
    report = [Notice(code="unknown_tag", message="“{{?}}” is not a field")]
    return Composition(parties=found.parties, fields=found.fields, documents=documents, report=report, **more)


def command(**more: Any) -> rpc.CreateOneOff:
    people = [rpc.NewSubmitter(email=f"{uuid4().hex}@example.com") for _ in range(2)]
    values = {"request_id": uuid7(), "actor": CREATOR, "account": Account(), "submitters": people, **more}
    return rpc.CreateOneOff(**values)


def create(desk: Desk, found: Composition | None = None, wanted: rpc.CreateOneOff | None = None) -> Submission:
    found, wanted = found or composition(), wanted or command()
    plan = one_off.plan_submission(wanted, found, desk.limits, desk.now)
    return desk.database.write(submissions.create, wanted, found, plan, [], SITE, desk.now)


def test_the_answer_says_what_became_of_the_documents(desk: Desk) -> None:
    found = composition()
    made = create(desk, found, command(name="Lease"))
    assert (made.template, made.name, made.status) == (None, "Lease", SubmissionStatus.PENDING)
    assert made.document_schema is not None
    assert [one.attachment_uuid for one in made.document_schema] == [one.uuid for one in found.documents]
    assert made.report == found.report
    assert made.fields is not None
    assert [one.uuid for one in made.fields] == [one.uuid for one in found.fields]
    assert made.model_dump(by_alias=True)["schema"][0]["name"] == "agreement 1"
    assert [one.role for one in made.submitters] == ["First Party", "Second Party"]
    (event,) = desk.events("submission.created")
    assert event["data"]["data"]["template"] is None
    assert not {"schema", "document_schema", "report", "fields"} & set(event["data"]["data"])
    assert (event["data"]["author_id"], event["data"]["shared"]) == (CREATOR.user_id, False)
    (mail,) = desk.events("invitation.due")
    assert mail["data"]["context"]["submission_name"] == "Lease"


def test_it_is_called_like_its_first_document(desk: Desk) -> None:
    file = blob()
    for given, expected in ((["Lease.PDF", "b"], "Lease"), (["", "annex"], "annex"), ([".pdf"], ".pdf")):
        documents = [{"name": name, "file": file} for name in given]
        assert create(desk, wanted=command(documents=documents)).name == expected
    unnamed = create(desk)
    assert unnamed.name == f"Submission {unnamed.id}"
    pages = [{"html": "<p>x</p>"}, {"html": "<p>x</p>", "name": "offer"}]
    assert create(desk, wanted=command(html_documents=pages)).name == "offer"


@pytest.mark.parametrize(
    ("locale", "called"),
    [("en-US", "Submission"), ("de-AT", "Vorgang"), ("ar", "المعاملة رقم"), ("zh-TW", "案件"), ("tlh", "Submission")],
)
def test_what_nobody_has_named_has_its_number_in_the_account_s_language(desk: Desk, locale: str, called: str) -> None:
    made = create(desk, wanted=command(account=Account(locale=locale)))
    expected = f"{called} {made.id}"
    assert made.name == expected
    desk.update(made.id, actor=CREATOR, name=None)  # its name is taken away again
    assert desk.get(made.id, CREATOR).name is None
    first, second = made.submitters
    assert desk.form(first.slug).submission_name == expected
    desk.complete(first.slug)
    assert [mail["data"]["context"]["submission_name"] for mail in desk.events("invitation.due")] == [expected] * 2
    desk.complete(second.slug)
    (order,) = desk.events("sealing.due")
    assert order["data"]["name"] == expected, "the trail and the titles of the sealed files"


def test_it_is_seen_by_its_creator_and_admins(desk: Desk) -> None:
    made = create(desk)
    desk.create()  # of a shared template: everybody's
    for actor, sees in ((CREATOR, True), (COLLEAGUE, False), (VIEWER, False)):
        assert (made.id in desk.listed(actor)) == sees
        for filters in ({"q": made.submitters[0].email}, {"status": SubmissionStatus.PENDING}, {"archived": False}):
            assert (made.id in desk.listed(actor, **filters)) == sees
        if sees:
            assert desk.get(made.id, actor).id == made.id
            continue
        for call in (desk.get, desk.update, desk.remove):
            with pytest.raises(ServiceError) as caught:
                call(made.id, actor)
            assert caught.value.code in ("not_found", "forbidden")
    assert made.id in desk.listed()
    assert made.id not in desk.listed(template_folder="Default")


def test_everything_after_creation_works_as_for_the_rest(desk: Desk) -> None:
    made = create(desk)
    for one in made.submitters:
        assert desk.form(one.slug).state == "open"
        desk.complete(one.slug)
    (order,) = desk.events("sealing.due")
    assert [one["file"]["key"].partition("/")[0] for one in order["data"]["documents"]] == ["submissions", "templates"]
    desk.seal(made.id)
    assert desk.get(made.id).status is SubmissionStatus.COMPLETED
    assert desk.count("submission.completed") == 1
    expiring = create(desk, wanted=command(expire_at=desk.now + timedelta(hours=1)))
    desk.now += timedelta(hours=2)
    assert desk.get(expiring.id).status is SubmissionStatus.EXPIRED


def test_sent_again_it_is_one_also_when_it_was_erased_since(desk: Desk) -> None:
    wanted = command()
    made = create(desk, wanted=wanted)
    assert create(desk, wanted=wanted) == made
    desk.remove(made.id, permanently=True)
    again = create(desk, wanted=wanted)
    assert (again.id, again.slug, again.submitters) == (made.id, "", [])
    assert desk.listed() == []


def test_erased_its_own_documents_go_and_those_of_templates_stay(desk: Desk) -> None:
    found = composition()
    made = create(desk, found)
    desk.remove(made.id, permanently=True)
    removed = {row.key for row in desk.rows("SELECT key FROM blob_removals")}
    mine, theirs = found.documents
    assert {mine.file.key, mine.original.key} <= removed
    assert not {theirs.file.key, theirs.original.key} & removed
    of_template = desk.create(template(*two_signers().fields))
    desk.remove(of_template.id, permanently=True)
    assert not [row.key for row in desk.rows("SELECT key FROM blob_removals") if row.key.startswith("templates/")]


def test_what_is_wrong_with_the_documents_is_said_of_them(desk: Desk) -> None:
    empty = composition().model_copy(update={"fields": []})
    with pytest.raises(ServiceError) as caught:
        create(desk, empty)
    (detail,) = caught.value.details
    assert detail["field"] == "documents"
    assert detail["reason"].startswith("has no fields: put tags")
    assert desk.listed() == []
