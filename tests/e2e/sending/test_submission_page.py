"""The page of a submission ``/e/<slug>`` through HTTP, as a browser without scripts uses it: a code, states, files, again."""

import hashlib
import re
import uuid
from html.parser import HTMLParser
from typing import Any

import requests

from tests.support.material.agreement import agreement_pdf
from tests.support.material.outcomes import completed, mail_text, mails_to
from tests.support.services.suite import RunningSuite, wait_until


class Forms(HTMLParser):
    """The forms of a page: where each goes, and what it sends as it stands."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.found.append((given["action"], {}))
        elif tag == "input" and self.found:
            self.found[-1][1][given["name"]] = given.get("value", "")


class Browser:
    """A browser with cookies and without scripts."""

    def __init__(self, suite: RunningSuite, slug: str) -> None:
        self.base, self.slug = suite.base_url, slug
        self.session = requests.Session()
        self.session.headers["Accept"] = "text/html"
        self.page = self.get("")

    def get(self, path: str) -> requests.Response:
        return self.session.get(f"{self.base}/e/{self.slug}{path}", timeout=60)

    def send(self, path: str, **typed: str) -> requests.Response:
        """Fill in and send the form of the page that goes there."""
        action, sent = next(form for form in Forms(self.page.text).found if form[0].endswith(path))
        self.page = self.session.post(f"{self.base}{action}", data={**sent, **typed}, timeout=60)
        return self.page

    def let_in(self, suite: RunningSuite, email: str) -> requests.Response:
        known = len(_codes(suite, email))
        assert self.send("/code/send", email=email).status_code == 200
        code = wait_until(lambda: _codes(suite, email)[known:], what=f"the code to {email}")[-1]
        return self.send("/code", code=code)


def _codes(suite: RunningSuite, address: str) -> list[str]:
    texts = [mail_text(mail) for mail in mails_to(suite, address)]
    return [code for text in texts for code in re.findall(r"^(\d{6})\s*$", text, re.MULTILINE)]


def _user(suite: RunningSuite, role: str) -> dict[str, Any]:
    email = f"{role}-{uuid.uuid4().hex[:8]}@example.com"
    made = suite.api(
        "POST", "/users", {"email": email, "first_name": "Uma", "last_name": "User", "role": role}, status=201
    )
    return {"email": email, **made}


def test_the_sender_reads_how_far_it_is_and_sends_again(suite: RunningSuite) -> None:
    signer = f"sig-{uuid.uuid4().hex[:8]}@example.com"
    template = suite.template(
        agreement_pdf(["Agreement {{Name;role=Guest;required=false}}"]), name="Lease <b>of</b> a house"
    )
    party = suite.api(
        "POST",
        "/submissions",
        {"template_id": template["id"], "submitters": [{"email": signer, "name": "<i>Sig</i> Ner"}]},
    )[0]
    submission = suite.api("GET", f"/submissions/{party['submission_id']}")
    sender = _user(suite, "admin")
    browser = Browser(suite, submission["slug"])
    assert 'data-reader=""' in browser.page.text
    assert signer not in browser.page.text

    wrong = browser.send("/code/send", email="no address")
    assert (wrong.status_code, "ana@example.com" in wrong.text) == (422, True)
    page = browser.let_in(suite, sender["email"])
    assert 'data-reader="sender"' in page.text
    assert signer in page.text
    assert "&lt;i&gt;Sig&lt;/i&gt; Ner" in page.text
    assert "<b>of" not in page.text
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["X-Robots-Tag"] == "noindex, nofollow"
    cookie = next(one for one in browser.session.cookies if one.name == "reader")
    assert (cookie.path, cookie.has_nonstandard_attr("HttpOnly"), cookie.get_nonstandard_attr("SameSite")) == (
        f"/e/{submission['slug']}",
        True,
        "Lax",
    )

    wait_until(lambda: mails_to(suite, signer), what="the invitation")
    action, sent = next(form for form in Forms(page.text).found if form[0].endswith("/again"))
    forged = browser.session.post(f"{browser.base}{action}", data={**sent, "token": "x" * 32}, timeout=60)
    assert forged.status_code == 403
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    assert browser.session.post(f"{browser.base}{action}", data=sent, headers=elsewhere, timeout=60).status_code == 403
    stolen = requests.post(f"{browser.base}{action}", data=sent, timeout=60)
    assert stolen.status_code == 403
    assert "being sent again" in browser.send("/again").text
    wait_until(lambda: len(mails_to(suite, signer)) == 2, what="the second invitation")
    assert browser.send("/again").status_code == 429

    suite.api("PUT", f"/submitters/{party['id']}", {"completed": True})
    done = completed(suite, submission["id"])
    browser.page = browser.get("")
    files = re.findall(r'href="[^"]*(/files/\d+)"', browser.page.text)
    assert len(files) == 2  # the document and the audit trail
    document = browser.get(files[0])
    assert hashlib.sha256(document.content).hexdigest() == done["documents"][0]["sha256"]
    assert document.headers["Cache-Control"] == "private, no-store"
    assert requests.get(f"{browser.base}/e/{submission['slug']}{files[0]}", timeout=60).status_code == 404
    assert browser.get("/files/9").status_code == 404

    reader = Browser(suite, submission["slug"])
    assert 'data-reader="party"' in reader.let_in(suite, signer).text
    assert sender["email"] not in reader.page.text
    assert 'data-reader=""' in reader.send("/leave").text
    suite.api("DELETE", f"/users/{sender['id']}")
    assert 'data-reader=""' in browser.get("").text  # no longer a user
    assert browser.get(files[0]).status_code == 404
