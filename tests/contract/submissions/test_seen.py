"""Lists of submissions and submitters, and who may see and change which, on SQLite and PostgreSQL."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.rpc.submissions import api as rpc
from contracts.runtime.clock import uuid7
from contracts.types import Actor, Role
from services.submissions.models import TemplateRow
from services.submissions.reading import queries
from services.submissions.storage import known_templates
from tests.support.material.submissions import (
    ADMIN,
    NOW,
    SITE,
    Desk,
    field,
    refusal,
    template,
    two_signers,
)
from tests.support.present import present

# ---------------------------------------------------------------- lists


def ids(page: Any) -> tuple[list[int], int | None, int | None, int]:
    return [one.id for one in page.data], page.pagination.prev, page.pagination.next, page.pagination.count


def test_pages(desk: Desk) -> None:
    made = [desk.create().id for _ in range(7)]

    def page(**more: Any) -> Any:
        return ids(desk.database.read(queries.submissions, rpc.ListSubmissions(actor=ADMIN, **more), SITE, desk.now))

    assert page(limit=3) == (made[:3], made[0], made[2], 3)
    assert page(limit=3, after=made[2]) == (made[3:6], made[3], made[5], 3)
    assert page(limit=3, after=made[5]) == (made[6:], made[6], made[6], 1)
    assert page(limit=7) == (made, made[0], made[6], 7)
    assert page(limit=3, before=made[5]) == (made[2:5], made[2], made[4], 3)
    assert page(limit=3, before=made[2]) == (made[:2], made[0], made[1], 2)
    assert page(limit=3, before=made[6] + 100) == (made[4:], made[4], made[6], 3)
    assert page(limit=3, after=made[0], before=made[3]) == (made[1:3], made[1], made[2], 2)
    assert page(after=made[6]) == ([], None, None, 0)
    assert page(limit=10_000)[3] == 7
    assert page(before=10**30) == page()
    for absurd in ({"after": 10**30}, {"before": -(10**30)}, {"template_id": 10**30}):
        assert page(**absurd) == ([], None, None, 0)


def test_filters(desk: Desk) -> None:
    sales = template(field(), folder_name="Sales")
    deal = desk.create(sales, {"name": "Ödön Ünal", "email": "odon@example.com"}, name="100% Deal_A")
    other = desk.create(template(field(), folder_name="Sales"), {"phone": "+14155550123", "email": None})
    archived = desk.create()
    desk.remove(archived.id)
    done = desk.signed()
    desk.seal(done.id)
    declined = desk.create()
    desk.decline(declined.submitters[0].slug)
    everything = [deal.id, other.id, archived.id, done.id, declined.id]

    assert desk.listed() == everything
    assert desk.listed(archived=True) == [archived.id]
    assert desk.listed(archived=False) == [one for one in everything if one != archived.id]
    assert desk.listed(template_id=sales.id) == [deal.id]
    assert desk.listed(template_folder="Sales") == [deal.id, other.id]
    assert desk.listed(slug=other.slug) == [other.id]
    assert desk.listed(status="pending") == [deal.id, other.id, archived.id]
    assert desk.listed(status="completed") == [done.id]
    assert desk.listed(status="declined") == [declined.id]
    assert desk.listed(q="ÖDÖN ü") == [deal.id]
    assert desk.listed(q="415555") == [other.id]
    assert desk.listed(q="deal_a") == [deal.id]
    assert desk.listed(q="100%") == [deal.id]
    assert desk.listed(q="%") == [deal.id]
    assert desk.listed(q="_") == [deal.id]
    assert desk.listed(q="\\") == []
    assert desk.listed(q="x" * 10_000) == []
    assert desk.listed(q=" ") == everything
    assert desk.listed(q="signer", status="completed", archived=False) == [done.id]


def test_submitter_lists(desk: Desk) -> None:
    first = desk.create(two_signers(), {"external_id": "crm-1", "name": "Ann"}, {})
    desk.complete(first.submitters[0].slug)
    desk.now += timedelta(hours=1)
    second = desk.signed()

    def listed(**filters: Any) -> list[int]:
        query = rpc.ListSubmitters(actor=ADMIN, **filters)
        return [one.id for one in desk.database.read(queries.submitters, query, SITE, desk.now).data]

    every = [one.id for one in (*first.submitters, *second.submitters)]
    assert listed() == every
    assert listed(submission_id=second.id) == every[2:]
    assert listed(template_id=present(first.template).id) == every[:2]
    assert listed(external_id="crm-1") == every[:1]
    assert listed(slug=first.submitters[1].slug) == every[1:2]
    assert listed(q="ann") == every[:1]
    assert listed(q="%") == []
    assert listed(completed_before=NOW) == every[:1]
    assert listed(completed_after=NOW + timedelta(minutes=1)) == every[2:]
    assert listed(completed_after=NOW, completed_before=NOW + timedelta(hours=1)) == [every[0], *every[2:]]
    assert listed(completed_after=NOW.replace(tzinfo=None), limit=1) == every[:1]
    query = rpc.ListSubmitters(actor=ADMIN, external_id="crm-1", include="fields")
    (one,) = desk.database.read(queries.submitters, query, SITE, desk.now).data
    assert present(one.template).id == present(first.template).id
    assert one.values == {"Name": "something"}
    assert [line.event_type for line in present(one.submission_events)] == [
        "create_submission",
        "invite_party",
        "start_form",
        "complete_form",
    ]
    assert [each.name for each in present(one.fields)] == ["Name"]


def test_a_list_takes_two_queries_whatever_its_length(desk: Desk) -> None:
    for _ in range(30):
        desk.create()
    statements: list[str] = []
    sa.event.listen(
        desk.database.engine, "before_cursor_execute", lambda _c, _k, statement, *_: statements.append(statement)
    )
    query = rpc.ListSubmissions(actor=ADMIN, limit=30)
    assert len(desk.database.read(queries.submissions, query, SITE, desk.now).data) == 30
    assert len([one for one in statements if one.startswith("SELECT")]) == 2


# ---------------------------------------------------------------- who may do what


EDITOR = Actor(user_id=2, role=Role.EDITOR, email="ed@example.com")
VIEWER = Actor(user_id=3, role=Role.VIEWER, email="vi@example.com")


@pytest.mark.parametrize(
    ("actor", "sees", "changes"),
    [
        (ADMIN, {"own", "shared", "private", "one-off of theirs", "one-off"}, True),
        (EDITOR, {"own", "one-off of theirs"}, True),
        (VIEWER, {"shared"}, False),
    ],
)
def test_roles(desk: Desk, actor: Actor, sees: set[str], changes: bool) -> None:
    made = {
        "own": desk.create(two_signers(author_id=EDITOR.user_id, shared_link=False)),
        "shared": desk.create(two_signers(author_id=ADMIN.user_id, shared_link=True)),
        "private": desk.create(two_signers(author_id=ADMIN.user_id, shared_link=False)),
        "one-off of theirs": desk.create(),
        "one-off": desk.create(),
    }
    one_off = "UPDATE submissions SET template_id = NULL, created_by_id = {} WHERE id = {}"
    for name, creator in (("one-off of theirs", EDITOR.user_id), ("one-off", ADMIN.user_id)):
        statement = sa.text(one_off.format(creator, made[name].id))
        desk.database.write(Session.execute, statement)

    assert desk.listed(actor) == [one.id for name, one in made.items() if name in sees]
    for name, one in made.items():
        works: list[Callable[..., Any]] = [
            lambda one=one: desk.get(one.id, actor),
            lambda one=one: desk.database.read(
                queries.submitter, rpc.GetSubmitter(actor=actor, id=one.submitters[0].id), SITE, desk.now
            ),
            lambda one=one: desk.update(one.id, actor, name="changed"),
            lambda one=one: desk.update_submitter(one.submitters[0].id, actor, name="Changed"),
            lambda one=one: desk.remove(one.id, actor),
            lambda one=one: desk.remove(one.id, actor, permanently=True),
        ]
        for number, work in enumerate(works):
            if name not in sees:
                assert refusal(work).code == "not_found", (name, number)
            elif number >= 2 and not changes:
                assert refusal(work).code == "forbidden", (name, number)
            else:
                work()
    if not changes:
        assert desk.get(made["shared"].id).name is None


def test_submissions_follow_the_sharing_of_their_template(desk: Desk) -> None:
    made = desk.create(two_signers(shared_link=True))
    assert desk.listed(VIEWER) == [made.id]

    def template_says(shared: bool, hours: int) -> None:
        news = known_templates.TemplateNews(
            id=present(made.template).id,
            name="Renamed",
            folder_name="Moved",
            shared_link=shared,
            author_id=1,
            created_at=NOW,
            updated_at=NOW + timedelta(hours=hours),
        )
        desk.database.write(known_templates.accept, uuid7(), news)

    template_says(shared=False, hours=2)
    template_says(shared=True, hours=1)
    assert desk.listed(VIEWER) == []
    found = desk.get(made.id)
    assert (present(found.template).name, present(found.template).folder_name) == ("Renamed", "Moved")
    assert desk.listed(template_folder="Moved") == [made.id]
    stale = two_signers(id=present(made.template).id, shared_link=True)
    desk.create(stale)
    assert desk.listed(VIEWER) == []


def test_the_first_submission_follows_a_template_that_was_moved_while_it_was_made(desk: Desk) -> None:
    """It is planned of the template as it was; news that comes before it is written down counts."""
    before = two_signers(folder_name="Leases")
    news = before.model_dump() | {"folder_name": "Elsewhere", "updated_at": before.updated_at + timedelta(hours=1)}
    desk.database.write(known_templates.accept, uuid7(), known_templates.TemplateNews.model_validate(news))
    made = desk.create(before)
    assert present(desk.get(made.id).template).folder_name == "Elsewhere"
    of_folder = ADMIN.model_copy(update={"folders": ["Leases"]})
    assert desk.listed(of_folder) == []
    assert refusal(lambda: desk.get(made.id, of_folder)).code == "not_found"


def test_late_news_of_a_template_of_test_mode_is_not_left_of_it(desk: Desk) -> None:
    """That was wiped: nothing is made from it, and nothing will be."""
    wiped = two_signers(test=True).model_dump()
    desk.database.write(known_templates.accept, uuid7(), known_templates.TemplateNews.model_validate(wiped))
    assert desk.database.read(lambda session: session.get(TemplateRow, wiped["id"])) is None
