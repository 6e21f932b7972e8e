"""The page asks who signs next before it completes."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE, OpenPage, Watch
from tests.browser.forms import field, template
from tests.browser.signer import Signer
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser


def test_the_next_signer_s_number_is_asked_for(suite: RunningSuite, open_page: OpenPage) -> None:
    """The next signer has to pass a code that is sent to their phone."""
    suite.api("PUT", "/account", {"phone_otp_webhook": {"url": "http://127.0.0.1:9/codes"}})
    try:
        made = template(suite, field("Name"), field("Job", line=4, role="Witness"))
        later = {"role": "Witness", "invite_by": "Signer", "require_phone_2fa": True}
        wish = {"template_id": made, "submitters": [{"role": "Signer", "email": "s@example.com"}, later]}
        (signer_row,) = suite.api("POST", "/submissions", wish)
        page = open_page(f"/s/{signer_row['slug']}", PHONE)
        signer = Signer(page)
        signer.start()
        signer.fill("Name", "Ann")
        signer.field("E-mail address of Witness").fill("wanda@example.com")
        number = signer.field("Phone number of Witness")
        for wrong in ("", "020 7946 0018"):
            number.fill(wrong)
            signer.press("Complete")
            signer.sees_problem("Please enter the number with its country code, such as +44 20 7946 0018.")
            expect(number).to_be_focused()
        number.fill("+44 20 7946 0018")
        signer.complete()
        witness = suite.api("GET", f"/submissions/{signer_row['submission_id']}")["submitters"][1]
        assert (witness["email"], witness["phone"]) == ("wanda@example.com", "+442079460018")
    finally:
        suite.api("PUT", "/account", {"phone_otp_webhook": None})


def test_the_next_signer_is_named_before_completing(suite: RunningSuite, open_page: OpenPage, watch: Watch) -> None:
    watch.expected.append("422")
    made = template(suite, field("Name"), field("Job", line=4, role="Witness"))
    people = [{"role": "Signer", "email": "s@example.com"}, {"role": "Witness", "invite_by": "Signer"}]
    wish = {"template_id": made, "submitters": people, "consent_enabled": True}
    (signer_row,) = suite.api("POST", "/submissions", wish)
    page = open_page(f"/s/{signer_row['slug']}", PHONE)
    signer = Signer(page)
    signer.start()
    signer.fill("Name", "Ann")
    email = signer.field("E-mail address of Witness")
    signer.press("Complete")
    signer.sees_problem("Please enter the e-mail address.")
    expect(email).to_be_focused()
    email.fill("wanda at example")
    signer.press("Complete")
    signer.sees_problem("This is not an e-mail address.")
    email.fill("wanda@example")
    signer.press("Complete")
    signer.sees_problem("Please tick this box before you complete.")
    signer.page.get_by_role("checkbox").check()
    signer.press("Complete")
    expect(page.get_by_text("The e-mail address of Witness is not a valid e-mail address")).to_be_visible()
    email.fill("wanda@example.com")
    signer.field("Name of Witness (optional)").fill("Wanda")
    signer.complete()
    shown = suite.api("GET", f"/submissions/{signer_row['submission_id']}")["submitters"]
    assert [(each["role"], each["email"], each["name"]) for each in shown[1:]] == [
        ("Witness", "wanda@example.com", "Wanda")
    ]
