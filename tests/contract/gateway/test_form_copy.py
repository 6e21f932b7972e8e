"""What a party that has completed may have at once, on real databases: what they saw and gave, while others have yet to complete."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy.orm import Session

from contracts.rpc.submissions.signing import form as rpc
from contracts.types import Condition, Submission
from services.submissions.models import SubmitterRow
from services.submissions.views import forms
from tests.support.material.submissions import SITE, Desk, Slug, create_command, field, refusal, template

A, B, C = "First Party", "Second Party", "Third Party"


class CopyDesk(Desk):
    def begin(self, *fields: Any, **more: Any) -> Submission:
        found = template(*fields)
        people = [{"role": role, "name": f"{role} Person"} for role in dict.fromkeys(one.role for one in fields)]
        return self.run_create(create_command(found, *people, **more), found)

    def copy(self, slug: Slug, **more: Any) -> rpc.FormCopy:
        if "document" not in more:
            copies = self.form(slug).copies
            assert copies is not None
            more["document"] = copies.documents[0].uuid
        query = rpc.FormPage(slug=slug, document_uuid=more["document"])
        return self.database.read(forms.copy_of, query, SITE, self.now)


@pytest.fixture
def desk(database_url: str) -> Iterator[CopyDesk]:
    desk = CopyDesk(database_url)
    yield desk
    desk.database.dispose()


def on_it(copy: rpc.FormCopy) -> dict[str, Any]:
    return {one.field.name: one.value for one in copy.filled.values}


def test_it_holds_what_they_saw_and_gave_and_nothing_that_came_later(desk: CopyDesk) -> None:
    """In parallel: what others have only saved, what they complete afterwards, and what they complete while this page is open are
    not on it."""
    a, b, c = (field(name=name, role=role) for name, role in (("a", A), ("b", B), ("c", C)))
    file = field(name="file", type="file", role=A, required=False)
    first, second, third = desk.begin(a, file, b, c, order="random").submitters
    attached = desk.attach(first.slug, "file")
    desk.save(second.slug, {b.uuid: "saved"})
    opened = desk.form(third.slug).shown
    desk.complete(first.slug, {a.uuid: "of a", file.uuid: [attached]})
    copies = desk.form(first.slug).copies
    assert copies is not None
    assert (copies.done, copies.parties) == (1, 3)
    assert on_it(desk.copy(first.slug)) == {"a": "of a", "file": [attached]}
    desk.complete(second.slug, {b.uuid: "of b"})
    assert on_it(desk.copy(first.slug)) == {"a": "of a", "file": [attached]}
    assert on_it(desk.copy(second.slug)) == {"a": "of a", "b": "of b"}  # no files of others
    copy = desk.copy(second.slug)
    assert (copy.done, copy.parties, copy.name) == (2, 3, "agreement 1")
    assert [party.completed_at is not None for party in copy.filled.parties] == [True, True, False]
    assert opened is not None
    assert opened.startswith("0.")  # the third looked before anybody had completed


def test_a_party_that_completes_what_it_opened_early_gets_what_was_open(desk: CopyDesk) -> None:
    a, b, c = (field(name=name, role=role) for name, role in (("a", A), ("b", B), ("c", C)))
    first, second, _ = desk.begin(a, b, c, order="random").submitters
    opened = desk.form(second.slug).shown
    desk.complete(first.slug, {a.uuid: "of a"})
    desk.complete(second.slug, {b.uuid: "of b"}, shown=opened)
    assert on_it(desk.copy(second.slug)) == {"b": "of b"}


@pytest.mark.parametrize("state", ["open", "code", "off", "everybody", "stranger's document", "hidden document"])
def test_nobody_else_gets_one(desk: CopyDesk, state: str) -> None:
    a, b = field(name="a", role=A), field(name="b", role=B)
    found = template(a, b)
    document = found.documents[0].uuid
    if state == "hidden document":
        condition = Condition(field_uuid=a.uuid, action="empty")
        found.documents[0] = found.documents[0].model_copy(update={"conditions": [condition]})
    people = [{"role": A, "name": "Ann"}, {"role": B, "name": "Bob"}]
    more = {"preferences": {"allow_to_partial_download": False}} if state == "off" else {}
    first, second = desk.run_create(create_command(found, *people, order="random", **more), found).submitters
    if state != "open":
        desk.complete(first.slug, {a.uuid: "of a"})
    if state == "everybody":
        desk.complete(second.slug, {b.uuid: "of b"})
    if state == "code":
        desk.database.write(must_pass_code, first.id)
    offered = desk.form(first.slug).copies
    assert (offered is not None) == (state in ("stranger's document", "hidden document"))
    assert not offered or [each.uuid == document for each in offered.documents] == [True] * (state != "hidden document")
    asked = "00000000-0000-4000-8000-000000000000" if state == "stranger's document" else document
    error = refusal(lambda: desk.copy(first.slug, document=asked))
    assert error.code == {"open": "conflict", "code": "forbidden"}.get(state, "not_found")


def must_pass_code(session: Session, submitter_id: int) -> None:
    row = session.get_one(SubmitterRow, submitter_id)
    row.preferences = {**row.preferences, "require_email_2fa": True}
