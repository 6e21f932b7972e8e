"""Whatever a sender or another signer writes stays text: no script, no request to another host, no broken page."""

import re

import pytest
from playwright.sync_api import expect

from contracts.languages.choosing import languages
from tests.browser.conftest import PHONE, OpenPage, Watch
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
        send_email=True,
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


@pytest.mark.timeout(900)
def test_names_stay_text_in_every_language(suite: RunningSuite, open_page: OpenPage, watch: Watch) -> None:
    """What is filled into the messages of each language: by the server, by the script, in what a screen reader is told."""
    watch.expected.append("404")
    name, attack = f"N {ATTACKS[0]}"[:100], ATTACKS[0]
    template = suite.template(
        agreement_pdf(["Agreement"]), name=attack, document={"name": attack, "fields": [field(attack)]}
    )

    def asked(**more: object) -> str:
        (party,) = invite(suite, template["id"], submitter_0={"name": name}, **more)
        return f"/s/{party['slug']}"

    form, declined, handed_over = asked(), asked(), asked(preferences={"allow_to_delegate": True})
    suite.page("POST", f"{declined}/decline", {"request_id": "1", "reason": attack})
    suite.page("POST", f"{handed_over}/delegate", {"request_id": "1", "email": "next@example.com", "name": name})
    page = open_page("/verify", PHONE)
    for tag in languages():
        page.context.add_cookies([{"name": "lang", "value": tag, "url": suite.base_url}])
        page.goto(suite.base_url + form)
        expect(page.locator("html")).to_have_attribute("lang", tag)
        expect(page.get_by_role("heading", level=1)).to_have_text(attack)
        expect(page.locator(".start")).to_contain_text(name)
        expect(page.locator("#start-asks")).to_contain_text(attack)
        page.locator(".start button.button--main").click()
        expect(page.get_by_label(attack, exact=True)).to_be_focused()
        expect(page.locator(".sheet img, .sheet__picture").first).to_have_attribute(
            "alt", re.compile(re.escape(attack))
        )
        page.evaluate("window.onbeforeunload = null")
        page.goto(suite.base_url + declined)
        expect(page.get_by_role("blockquote")).to_have_text(attack)
        expect(page.locator("main")).to_contain_text(name)
        page.goto(suite.base_url + handed_over)
        expect(page.locator("main")).to_contain_text(name)
        assert page.locator("main img, main svg, main script").count() == 0
