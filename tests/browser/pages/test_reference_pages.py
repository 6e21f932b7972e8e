"""The reference at /reference, read in a browser: pages without a script, on a desk, in the dark and on a phone."""

import re
from typing import Literal

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.conftest import DESKTOP, PHONE, OpenPage
from tests.support.judges.pages.accessibility import axe, looks
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser

Scheme = Literal["light", "dark"]


LOOKS = pytest.mark.parametrize(
    ("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["desktop-light", "phone-dark"]
)
"""Each has the colours and the places that the others have, as on the other pages."""


def judged(page: Page, scheme: Scheme, *rules: str) -> list[str]:
    """What the judges have against a page in these colours."""
    page.emulate_media(color_scheme=scheme)
    page.evaluate("Promise.all(document.getAnimations().map((one) => one.finished))")
    return [*axe(page, *rules), *looks(page)]


@LOOKS
def test_judges_have_nothing_against_its_pages(
    suite: RunningSuite, open_page: OpenPage, size: ViewportSize, scheme: Scheme
) -> None:
    page = open_page("/guides", size)
    for path, title in (("/reference", "Countersign API"), ("/reference/submitters", "Submitters"),
                        ("/guides", "Guides"), ("/guides/keys", "API keys"), ("/guides/receiving", None)):  # fmt: skip
        page.goto(suite.base_url + path)
        expect(page.get_by_role("heading", level=1)).to_have_text(title or re.compile("."))
        assert judged(page, scheme) == [], path
        if path == "/guides/keys":  # what is there on one size only is seen in both colours
            assert judged(page, "dark" if scheme == "light" else "light", "color-contrast") == []
        wide = page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert wide, "tables and code scroll within themselves"


def test_a_reader_finds_a_call_and_its_sample(open_page: OpenPage) -> None:
    page = open_page("/reference", DESKTOP)
    page.get_by_role("main").get_by_role("link", name="List submitters").click()
    expect(page).to_have_url(re.compile("/reference/submitters#list-submitters$"))
    expect(page.get_by_role("heading", name="List submitters")).to_be_in_viewport()
    contents = page.get_by_role("navigation", name="Contents")
    expect(contents.get_by_role("link", name="Submitters", exact=True)).to_have_attribute("aria-current", "page")
    sample = page.locator("details").first
    expect(sample).to_have_attribute("open", "")
    python = page.get_by_text("Python", exact=True).first
    python.click()
    expect(page.get_by_text("requests.get(").first).to_be_visible()
    assert sample.get_attribute("open") is None, "one sample of a call is open at a time"
    contents.get_by_role("link", name="Change a submitter").click()
    expect(page.get_by_role("heading", name="Change a submitter")).to_be_in_viewport()
    page.get_by_role("link", name="Markdown").click()
    expect(page.locator("body")).to_contain_text("## List submitters")


@LOOKS
def test_a_developer_finds_them_from_the_first_page(open_page: OpenPage, size: ViewportSize, scheme: Scheme) -> None:
    page = open_page("/", size)
    links = page.get_by_role("navigation", name="API").get_by_role("link")
    expect(links).to_have_text(["Reference", "Guides", "llms.txt"])
    for number, (address, read) in enumerate(
        (("/reference", "Countersign API"), ("/guides", "Guides"), ("/llms.txt", "# Countersign"))
    ):
        links.nth(number).click()
        expect(page).to_have_url(re.compile(f"{address}$"))
        expect(page.locator("body")).to_contain_text(read)
        page.go_back()
    for tag in ("de", "ar", "zh-Hans"):
        page.locator("#language").select_option(tag)
        expect(page.locator("html")).to_have_attribute("lang", tag)
        expect(links).to_have_count(3)
        assert judged(page, scheme) == [], tag
