"""On a small phone: nothing is wider than the page, nothing that one needs lies behind the buttons, nothing moves under the finger."""

import pytest
import requests
from playwright.sync_api import Locator, Page, ViewportSize, expect

from tests.browser.conftest import OpenPage, Watch, complaints
from tests.browser.forms import field, invite, one_signer, template
from tests.browser.signer import Signer
from tests.support.material.outcomes import mails_to
from tests.support.services.suite import RunningSuite, wait_until

pytestmark = pytest.mark.browser

SMALL: ViewportSize = {"width": 360, "height": 640}
KEYBOARD_OPEN: ViewportSize = {"width": SMALL["width"], "height": 340}
WORD = "Donaudampfschifffahrtsgesellschaftskapitän"
WIDER = """() => [document.documentElement, ...document.querySelectorAll(".panel__screen, .card, .mails__page, .mails__list")]
    .filter((each) => each.scrollWidth > Math.min(each.clientWidth, innerWidth))
    .map((each) => each.outerHTML.slice(0, 200))"""


def above_the_buttons(page: Page, what: Locator) -> bool:
    """Whether it comes to be seen whole: below the top of the form, above its buttons."""

    def seen() -> bool:
        box, screen, buttons = (
            edges(each) for each in (what, page.locator(".panel__screen"), page.locator(".buttons"))
        )
        return screen["top"] - 1 <= box["top"] and box["bottom"] <= buttons["top"] + 1

    return wait_until(seen, what="what is looked for to be seen whole")


def edges(what: Locator) -> dict[str, float]:
    return what.evaluate("node => node.getBoundingClientRect().toJSON()")  # type: ignore[no-any-return]


def test_a_long_word_widens_no_page(suite: RunningSuite, open_page: OpenPage) -> None:
    made = template(suite, field("Name", title=WORD), name=f"Contract of the {WORD}")
    suite.api("PUT", f"/templates/{made}", {"shared_link": True})
    person = {"name": f"Anna {WORD}", "email": f"a.captain.with.an.address.of.some.length@{WORD[:-1]}n.example.com"}
    (row,) = invite(suite, made, submitter_0=person, send_email=True)
    page = open_page(f"/s/{row['slug']}", SMALL)
    signer = Signer(page)
    assert complaints(page, WIDER) == []
    signer.start()
    assert complaints(page, WIDER) == []
    signer.fill(WORD, WORD)
    expect(page.get_by_role("link", name="Change")).to_be_in_viewport()
    assert complaints(page, WIDER) == []
    signer.complete()
    assert complaints(page, WIDER) == []
    submission, shared = (
        suite.api("GET", f"/submissions/{row['submission_id']}"),
        suite.api("GET", f"/templates/{made}"),
    )
    mailbox = person["email"].partition("@")[0]  # its domain is written in ASCII
    wait_until(lambda: mails_to(suite, mailbox), what="the mail")  # the list of mails does not grow by itself
    for path in (f"/e/{submission['slug']}", f"/d/{shared['slug']}", "/dev/mail"):
        page.goto(suite.base_url + path)
        assert complaints(page, WIDER) == [], path
    page.locator("a.mails__item", has_text="Contract").first.click()
    expect(page.get_by_role("heading", name="As text")).to_be_visible()
    assert complaints(page, WIDER) == []


def test_what_is_asked_for_and_what_is_wrong_with_it_are_seen(suite: RunningSuite, open_page: OpenPage) -> None:
    long = " ".join(["As it stands in the passport that you showed us."] * 12)
    page = open_page(one_signer(suite, field("Name", description=long), field("City", line=2)), SMALL)
    signer = Signer(page)
    signer.start()
    expect(signer.field("Name")).to_be_focused()
    assert above_the_buttons(page, signer.field("Name"))
    signer.next()
    signer.sees_problem("Please fill this in.")
    assert above_the_buttons(page, page.get_by_role("alert"))
    page.set_viewport_size(KEYBOARD_OPEN)
    expect(page.locator("html")).to_have_class("low")
    signer.next()
    for seen in (page.get_by_role("alert"), signer.field("Name")):
        assert above_the_buttons(page, seen)
    page.set_viewport_size(SMALL)
    expect(page.locator("html")).not_to_have_class("low")
    signer.press("Decline")
    reason = page.get_by_label("Reason")
    page.set_viewport_size(KEYBOARD_OPEN)
    reason.scroll_into_view_if_needed()
    reason.focus()
    wait_until(
        lambda: edges(reason)["bottom"] <= edges(page.locator(".dialog .buttons"))["top"], what="the reason to be seen"
    )


def test_a_reason_for_signing_that_is_missing_is_seen(suite: RunningSuite, open_page: OpenPage) -> None:
    asked = field("Signature", "signature", height=0.06, preferences={"reasons": ["I am the author", "I have read it"]})
    page = open_page(one_signer(suite, asked, field("Name", line=5)), SMALL)
    signer = Signer(page)
    signer.start()
    signer.draw("Signature")
    signer.next()
    signer.sees_problem("Please choose why you sign.")
    expect(page.locator(".preview__picture")).to_have_js_property("complete", True)
    for seen in (page.get_by_role("alert"), signer.field("Reason for signing")):
        assert above_the_buttons(page, seen)


def test_the_pad_of_the_last_field_stays_where_it_is_while_one_draws(
    suite: RunningSuite, open_page: OpenPage, watch: Watch
) -> None:
    watch.expected.append("503")
    page = open_page(one_signer(suite, field("Signature", "signature", height=0.06), name="Short"), SMALL)
    signer = Signer(page)
    signer.start()
    pad, complete = signer.field("Signature"), page.get_by_role("button", name="Complete", exact=True)
    expect(complete).to_be_hidden()
    signer.next()
    signer.sees_problem("Please sign here.")  # its room stays, too
    pad.scroll_into_view_if_needed()
    before = pad.bounding_box()
    signer.draw("Signature")
    expect(complete).to_be_visible()
    assert pad.bounding_box() == before
    signer.press("Clear")
    expect(complete).to_be_hidden()
    assert pad.bounding_box() == before
    signer.type_signature("Signature", "Anna")
    expect(complete).to_be_visible()
    signer.press("Upload")  # nothing is chosen yet
    expect(complete).to_be_hidden()
    signer.press("Draw")
    signer.draw("Signature")
    page.route(
        "**/attachments", lambda route: route.fulfill(status=503, json={"error": "later", "code": "unavailable"})
    )
    signer.next()
    signer.sees_problem("Your signature could not be sent.")
    assert above_the_buttons(page, page.get_by_role("alert"))


def test_a_day_with_a_time_fits_a_zoomed_form_and_the_header_covers_nothing(
    suite: RunningSuite, open_page: OpenPage
) -> None:
    moment = field("When", "date", preferences={"format": "DD.MM.YYYY HH:mm"})
    path = one_signer(suite, moment, name=" ".join(["A name of several lines"] * 9))
    page = open_page(path, {"width": 640, "height": 400})
    Signer(page).start()
    assert complaints(page, WIDER) == []
    page.set_viewport_size({"width": 1280, "height": 800})
    page.mouse.wheel(0, 2_000)
    panel, top = page.locator(".panel"), page.locator(".top")
    wait_until(lambda: edges(panel)["top"] >= edges(top)["bottom"], what="the form to be below the header")


def test_who_has_no_address_is_promised_no_mail(suite: RunningSuite, open_page: OpenPage) -> None:
    fields = [field("A", role="First"), field("B", role="Second", line=2)]
    by_phone = [{"role": role, "phone": "+442079460018"} for role in ("First", "Second")]
    first, second = suite.api("POST", "/submissions", {"template_id": template(suite, *fields), "submitters": by_phone})
    page = open_page(f"/s/{second['slug']}", SMALL)
    expect(page.get_by_role("heading", level=1)).to_have_text("It is not your turn yet")
    assert "e-mail" not in page.inner_text("main")
    signer = Signer(open_page(f"/s/{first['slug']}", SMALL))
    signer.start()
    signer.fill("A", "x")
    signer.complete()
    assert "e-mail" not in signer.page.inner_text("main")
    polled = requests.get(f"{suite.base_url}/s/{first['slug']}", timeout=120).text
    assert 'data-others="done.others_without_email"' in polled
