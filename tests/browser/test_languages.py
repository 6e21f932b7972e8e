"""The language of a page: chosen on it, kept, and what was typed is still there."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import DESKTOP, PHONE, OpenPage
from tests.browser.forms import field, invite, template
from tests.browser.signer import Signer
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
