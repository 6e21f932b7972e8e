"""Whatever a sender or another signer writes stays text: no script, no request to another host, no broken page."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.forms import field, invite
from tests.browser.signer import Signer
from tests.support.material.agreement import agreement_pdf
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser

ATTACKS = [
    '"><img src=https://evil.example/x onerror=alert(1)></script><script>alert(2)</script><svg/onload=alert(3)>',
    "' onmouseover='alert(4) {{7*7}}${7*7}<%= 7*7 %> </textarea></title><!--",
]
MARKDOWN = (
    "![x](https://evil.example/y.png) [a](javascript:alert(5)) [b](data:text/html,<script>alert(6)</script>) "
    '<iframe src=https://evil.example></iframe> [c]( https://ok.example "t\' onclick=alert(7)" )'
)


@pytest.mark.parametrize("attack", ATTACKS)
def test_names_stay_text(suite: RunningSuite, open_page: OpenPage, attack: str) -> None:
    fields = [
        field(f"Name {attack}", line=0, role="First"),
        field(
            "Titled", line=2, role="First", title=f"**T** {attack} {MARKDOWN}", description=f"{attack}\n\n{MARKDOWN}"
        ),
        field("Choice", "select", line=4, role="First", options=[attack, "other"]),
        field("Radio", "radio", line=6, role="First", options=[attack, "other"]),
        field("Second", line=8, role="Second"),
    ]
    document = {"name": f"Paper {attack}", "fields": fields}
    template = suite.template(agreement_pdf(["Agreement"]), name=f"Template {attack}", document=document)
    first, second = invite(
        suite,
        template["id"],
        "First",
        "Second",
        submitter_0={"name": f"N {attack}"[:100]},
        message={"subject": attack, "body": f"{attack} {MARKDOWN}"},
    )
    page = open_page(f"/s/{first['slug']}")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Template {attack}")
    signer = Signer(page)
    signer.start()
    expect(page.get_by_label(f"Name {attack}", exact=True)).to_be_focused()
    signer.fill(f"Name {attack}", attack)
    page.locator(".step input").fill(attack)
    signer.next()
    signer.field("Choice").select_option(attack)
    signer.next()
    signer.field(attack).check()
    signer.next()
    expect(page.get_by_role("heading", name="Is everything right?")).to_be_visible()
    signer.complete()
    other = open_page(f"/s/{second['slug']}")
    expect(other.locator(".box--fixed", has_text=attack).first).to_be_visible()
    Signer(other).press("Decline")
    other.get_by_label("Reason").fill(attack)
    Signer(other).press("Decline")
    expect(other.get_by_role("blockquote")).to_have_text(attack)
    mails = open_page("/dev/mail")
    for position in range(mails.locator(".mails__item").count()):
        mails.locator(".mails__item").nth(position).click()
        expect(mails.get_by_role("heading", name="As text")).to_be_visible()
        mails.go_back()
        if position == 3:
            break
