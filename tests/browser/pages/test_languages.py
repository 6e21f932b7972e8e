"""The language of a page: chosen on it, kept, and what was typed is still there."""

import re

import pytest
from playwright.sync_api import ViewportSize, expect

from contracts.languages.choosing import PSEUDO
from services.gateway.pages.texts import offered
from tests.browser.conftest import DESKTOP, PHONE, OpenPage, Watch
from tests.browser.forms import field, invite, template
from tests.browser.signer import Signer
from tests.browser.tour import FILLED_IN, tour_of
from tests.support.judges.words.marks import unmarked
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP])
def test_a_signer_chooses_a_language_and_loses_nothing(
    suite: RunningSuite, open_page: OpenPage, viewport: ViewportSize
) -> None:
    (row,) = invite(suite, template(suite, field("Name")))
    page = open_page(f"/s/{row['slug']}", viewport)
    choice = page.get_by_label("Language")
    expect(choice).to_have_value("en")
    signer = Signer(page)
    signer.start()
    signer.field("Name").fill("Ann")
    choice.evaluate("(select) => select.add(new Option('Pseudo', 'qps'))")  # offered to nobody
    with page.expect_navigation():
        choice.select_option("qps")
    expect(page.locator("html")).to_have_attribute("lang", "qps")
    page.get_by_role("button", name="⟦Start⟧").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Ann")
    expect(page.locator("#saving")).not_to_have_attribute("data-status", re.compile("saving|unsaved"))  # or it asks
    page.goto(f"{suite.base_url}/verify")
    expect(page.locator("html")).to_have_attribute("lang", "qps")
    elsewhere = open_page(f"/s/{row['slug']}", viewport)  # another browser: the party's language is stored
    expect(elsewhere.locator("html")).to_have_attribute("lang", "qps")


@pytest.mark.timeout(900)
def test_nothing_of_ours_is_outside_of_the_files(suite: RunningSuite, open_page: OpenPage, watch: Watch) -> None:
    """The pages in the pseudo-language: what they say and what they tell a screen reader is marked, or somebody has filled it in."""
    watch.expected += ["401", "404", "410", "503"]  # a wrong key; a service that is busy: the page asks again
    known = [
        *FILLED_IN,
        "Countersign",
        "API",
        "llms.txt",
        "mm/dd/yyyy",
        "dd/mm/yyyy",
        f"{PSEUDO}@example.com",
        "Signer",
    ]
    known += [name for _, name in offered()]  # each language is named in itself
    page = open_page("/verify", DESKTOP)
    found = {}
    tour = tour_of(suite)
    for state in tour.walk(page, PSEUDO):
        said = page.locator("body").inner_text() + "\n" + "\n".join(page.evaluate(SAID_TO_SCREEN_READERS))
        said = re.sub(MADE_BY_CHANCE_AND_TIMES, "", said)
        found[state] = unmarked(said, known + tour.readers)
    assert {state: words for state, words in found.items() if words} == {}
    assert len(found) > 50


MADE_BY_CHANCE_AND_TIMES = (
    r"\b[0-9a-f]{64}\b|https?://\S+|(\w{4}-){3,}\w{4}|(\d+ )?[A-Z]\w+( \d+,)? \d{4},?( at)? [\d:]+( [AP]M)? [A-Z]+"
)
"""The pseudo-language writes times as English does."""

SAID_TO_SCREEN_READERS = """() => [...document.querySelectorAll("[aria-label], [title], [placeholder], [alt]")].flatMap(
  (one) => ["aria-label", "title", "placeholder", "alt"].map((name) => one.getAttribute(name) ?? "")
)"""
