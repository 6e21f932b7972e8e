"""A signature is drawn on a telephone for the form that is open on a laptop: zbar as the telephone's camera. ``test_engines.py`` has
other browsers as the laptop."""

import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
from playwright.sync_api import Page, expect

from tests.browser.conftest import DESKTOP, PHONE, OpenPage
from tests.browser.forms import field, invite, template
from tests.browser.signer import Signer
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser


def link_on(picture: Path) -> str:
    """What a camera reads off the screen."""
    read = subprocess.run(["zbarimg", "-q", "--raw", str(picture)], capture_output=True, text=True, check=False)
    return read.stdout.strip()


def drawn_on(phone: Page) -> None:
    signer = Signer(phone)
    expect(phone.get_by_text("Ann Ray is signing “Lease” on another device.")).to_be_visible()
    expect(phone.get_by_role("button", name="Send the drawing")).to_be_disabled()
    signer.draw("Field to draw in")
    signer.press("Send the drawing")
    expect(phone.locator("#phone")).to_contain_text("Your drawing has arrived.")


def lease(suite: RunningSuite) -> dict[str, object]:
    made = template(suite, field("Signature", "signature", height=0.1), name="Lease")
    (signer,) = invite(suite, made, submitter_0={"name": "Ann Ray"}, send_email=False)
    return signer


def test_from_the_screen_to_the_phone_and_back(suite: RunningSuite, open_page: OpenPage, tmp_path: Path) -> None:
    """A telephone has no such button. The link is for the first telephone, and for one drawing; the picture of the screen that
    somebody else takes is worth nothing then."""
    one = lease(suite)
    laptop = open_page(f"/s/{one['slug']}", DESKTOP)
    signer = Signer(laptop)
    signer.start()
    signer.press("Draw on my phone")
    expect(laptop.get_by_role("img", name="QR code with the link for your phone")).to_be_visible()
    laptop.screenshot(path=tmp_path / "screen.png")
    link = link_on(tmp_path / "screen.png")
    assert link == laptop.get_by_role("dialog").get_by_role("link").get_attribute("href")
    path = urlsplit(link).path
    head = requests.get(link, timeout=30)  # a program that previews links
    assert (head.headers["Referrer-Policy"], head.headers["Cache-Control"]) == ("no-referrer", "no-store")
    assert "Lease" not in head.text
    phone = open_page(path, PHONE)
    expect(laptop.get_by_text("A phone is connected.")).to_be_visible()
    stranger = open_page(path, PHONE)
    expect(stranger.locator("#phone")).to_contain_text("Another phone has opened this link.")
    phone.reload()  # it is still the same telephone
    drawn_on(phone)
    expect(laptop.get_by_text("This was drawn on the phone.")).to_be_visible()
    signer.press("New link")  # it was not good enough
    expect(laptop.get_by_text("Waiting for your phone.")).to_be_visible()
    second = laptop.get_by_role("dialog").get_by_role("link").get_attribute("href")
    assert second not in (None, link)
    phone.goto(link)
    expect(phone.locator("#phone")).to_contain_text("This link is no longer valid.")
    phone.goto(str(second))
    drawn_on(phone)
    signer.press("Use this drawing")
    expect(laptop.get_by_role("button", name="Sign anew")).to_be_focused()
    signer.complete()
    kinds = [event["event_type"] for event in suite.api("GET", f"/submitters/{one['id']}")["submission_events"]]
    assert kinds.count("draw_on_phone") == 2
    phone = open_page(f"/s/{lease(suite)['slug']}", PHONE)
    Signer(phone).start()
    expect(phone.get_by_role("button", name="Undo")).to_be_visible()
    assert phone.get_by_role("button", name="Draw on my phone").count() == 0


def test_the_second_factor_is_not_got_round(suite: RunningSuite) -> None:
    """Whoever has the signing link alone gets no link for a telephone, and the telephone's link opens nothing of the form."""
    made = template(suite, field("Signature", "signature", height=0.1), name="Lease")
    (one,) = invite(suite, made, submitter_0={"require_email_2fa": True}, send_email=False)
    body = {"field": "00000000-0000-4000-8000-000000000000"}
    refused = suite.page("POST", f"/s/{one['slug']}/phone", body, status=403)
    assert refused["details"] == [{"field": "state", "reason": "code"}]
    for method, path in (
        ("GET", "/p/" + "x" * 24),
        ("POST", f"/p/{'x' * 24}/connect"),
        ("POST", f"/p/{'x' * 24}/attachments"),
    ):
        assert requests.request(method, suite.base_url + path, json={"request_id": "1"}, timeout=30).status_code == 404
    logs = "".join(log.read_text(errors="replace") for log in (suite.var_dir / "log").glob("gateway*.log"))
    assert "x" * 24 not in logs
