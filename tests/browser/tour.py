"""A walk through the states of the pages that people see, in one page of a browser: whoever looks at all of them (axe, the
pseudo-language, pictures of each language) takes this walk, so that a new state gets a line here and is looked
at by all. Nothing is found by its words: it is walked in every language."""

import os
import re
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import requests
from playwright.sync_api import FilePayload, Page, expect
from weasyprint import HTML

from contracts.runtime.clock import now
from contracts.types import iso
from tests.browser.forms import field, invite, template
from tests.support.clients.agents import python_agent
from tests.support.clients.keys import new_key
from tests.support.material.outcomes import completed, fetched, mail_text, mails_to
from tests.support.rendering.drawing import signature_png
from tests.support.servers.identity_provider import ProviderProcess
from tests.support.services.suite import FEW_CODES, RunningSuite, wait_until
from tests.support.services.warm import started_or_warm

_DOCUMENT = """<html lang="en"><style>@page {size: A4} body {font: 12pt 'Liberation Sans'} h2 {break-before: page}</style>
<h1>Lease between two parties</h1><p>The rent is due at the beginning of each month.</p>
<h2>Duties</h2><table><tr><th>May</th><td>700</td></tr><tr><th>June</th><td>700</td></tr></table>"""

EVERY = [
    field("Full name", line=3),
    field("Remarks", line=4, height=0.06, description="As in the passport"),
    field("Born", "date", line=6),
    field("Rent", "number", line=7, preferences={"format": "eur"}, validation={"min": 1, "max": 9000, "step": 0.01}),
    field("Deposit", "number", line=15, preferences={"format": "eur", "formula": "3 * [[Rent]]"}),
    field("House rules", "checkbox", line=8, area={"w": 0.03}),
    field("Flat", "radio", line=9, options=["Aa", "Bb"]),
    field("Floor", "select", line=10, options=["Aa", "Bb"]),
    field("Pets", "multiple", line=11, options=["Aa", "Bb"]),
    field("Card", "cells", line=12, area={"cell_w": 0.05}),
    field("Phone", "phone", line=13),
    field("Photo", "image", line=18, height=0.08),
    field("Papers", "file", line=21),
    field("Identity", "verification", line=22),
    field("Meterai", "dutystamp", line=23, area={"x": 0.6, "w": 0.12}),
    field("Fixed", line=24, readonly=True, default_value="Aa"),
    field("Initials", "initials", line=4, height=0.04, page=2),
    field("Signature", "signature", line=14, height=0.06, page=2, preferences={"reasons": ["Aa", "Bb"]}),
    field("Later", role="Witness", line=20, page=2),
]
for each in EVERY[1:]:
    each["required"] = False  # but the first: the overview is reached without answering
NOT_ASKED = ("Deposit", "Meterai", "Fixed")
ASKED = [each["name"] for each in EVERY if each["role"] == "Signer" and each["name"] not in NOT_ASKED]


FILLED_IN = [each["name"] for each in EVERY] + [
    "Lease between two parties",
    "Lease",
    "lease",
    "between",
    "two",
    "parties",
    "Duties",
]
FILLED_IN += [
    "The",
    "rent",
    "is",
    "due",
    "at",
    "the",
    "beginning",
    "of",
    "each",
    "month",
    "May",
    "June",
    "As in the passport",
]
FILLED_IN += ["Aa", "Bb", "Ann Ray", "Signer Person", "First Person", "Second Person", "Ann", "Witness"]
FILLED_IN += ["acme.example", "example.com", "gu•••", "me.png", "pdf", "Agreement", "agreement"]
"""What people have written: names, files, the document's own words. It is in no file of messages."""


@contextmanager
def suite_for_pictures() -> Iterator[RunningSuite]:
    """A suite for the programs that draw what is met on the walk; with ``WARM_SUITE=<folder>`` the one that runs."""
    folder = Path(tempfile.mkdtemp(prefix="pictures-"))
    provider = ProviderProcess(folder / "identity-provider.log")
    suite = started_or_warm(folder, **provider.settings, **FEW_CODES)
    try:
        yield suite
    finally:
        if "WARM_SUITE" not in os.environ:
            suite.stop()
        provider.stop()


WALKS = 3
"""That the tests take: in English, from right to left, in the pseudo-language."""


@cache
def tour_of(suite: RunningSuite) -> "Tour":
    """The tour of this suite: whoever takes a walk shares it."""
    return Tour(suite)


class Tour:
    """Made once; each walk is in one language, by a party of its own."""

    def __init__(self, suite: RunningSuite) -> None:
        self.suite = suite
        pdf = bytes(HTML(string=_DOCUMENT).write_pdf(pdf_variant="pdf/ua-1"))
        made = suite.template(pdf, name="Lease", document={"name": "Lease", "fields": EVERY})
        self._template = int(made["id"])
        self._uuids = {each["name"]: each["uuid"] for each in made["fields"]}
        plain = template(suite, field("Name"), name="Lease")
        pair = template(suite, field("A", role="First"), field("B", role="Second", line=2), name="Lease")
        self._ended = {
            "waiting": invite(suite, pair, "First", "Second", order="preserved")[1],
            "declined": invite(suite, plain)[0],
            "expired": invite(suite, plain, expire_at=iso(now() + timedelta(seconds=2)))[0],
            "archived": invite(suite, plain)[0],
            "code": invite(suite, plain, submitter_0={"require_email_2fa": True, "email": "guarded@example.com"})[0],
            "completed": invite(suite, plain)[0],
            "returned": invite(suite, plain, preferences={"allow_to_return": True})[0],
            "handed over": invite(suite, plain, preferences={"allow_to_delegate": True})[0],
            "wrong person": invite(suite, plain)[0],
        }
        people = [{"acts_as": acts_as, "email": f"{acts_as}@example.com"} for acts_as in ("approver", "viewer")]
        sent = {
            "template_id": plain,
            "order": "random",
            "submitters": [*people, {"role": "Signer", "email": "a@example.com"}],
        }
        self._parties = dict(zip(("approver", "viewer"), suite.api("POST", "/submissions", sent), strict=False))
        for name, way, said in (
            ("declined", "decline", {"reason": "Aa"}),
            ("returned", "return", {"reason": "Aa"}),
            ("handed over", "delegate", {"email": "bb@example.com", "name": "Second Person"}),
            ("wrong person", "wrong_recipient", {}),
        ):
            suite.page("POST", f"/s/{self._ended[name]['slug']}/{way}", {"request_id": name, **said})
        suite.api("DELETE", f"/submissions/{self._ended['archived']['submission_id']}")
        self._sign(self._ended["completed"]["slug"])
        in_a_room = template(suite, field("A", role="First"), field("B", role="Second", line=2), name="Lease")
        (self._in_person, _) = invite(
            suite, in_a_room, "First", "Second", order="preserved", preferences={"in_person": True}
        )
        self._sign(self._in_person["slug"])
        self._to_prepare = template(suite, field("Aa"), name="Lease")
        self.shared = suite.api("PUT", f"/templates/{plain}", {"shared_link": True})["slug"]
        self.submission = completed(suite, self._ended["completed"]["submission_id"])
        self._file = fetched(self.submission["documents"][0]["url"])
        self._under_way = self.submission
        self._to_confirm: list[str] = []
        self.readers: list[str] = []
        """Addresses of the account's users who read the page of a submission on these walks."""
        expired = f"/submissions/{self._ended['expired']['submission_id']}"
        wait_until(lambda: suite.api("GET", expired)["status"] == "expired", what="the expiry")

    def party(self, tag: str) -> dict[str, Any]:
        """Somebody who has not begun, and is written to in this language."""
        witness = {"role": "Witness", "invite_by": "Signer"}
        person = {"role": "Signer", "email": f"{tag.lower()}@example.com", "name": "Ann Ray", "lang": tag}
        body = {
            "template_id": self._template,
            "submitters": [person, witness],
            "expire_at": iso(now() + timedelta(days=30)),
            "consent_enabled": True,
            "consent_document_text": "Aa",
            "consent_document_url": "https://acme.example/terms",
            "preferences": {"allow_to_delegate": True, "allow_to_return": True},
        }
        (made,) = self.suite.api("POST", "/submissions", body)
        self._under_way = self.suite.api("GET", f"/submissions/{made['submission_id']}")
        return dict(made)

    def walk(self, page: Page, tag: str = "en") -> Iterator[str]:
        """Bring the page into one state after the other; yields the name of each."""
        page.context.add_cookies([{"name": "lang", "value": tag, "url": self.suite.base_url}])
        yield from self.form(page, tag)
        yield from self.others(page)

    def main_way(self, page: Page, tags: Iterable[str]) -> Iterator[tuple[str, str]]:
        """What everybody meets from the link to the receipt, for whoever looks at all languages: few states, each with many
        words. One form is filled in once, and loaded in one language after the other; yields the language and the state."""
        path = f"/s/{self.party('en')['slug']}"
        page.goto(self.suite.base_url + path)
        page.locator(".start button.button--main").click()
        page.locator(".step input").fill("Ann Ray")
        self._to_review(page)
        self._saved(page)
        shown = requests.get(f"{self.suite.base_url}{path}/form", timeout=60).json()
        signed = {self._uuids["Signature"]: next(one["value"] for one in shown["fields"] if one["name"] == "Signature")}
        for tag in tags:
            page.evaluate(
                "() => { onbeforeunload = null; sessionStorage.clear(); }"
            )  # it forgets at which field it was
            page.context.add_cookies([{"name": "lang", "value": tag, "url": self.suite.base_url}])
            self.suite.page("POST", f"{path}/values", {"request_id": f"signed in {tag}", "values": signed})
            yield from ((tag, state) for state in self._main_way(page, tag, path))

    def _main_way(self, page: Page, tag: str, path: str) -> Iterator[str]:
        """The states of the main way in one language, of a form that is filled in already."""
        page.goto(self.suite.base_url + path)
        expect(page.locator("html")).to_have_attribute("lang", tag)
        start = page.locator(".start button.button--main")
        start.wait_for()
        yield "start"
        page.locator("#decline").click()
        page.locator("dialog[open]").wait_for()
        yield "declining"
        page.keyboard.press("Escape")
        start.click()
        self._to_review(page)
        yield "review"
        self._ask(page, "Signature")
        page.locator(".signature .button--small").first.click()  # it is signed, and shall be signed anew
        page.locator(".pad__canvas").wait_for()
        reason = page.locator(".signature__reason select")
        reason.select_option("")
        yield "field Signature"
        reason.select_option("Aa")
        self._ask(page, "Full name")
        page.locator(".step input").fill("")
        self._next(page)
        page.locator(".problem:not(:empty)").wait_for()
        yield "problem"
        page.locator(".step input").fill("Ann Ray")
        self._saved(page)
        page.evaluate("window.onbeforeunload = null")
        for name in ("code", "completed"):
            page.goto(f"{self.suite.base_url}/s/{self._ended[name]['slug']}")
            page.locator("main.card").wait_for()
            yield name

    def _to_review(self, page: Page) -> None:
        """From any field on, by the signature, which is the last one."""
        self._ask(page, "Signature")
        page.locator(".signature").wait_for()
        if page.locator(".pad__canvas").count():  # it is not signed yet
            self._saved(page)
            self._draw(page)
            page.locator(".signature__reason select").select_option("Aa")
        self._next(page)
        page.locator(".review").wait_for()

    def form(self, page: Page, tag: str) -> Iterator[str]:
        """Everything that happens on the page of one form."""
        party = self.party(tag)
        page.goto(f"{self.suite.base_url}/s/{party['slug']}")
        start = page.locator(".start button.button--main")
        start.wait_for()
        page.locator(".sheet__word").first.wait_for(state="attached")
        yield "start"
        for button, name in (("#decline", "declining"), ("#not-me", "not me")):
            page.locator(button).click()
            page.locator("dialog[open]").wait_for()
            yield name
            page.keyboard.press("Escape")
        yield from self._ways(page)
        yield from self._document(page)
        start.click()
        for name in ASKED:
            self._ask(page, name)
            if name != "Full name":
                self._saved(page)
            yield f"field {name}"
            if name == "Full name":
                self._next(page)
                page.locator(".problem:not(:empty)").wait_for()
                yield "problem"
                page.locator(".step input").fill("Ann Ray")
        yield from self._signature(page)
        self._next(page)
        page.locator(".review").wait_for()
        self._saved(page)
        yield "review"
        page.locator(".review .button--main").click()
        page.locator(".review .problem:not(:empty)").first.wait_for()
        yield "review refused"
        yield from self._by_phone(page)
        page.evaluate("window.onbeforeunload = null")

    def others(self, page: Page) -> Iterator[str]:
        """The pages that say one thing, and those that everybody may open."""
        base = self.suite.base_url
        for name, party in self._ended.items():
            page.goto(f"{base}/s/{party['slug']}")
            page.locator("main.card").wait_for()
            yield name
        yield from self._handing(page)
        for name, party in self._parties.items():
            page.goto(f"{base}/s/{party['slug']}")
            page.locator(".sheet__word").first.wait_for(state="attached")
            yield name
        page.goto(f"{base}/d/{self.shared}")
        yield "shared link"
        page.goto(f"{base}/e/{self.submission['slug']}")
        yield "submission"
        yield from self._sender(page)
        yield from self._prepared(page)
        page.goto(f"{base}/s/nothing")
        yield "gone"
        page.goto(f"{base}/")
        yield "welcome"
        page.goto(f"{base}/verify")
        yield "verify"
        page.locator("#file").set_input_files(
            {"name": "lease.pdf", "mimeType": "application/pdf", "buffer": self._file}
        )
        page.locator("#file-form .button--main").click()
        page.locator("#result").wait_for()
        yield "verify file"

    def _ways(self, page: Page) -> Iterator[str]:
        """The quiet menu, and what each of its ways asks."""
        more, ways = page.locator("#more"), page.locator(".more__way")
        more.click()
        expect(ways).to_have_count(4)
        yield "ways"
        page.keyboard.press("Escape")
        for number, name in enumerate(("later", "asking", "handing over", "sending back")):
            more.click()
            ways.nth(number).click()
            page.locator("dialog[open]").wait_for()
            yield f"way {name}"
            if name == "asking":  # without a question
                page.locator("dialog [type=submit]").click()
                page.locator("dialog .problem:not(:empty)").wait_for()
                yield "way refused"
            page.keyboard.press("Escape")
        more.click()
        ways.first.click()
        page.locator("dialog [type=submit]").click()
        page.locator("dialog .button--main:not([type=submit])").wait_for()
        yield "way taken"
        page.keyboard.press("Escape")

    def _handing(self, page: Page) -> Iterator[str]:
        """In person on one device: the page of who has completed, the screen between, and what is there once it is over."""
        page.goto(f"{self.suite.base_url}/s/{self._in_person['slug']}")
        page.locator("#hand").wait_for()
        yield "handing on"
        page.locator("#hand").click()
        page.locator("#take").wait_for()
        yield "handing"
        page.locator("#refuse").click()
        page.locator("main.card:not(:has(#take))").wait_for()
        yield "handing over is over"

    def _by_phone(self, page: Page) -> Iterator[str]:
        """A telephone draws: what the laptop shows, and the page on the telephone."""
        self._ask(page, "Initials")
        page.locator(".signature__tools button").nth(2).click()
        link = page.locator("dialog .phone__link")
        link.wait_for()
        yield "by phone"
        page.goto(str(link.get_attribute("href")))
        page.locator(".card .pad__canvas").wait_for()
        yield "phone"

    def _sender(self, page: Page) -> Iterator[str]:
        """Who proves that a mailbox is theirs, and sees how far a submission is. One code a walk: few go out in an hour."""
        email = f"{uuid.uuid4().hex}@example.com"
        self.readers.append(email)
        user = {"email": email, "first_name": "Ann", "last_name": "Ray", "role": "admin"}
        self.suite.api("POST", "/users", user, status=201)
        page.goto(f"{self.suite.base_url}/e/{self._under_way['slug']}")
        page.locator("#email").fill(email)
        page.locator("[action$='/code/send'] .button--main").click()
        page.locator("#code").wait_for()
        yield "submission code"
        (mail,) = wait_until(lambda: mails_to(self.suite, email), what="the code")
        page.locator("#code").fill(re.findall(r"^(\d{6})\s*$", mail_text(mail), re.MULTILINE)[0])
        page.locator("[action$='/code'] .button--main").click()
        page.locator(".progress__parties").wait_for()
        page.locator(".progress__history summary").click()
        yield "submission read"

    def _prepared(self, page: Page) -> Iterator[str]:
        """What an agent has prepared: a key is asked for, and one refused; then it is shown, refused, and another one sent."""
        own = new_key(self.suite, "send")["api_key"]
        if not self._to_confirm:  # for several walks at once: an agent's program takes as long to start as half a walk
            self._to_confirm = self._confirmations(2 * WALKS)
        refused, sent = self._to_confirm.pop(), self._to_confirm.pop()
        self._show_key(page, refused, "x" * 43, "key")
        page.locator("#key-problem").wait_for()
        yield "prepared"
        self._show_key(page, refused, own, "confirm")
        yield "prepared shown"
        page.locator("#refuse").click()
        page.locator("main[data-step=withdrawn]").wait_for()
        yield "prepared and refused"
        self._show_key(page, sent, own, "confirm")
        page.locator("#confirm").click()
        page.locator("main[data-step=sent]").wait_for()
        yield "prepared and sent"

    def _confirmations(self, count: int) -> list[str]:
        """The links on which a person confirms what an agent has prepared."""
        person = {"role": "Signer", "email": "a@example.com", "name": "Ann Ray", "values": {"Aa": "Bb"}}
        message = {"subject": "Lease", "body": "The rent is due"}
        key, urls = new_key(self.suite, "read")["api_key"], []
        with python_agent(self.suite.base_url, key, name="tour") as agent:
            for _ in range(count):
                said = {"submitters": [person], "message": message, "expire_at": iso(now() + timedelta(days=30))}
                made = agent.call("prepare_submission", template_id=self._to_prepare, **said)["structuredContent"]
                asked = agent.call("send_submission", prepared_id=made["prepared_id"])["structuredContent"]
                urls.append(str(asked["confirmation_url"]))
        return urls

    def _show_key(self, page: Page, url: str, key: str, step: str) -> None:
        """Have the page of what is prepared shown to a key. A service that is busy does not answer: one asks again."""
        steps = page.locator(f"main[data-step={step}], main[data-step=refused]")
        for _ in range(5):
            page.goto(url)
            page.locator("#api_key").fill(key)
            with page.expect_navigation():
                page.locator("#key-form .button--main").click()
            steps.wait_for()
            if page.locator(f"main[data-step={step}]").count():
                return
        raise AssertionError(page.locator("main").inner_text())

    def _document(self, page: Page) -> Iterator[str]:
        """Find, the pages in small, the view that flows."""
        tools = page.locator(".document__tools")
        find, read = tools.locator("[aria-pressed]").all()
        find.click()
        page.locator(".find__words").fill("rent")
        page.locator(".found").first.wait_for()
        yield "find"
        find.click()
        tools.locator(".pages > button").click()
        page.locator("dialog[open]").wait_for()
        yield "pages"
        page.keyboard.press("Escape")
        read.click()
        page.locator(".reading__text").first.wait_for()
        yield "reading"
        read.click()

    def _signature(self, page: Page) -> Iterator[str]:
        """The ways of signing, on the step of the signature."""
        ways = page.locator(".segments__one")
        self._draw(page)
        yield "signature drawn"
        ways.nth(1).click()
        page.locator(".signature input[type=text]").fill("Ann Ray")
        page.locator(".styles:not(.styles--late) .styles__picture[src]").first.wait_for()
        yield "signature typed"
        ways.nth(2).click()
        yield "signature upload"
        picture: FilePayload = {"name": "me.png", "mimeType": "image/png", "buffer": signature_png()}
        page.locator(".signature input[type=file]").set_input_files(picture)
        page.locator(".preview__picture").wait_for()
        yield "signature uploaded"
        page.locator(".signature__reason select").select_option("Aa")

    def _draw(self, page: Page) -> None:
        """A stroke on the pad."""
        pad = page.locator(".pad__canvas")
        pad.scroll_into_view_if_needed()
        box = pad.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + box["height"] * 0.3)
        page.mouse.down()
        for x, y in ((0.4, 0.8), (0.5, 0.3), (0.7, 0.7)):
            page.mouse.move(box["x"] + box["width"] * x, box["y"] + box["height"] * y, steps=4)
        page.mouse.up()

    def _ask(self, page: Page, name: str) -> None:
        """As a tap on its place in the document does."""
        page.evaluate("(uuid) => document.querySelector(`[data-field='${uuid}']`).click()", self._uuids[name])
        expect(page.locator(".step")).to_be_visible()

    def _saved(self, page: Page) -> None:
        page.locator("#saving[data-status='saved']").wait_for()

    def _next(self, page: Page) -> None:
        page.locator(".step button[type=submit]").click()

    def _sign(self, slug: str) -> None:
        path = f"{self.suite.base_url}/s/{slug}"
        shown = requests.get(f"{path}/form", timeout=60).json()
        values = {one["uuid"]: "Ann" for one in shown["fields"]}
        body = {"values": values, "request_id": f"signed-{slug}", "shown": shown.get("shown")}
        requests.post(f"{path}/complete", json=body, timeout=60).raise_for_status()
