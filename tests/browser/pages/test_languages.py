"""The language of a page: chosen on it, kept, and what was typed is still there."""

import pytest
from playwright.sync_api import Locator, expect

from services.gateway.pages.texts import offered
from tests.browser.conftest import DESKTOP, PHONE, OpenPage, Watch
from tests.browser.forms import field, invite, template
from tests.browser.signer import Signer
from tests.support.judges.marks import unmarked
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP])
def test_a_signer_chooses_a_language_and_loses_nothing(
    suite: RunningSuite, open_page: OpenPage, viewport: dict[str, int]
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
    page.goto(f"{suite.base_url}/verify")
    expect(page.locator("html")).to_have_attribute("lang", "qps")
    elsewhere = open_page(f"/s/{row['slug']}", viewport)  # another browser: the party's language is stored
    expect(elsewhere.locator("html")).to_have_attribute("lang", "qps")


def test_nothing_of_ours_is_outside_of_the_files(suite: RunningSuite, open_page: OpenPage, watch: Watch) -> None:
    """The pages in the pseudo-language: what they say and what they tell a screen reader is marked, or somebody has filled it in."""
    fields = [field("Name"), field("Day", "date", line=2), field("Choice", "radio", line=4, options=["Aa", "Bb"])]
    first, second = invite(
        suite,
        template(suite, *fields, field("Other", role="Second", line=6)),
        "Signer",
        "Second",
        order="preserved",
        **{f"submitter_{number}": {"lang": "qps"} for number in (0, 1)},
    )
    known = [
        "Agreement between two parties",
        "Agreement",
        "Countersign",
        "Signer Person",
        "Second Person",
        "English",
        "Name",
        "Day",
    ]
    known += [name for _, name in offered()]  # each language is named in itself
    known += ["between", "two", "parties"]  # the document's own words lie behind its page, one by one
    known += ["agreement", "Choice", "Other", "Aa", "Bb", "Ana", "mm/dd/yyyy", "dd/mm/yyyy"]
    page = open_page(f"/s/{first['slug']}", PHONE)

    def look(*seen: Locator) -> None:
        for each in seen:
            expect(each).to_be_visible()
        said = page.locator("body").inner_text() + "\n" + "\n".join(page.evaluate(SAID_TO_SCREEN_READERS))
        assert unmarked(said, known) == [], page.url

    picture = page.locator(".sheet__picture").first
    look(page.get_by_role("button", name="⟦Start⟧"), picture)
    page.get_by_role("button", name="⟦Start⟧").click()
    look(page.get_by_label("Name", exact=True))
    page.get_by_role("button", name="⟦Next⟧").click()  # nothing was filled in
    look(page.get_by_role("alert").first)
    page.get_by_label("Name", exact=True).fill("Ana")
    page.get_by_role("button", name="⟦Next⟧").click()
    look(page.get_by_label("Day", exact=True))
    expect(page.locator("#saving")).to_have_text("⟦Saved⟧")  # else the page asks whether to leave
    watch.expected.append("404")
    page.context.add_cookies([{"name": "lang", "value": "qps", "url": suite.base_url}])
    for path in (f"/s/{second['slug']}", "/s/nothing", "/verify", "/"):
        page.goto(suite.base_url + path)
        look(page.get_by_role("heading", level=1))


SAID_TO_SCREEN_READERS = """() => [...document.querySelectorAll("[aria-label], [title], [placeholder], [alt]")].flatMap(
  (one) => ["aria-label", "title", "placeholder", "alt"].map((name) => one.getAttribute(name) ?? "")
)"""
