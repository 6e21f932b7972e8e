"""What is computed while one fills in the form: seen at once, said calmly, sealed; and what is asked for only sometimes."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.forms import field, invite, template
from tests.browser.signer import Signer
from tests.e2e.sending.test_one_off_submissions import completed
from tests.support.judges.pages.accessibility import axe, looks
from tests.support.material.outcomes import fetched, pdf_text
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser

FIELDS = [
    field("Unit price", "number", role="Seller", line=0),
    field("Quantity", "number", line=1),
    field(
        "Total", "number", line=2, preferences={"format": "usd", "formula": "round([[Unit price]] * [[Quantity]], 2)"}
    ),
    field(
        "Limit",
        "number",
        preferences={"formula": "[[Total]]"},
        validation={"max": 500, "message": "At most $500, please."},
    )
    | {"areas": []},
    field("Approved by", line=3, preferences={"condition": "[[Total]] > 100", "required_if": "[[Total]] > 300"}),
    field("Ordered", "date", line=4, required=False),
    field("Due", "date", line=5, preferences={"format": "YYYY-MM-DD", "formula": "add_days([[Ordered]], 30)"}),
]


def test_the_total_of_an_order(suite: RunningSuite, open_page: OpenPage) -> None:
    price = {"values": {"Unit price": 19.99}, "completed": True}
    order = invite(suite, template(suite, *FIELDS), "Seller", "Signer", submitter_0=price)[1]
    page = open_page(f"/s/{order['slug']}")
    signer = Signer(page)
    signer.start()
    total, words = page.locator("output").first, page.locator(".box--number .box__text")
    expect(total).to_have_text("$0.00")
    expect(page.get_by_text("1 of 2", exact=False).first).to_be_visible()
    signer.field("Quantity").fill("6")
    expect(total).to_have_text("$119.94")
    expect(total).to_have_attribute("aria-live", "polite")
    expect(words.get_by_text("$119.94")).to_be_attached()
    expect(page.locator(".progress__text")).to_contain_text("of 3")
    assert [*axe(page), *looks(page)] == []
    signer.next()
    expect(page.get_by_text("You may leave this empty.")).to_be_visible()
    signer.press("Back")
    signer.field("Quantity").fill("20")
    signer.next()
    expect(signer.field("Approved by")).to_be_focused()
    expect(page.get_by_text("You may leave this empty.")).to_have_count(0)
    signer.next()
    signer.sees_problem("Please fill this in.")
    signer.fill("Approved by", "Bea Boss")
    signer.field("Ordered").fill("2026-01-31")
    expect(page.locator("output")).to_have_text("2026-03-02")
    signer.press("Complete")
    signer.is_done()

    found = completed(suite, order["submission_id"])
    values = {one["role"]: one["values"] for one in found["submitters"]}["Signer"]
    assert values == {
        "Quantity": 20, "Total": 399.8, "Limit": 399.8, "Approved by": "Bea Boss", "Ordered": "2026-01-31", "Due": "2026-03-02",
    }  # fmt: skip
    paper = pdf_text(fetched(found["documents"][0]["url"]))
    assert "$399.80" in paper
    assert "2026-03-02" in paper


def test_what_was_computed_may_not_be(suite: RunningSuite, open_page: OpenPage) -> None:
    """The rule of a computed field is said where it is broken, and at the end all answers are shown to choose from."""
    price = {"values": {"Unit price": 100}, "completed": True}
    order = invite(suite, template(suite, *FIELDS), "Seller", "Signer", submitter_0=price)[1]
    page = open_page(f"/s/{order['slug']}")
    signer = Signer(page)
    signer.start()
    signer.field("Quantity").fill("6")
    expect(page.locator(".computed .problem").filter(has_text="At most $500, please.")).to_be_visible()
    assert [*axe(page), *looks(page)] == []
    signer.next()
    signer.fill("Approved by", "Bea Boss")
    signer.next()
    expect(page.locator("[data-computed] dd").first).to_contain_text("$600.00")
    assert [*axe(page), *looks(page)] == []
    signer.press("Complete")
    expect(page.locator(".panel__message")).to_have_text("Limit: At most $500, please.")
    page.get_by_role("link", name="Change Quantity").click()
    signer.field("Quantity").fill("4")
    for _ in range(3):
        signer.next()
    signer.complete()
    assert {one["role"]: one["values"] for one in completed(suite, order["submission_id"])["submitters"]}["Signer"][
        "Total"
    ] == 400
