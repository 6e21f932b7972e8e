"""The start screen is there before any script: what it costs, what it says, and that nothing pressed early is lost."""

from typing import Any

import pytest
from playwright.sync_api import Route, ViewportSize, expect

from tests.browser.conftest import DESKTOP, PHONE, Chromium, OpenPage, Watch
from tests.browser.forms import field, invite, one_signer, template
from tests.browser.signer import Signer
from tests.load.page import slug
from tests.support.judges.pages.slow_phone import SLOW_3G, SLOWER, cost
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser

BYTES, REQUESTS, SHIFT, PICTURE = 120_000, 6, 0.02, 60_000


@pytest.mark.parametrize(("viewport", "network"), [(PHONE, SLOW_3G), (DESKTOP, None)])
def test_what_it_costs_until_the_form_answers(
    suite: RunningSuite, chromium: Chromium, viewport: ViewportSize, network: dict[str, float] | None
) -> None:
    """Bytes and requests, not seconds: those are printed by ``python -m tests.load page``. Chromium judges what moved. The first page
    comes beside the form: on a phone both are within the budget; a laptop gets a larger picture, and whether it is there before
    the form answers is chance."""
    context = chromium.new_context(viewport=viewport, is_mobile=viewport is PHONE, has_touch=viewport is PHONE)
    spent = cost(context, f"{suite.base_url}/s/{slug(suite, 1)}", network=network, slower=SLOWER if network else 1)
    chromium.close(context)
    form = [request for request in spent.until(spent.alive) if request not in spent.pictures]
    needed = form + (spent.pictures if viewport is PHONE else [])
    assert [request.url.rpartition("/")[2] for request in needed[1:3]] == ["signing.min.css", "main.min.js"]
    assert all(request.size for request in needed)
    assert sum(request.size for request in needed) <= BYTES
    assert len(needed) <= REQUESTS
    assert spent.start <= spent.alive
    assert spent.shift < SHIFT
    # The first page sets out before there is a script, and is not fetched again in another width when there is one.
    script = next(request for request in spent.requests if request.url.endswith("main.min.js"))
    (picture,) = spent.pictures
    assert picture.began < script.ended
    assert viewport is DESKTOP or picture.size < PICTURE


def test_start_that_is_pressed_before_there_is_a_script_is_remembered(suite: RunningSuite, open_page: OpenPage) -> None:
    page = open_page("/robots.txt")
    held: list[Route] = []
    page.route("**/*.js", lambda route: held.append(route))
    page.goto(suite.base_url + one_signer(suite, field("Name"), field("City", line=1)), wait_until="commit")
    page.get_by_role("link", name="Start", exact=True).click()
    expect(page.get_by_text("the form is on its way")).to_be_visible()
    assert page.get_by_role("button", name="Start").count() == 0
    for route in held:
        route.continue_()
    expect(Signer(page).field("Name")).to_be_focused()
    assert page.url.endswith(page.evaluate("location.pathname"))  # no longer "#start": a reload begins as ever
    page.unroute("**/*.js")
    page.reload()
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_visible()


def test_who_has_the_keyboard_on_start_keeps_it_there(suite: RunningSuite, open_page: OpenPage) -> None:
    page = open_page("/robots.txt")
    held: list[Route] = []
    page.route("**/*.js", lambda route: held.append(route))
    page.goto(suite.base_url + one_signer(suite, field("Name")), wait_until="commit")
    page.get_by_role("link", name="Start", exact=True).focus()
    for route in held:
        route.continue_()
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_focused()
    page.keyboard.press("Space")
    expect(Signer(page).field("Name")).to_be_focused()


def forms(suite: RunningSuite) -> dict[str, str]:
    """The paths of forms whose start screens say different things."""
    switch = field("Married", "checkbox", line=1)
    switch["uuid"] = "5f1c2b9e-6f0a-4d59-9d5c-0e6f6f2f7a11"
    hidden = field("Spouse", line=2, conditions=[{"field_uuid": switch["uuid"], "action": "checked"}])
    many = template(suite, field("Name"), switch, hidden, field("City", line=3))
    begun = {"values": {"Name": "Ann"}, "go_to_last": True}
    read_only = template(suite, field("Name", readonly=True, default_value="Ann"))
    return {
        "one field": one_signer(suite, field("Name")),
        "a hidden one": f"/s/{invite(suite, many)[0]['slug']}",
        "begun": f"/s/{invite(suite, many, submitter_0=begun)[0]['slug']}",
        "until": one_signer(suite, field("Name"), expire_at="2999-11-30T10:00:00Z"),
        "nothing to fill in": f"/s/{invite(suite, read_only)[0]['slug']}",
    }


def test_the_script_finds_nothing_to_correct(suite: RunningSuite, open_page: OpenPage, watch: Watch) -> None:
    """What the server says of the task, without a script, is what the script says. Times turn into the reader's own."""
    watch.expected.append("net::ERR_FAILED")
    said: dict[str, Any] = {}
    for name, path in forms(suite).items():
        page = open_page("/robots.txt")
        texts = []
        for scripts in (False, True):
            if scripts:
                page.unroute("**/*.js")
            else:
                page.route("**/*.js", lambda route: route.abort())
            page.goto(suite.base_url + path)
            if scripts:
                expect(page.locator(".sheet__picture").first).to_be_visible()
            texts.append(
                page.locator("#panel")
                .inner_text()
                .replace("30 November 2999, 10:00 UTC", "30 November 2999 at 11:00 CET")
            )
        assert texts[0] == texts[1], name
        said[name] = texts[1]
    assert "There is one field for you." in said["one field"]
    assert "There are 3 fields for you." in said["a hidden one"]
    assert "What was filled in before is kept." in said["begun"]
    assert "Please sign by 30 November 2999 at 11:00 CET" in said["until"]
    assert "asks you to read and confirm" in said["nothing to fill in"]
