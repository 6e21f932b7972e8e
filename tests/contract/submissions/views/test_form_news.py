"""What an open signing page is told of what happens elsewhere, on SQLite and PostgreSQL."""

import contextlib
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.rpc import submissions as rpc
from services.submissions.views import form_news
from tests.support.material.submissions import SITE, Desk, Slug, field, refusal, template


def ask(desk: Desk, slug: Slug, known: str | None = None, **more: Any) -> rpc.form.FormNews:
    query = rpc.form.WatchForm(slug=slug, known=known, **more)
    return desk.database.read(form_news.news, query, SITE, desk.now)


def test_who_knows_the_version_is_told_nothing_more(desk: Desk) -> None:
    slug = desk.create(template(field(uuid="name")), {}).submitters[0].slug
    told = ask(desk, slug)
    assert (told.state, told.submission_name, told.values) == ("open", "Agreement", {})
    assert told.shown == desk.form(slug).shown
    again = ask(desk, slug, told.version)
    assert again == rpc.form.FormNews(version=told.version, state="open")
    desk.save(slug, {"name": "Ann"})
    later = ask(desk, slug, told.version)
    assert later.version != told.version
    assert later.values == {"name": "Ann"}


def test_what_the_sender_changes_is_named(desk: Desk) -> None:
    found = template(field(name="Amount", uuid="amount", readonly=True, default_value="100"), field(uuid="name"))
    made = desk.create(found, {})
    slug = made.submitters[0].slug
    shown = desk.form(slug).shown
    desk.view(slug, shown=shown)
    assert ask(desk, slug, shown=shown).shown == shown
    overrides = [rpc.api.FieldOverride(name="Amount", readonly=True, default_value="200")]
    desk.update_submitter(made.submitters[0].id, fields=overrides)
    told = ask(desk, slug, shown=shown)
    assert told.shown == desk.form(slug).shown != shown
    assert {one["field"] for one in told.changes} == {"shown", "amount"}
    assert ask(desk, slug, shown=told.shown).changes == []


@pytest.mark.parametrize("ended", ["expired", "archived", "declined", "completed"])
def test_the_end_is_told_and_nothing_of_what_was_typed(desk: Desk, ended: str) -> None:
    found = template(field("First Party", uuid="name"), field("Second Party", uuid="other"))
    made = desk.create(found, {}, {}, order="random")
    first, second = made.submitters
    desk.save(first.slug, {"name": "Ann"})
    known = ask(desk, first.slug).version
    if ended == "expired":
        desk.update(made.id, expire_at=desk.now + timedelta(hours=1))
        known = ask(desk, first.slug).version
        desk.now += timedelta(hours=2)  # nobody has written anything down yet
    elif ended == "archived":
        desk.update(made.id, archived=True)
    elif ended == "declined":
        desk.decline(second.slug)
    else:
        desk.update_submitter(first.id, completed=True, values={"Name": "x"})
    told = ask(desk, first.slug, known)
    assert (told.state, told.values, told.shown) == (ended, {}, None)


def test_a_stranger_and_an_old_link_are_told_nothing(desk: Desk) -> None:
    made = desk.create(template(field()), {})
    assert refusal(lambda: ask(desk, "nothing")).code == "not_found"
    desk.update_submitter(made.submitters[0].id, email="other@example.com")
    refused = refusal(lambda: ask(desk, made.submitters[0].slug))
    assert refused.details == [{"field": "state", "reason": "replaced"}]


def test_before_the_code_nothing_but_the_state_is_told(desk: Desk) -> None:
    made = desk.create(template(field(uuid="name")), {"require_email_2fa": True, "values": {"Name": "secret"}})
    told = ask(desk, made.submitters[0].slug)
    assert told == rpc.form.FormNews(version=told.version, state="code")


@pytest.mark.parametrize("seed", range(6))
def test_the_same_version_always_means_the_same_news(desk: Desk, seed: int) -> None:
    """Whatever is done in whatever order: a page that is told that nothing has changed would be shown the same."""
    chance = random.Random(seed)
    found = template(
        field("First Party", "Name", uuid="name"),
        field("First Party", "Note", uuid="note", required=False),
        field("Second Party", "City", uuid="city"),
    )
    made = desk.create(found, {}, {}, order=chance.choice(["random", "preserved"]))
    first, second = made.submitters
    told: dict[tuple[int, str], rpc.form.FormNews] = {}
    number = iter(range(1_000))
    fixed = rpc.api.FieldOverride(name="Note", readonly=True, default_value="fixed")
    free = rpc.api.FieldOverride(name="Note", readonly=False)
    deeds: dict[str, Callable[[], object]] = {
        "save": lambda: desk.save(first.slug, {"name": f"Ann {next(number)}"}),
        "save second": lambda: desk.save(second.slug, {"city": f"Vienna {next(number)}"}),
        "view": lambda: desk.view(first.slug),
        "complete second": lambda: desk.complete(second.slug, {"city": "Graz"}),
        "complete": lambda: desk.complete(first.slug, {"name": "Ann"}),
        "decline": lambda: desk.decline(second.slug),
        "deadline": lambda: desk.update(made.id, expire_at=desk.now + timedelta(minutes=chance.randint(1, 300))),
        "no deadline": lambda: desk.update(made.id, expire_at=None),
        "name": lambda: desk.update(made.id, name=f"Deal {next(number)}"),
        "archive": lambda: desk.update(made.id, archived=True),
        "restore": lambda: desk.update(made.id, archived=False),
        "read-only": lambda: desk.update_submitter(first.id, fields=[fixed]),
        "changeable": lambda: desk.update_submitter(first.id, fields=[free]),
        "value": lambda: desk.update_submitter(first.id, values={"Name": f"Bob {next(number)}"}),
        "time": lambda: setattr(desk, "now", desk.now + timedelta(minutes=chance.randint(1, 120))),
    }
    final = {"complete", "complete second", "decline"}
    for _ in range(40):
        name = chance.choice([one for one in deeds if one not in final or chance.random() < 0.15])
        with contextlib.suppress(ServiceError):  # what is not possible just now changes nothing
            deeds[name]()
        for one in (first, second):
            now = ask(desk, one.slug)
            before = told.setdefault((one.id, now.version), now)
            assert now == before, name
            assert ask(desk, one.slug, now.version).values == {}
