"""``/ops`` in a browser: an operator signs in, finds a mail that was given up and an event that is parked, and has both go on."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pika
import pytest
import sqlalchemy as sa
from playwright.sync_api import Page, expect

from contracts.runtime.bus import topology
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.tables import told
from deploy.suite import settings_of_var_dir
from services.notifications.models import MailRow
from tests.browser.conftest import DESKTOP, OpenPage, Watch
from tests.browser.forms import field, invite, template
from tests.browser.test_accessibility import NARROW, seen_as
from tests.e2e.calls.test_operating import done
from tests.support.judges.pages.accessibility import axe, looks
from tests.support.services.suite import RunningSuite, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

QUEUE = "evt-submissions-submission.created--webhooks.parked"


@pytest.fixture
def mails(suite: RunningSuite) -> Iterator[Database]:
    database = Database(settings_of_var_dir(suite.var_dir)["NOTIFICATIONS_DATABASE_URL"], pool_size=1)
    yield database
    database.dispose()


def given_up(suite: RunningSuite, mails: Database) -> int:
    """A mail that has been sent, as if its server had refused it."""
    (submitter,) = invite(suite, template(suite, field("Name")), send_email=True)
    mine = sa.select(MailRow).where(MailRow.submission_id == submitter["submission_id"], MailRow.state == "done")
    row: Any = wait_until(lambda: mails.read(lambda session: session.scalar(mine)), what="the invitation is sent")
    refused = {"state": "parked", "attempts": 9, "last_error": "550 no such mailbox: bob@mail.example"}
    refused["created_at"] = now() - timedelta(hours=2)
    change = sa.update(MailRow).where(MailRow.id == row.id).values(**refused)
    mails.write(lambda session: session.execute(change) and None)
    return int(row.id)


def parked(suite: RunningSuite) -> str:
    """An event that was taken, as if its handler had failed each time. Returns its id."""
    database = Database(settings_of_var_dir(suite.var_dir)["SUBMISSIONS_DATABASE_URL"], pool_size=1)
    newest = sa.select(told.c.event_id, told.c.body).where(told.c.type == "submission.created", told.c.body != "")
    event_id, body = database.read(
        lambda session: session.execute(newest.order_by(told.c.position.desc())).first() or ("", "")
    )
    database.dispose()
    headers = {topology.REASON_HEADER: "OperationalError: <no such table>", topology.FAILURES_HEADER: 7}
    with connected(suite) as channel:
        channel.basic_publish("", QUEUE, body, pika.BasicProperties(headers=headers, delivery_mode=2))
    return str(event_id)


class connected:  # noqa: N801 - as contextlib's own
    """A channel to the suite's broker."""

    def __init__(self, suite: RunningSuite) -> None:
        assert suite.broker is not None
        self._connection = pika.BlockingConnection(pika.URLParameters(suite.broker.amqp_url))

    def __enter__(self) -> Any:
        return self._connection.channel()

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def waiting(suite: RunningSuite) -> int:
    with connected(suite) as channel:
        return sum(
            channel.queue_declare(queue, passive=True).method.message_count
            for queue in (QUEUE, QUEUE.removesuffix(".parked"))
        )


def judged(page: Page, what: str) -> None:
    """Light on a large screen and dark on a small one: each has the colours and the places that the others have."""
    for size, scheme in ((DESKTOP, "light"), (NARROW, "dark")):
        seen_as(page, size, scheme)
        assert (axe(page), looks(page)) == ([], []), f"{what}, {size['width']}, {scheme}"
    seen_as(page, DESKTOP)


def test_an_operator_has_what_is_stuck_go_on(
    suite: RunningSuite, open_page: OpenPage, watch: Watch, mails: Database
) -> None:
    watch.expected += ["403", "404"]  # Chromium says so of pages that are answered like that
    key = done(suite, "keys", "--operator", "--name", "Night shift", "admin@example.com").strip()
    number, event_id = given_up(suite, mails), parked(suite)

    page = open_page("/ops")
    expect(page.get_by_role("heading", level=1)).not_to_have_text("How it stands")
    page.goto(f"{suite.base_url}/ops/sign-in")
    page.get_by_label("Operator’s key").fill("no key of anybody")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("This key opens nothing here")
    judged(page, "signing in")
    page.get_by_label("Operator’s key").fill(key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("How it stands")
    for service in ("gateway", "templates", "submissions", "rendering", "notifications", "webhooks"):
        expect(page.get_by_role("listitem").filter(has_text=re.compile(rf"^\s*{service} works"))).to_be_visible()
    assert page.content().count("background: ") == 6, "the builds of all background processes"
    judged(page, "how it stands")

    again = page.get_by_role("link", name=f"Try again mails {number}", exact=True)
    row = page.get_by_role("listitem").filter(has=again)
    expect(row).to_contain_text("550 no such mailbox: ***@mail.example")
    again.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Try again?")
    judged(page, "the question")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("status")).to_have_text(f"Try again, notifications: mails {number}: 1 due again.")
    sent = sa.select(MailRow.state).where(MailRow.id == number)
    wait_until(lambda: mails.read(lambda session: session.scalar(sent)) == "done", what="the mail is sent again")
    page.get_by_role("link", name="Look again").click()
    expect(again).to_have_count(0)

    page.get_by_role("link", name=f"Look at them {QUEUE}").click()
    expect(page.get_by_role("main")).to_contain_text("OperationalError: <no such table>")
    judged(page, "parked events")
    page.get_by_role("link", name=f"Handle again {QUEUE} {event_id}").click()
    page.get_by_role("button", name="Handle again").click()
    expect(page.get_by_role("status")).to_contain_text(f"{event_id}: 1 to be handled again.")
    wait_until(lambda: waiting(suite) == 0, what="the event is handled")

    page.goto(f"{suite.base_url}/ops/confirm?action=retry&service=notifications&work=mails&key=99999999")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("alert")).to_have_text("Row 99999999 of mails not found.")
    judged(page, "a refusal")
    page.get_by_role("link", name="Back to how it stands").click()
    acts = page.get_by_role("region", name="What operators did").get_by_role("listitem")
    expect(acts.first).to_contain_text("refused: Row 99999999 of mails not found")
    expect(acts.first).to_contain_text("Night shift")

    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Operator’s key")).to_be_visible()
    page.go_back()
    page.reload()
    expect(page.get_by_role("heading", name="How it stands")).to_have_count(0)
    log = "".join(path.read_text() for path in (suite.var_dir / "log").glob("gateway*.log"))
    lines = [json.loads(line) for line in log.splitlines() if '"operator.acted"' in line]
    told_of = [(line["action"], line["outcome"], line["address"], line["key_name"]) for line in lines]
    assert ("retry", "1 due again", "127.0.0.1", "Night shift") in told_of
    assert key not in log
