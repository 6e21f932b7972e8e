"""Signers who sign with certificates of their own, as their browsers, the callers of the API and others' validators see it."""

import html
import io
import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from asn1crypto import x509
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.validation import validate_pdf_signature
from pyhanko_certvalidator import ValidationContext

from deploy.providers.csc import Provider
from tests.support.judges.documents.strict_reader import judged
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, filled, form, send, sign
from tests.support.material.outcomes import completed, fetched, pdf_signatures, pdf_text
from tests.support.servers.providers.csc_provider import running
from tests.support.services.suite import RunningSuite, wait_until


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Provider, dict[str, Any]]]:
    """The provider, and the settings with which a person approves there."""
    folder = tmp_path_factory.mktemp("provider")
    with running(folder) as provider:
        settings = json.loads((folder / "certsign.json").read_text())
        authorization = {**settings["authorization"], "type": "authorization_code"}
        person = {"mode": "signer", "credential_id": "person", "authorization": authorization, "enabled": False}
        yield provider, {**settings, **person}


@pytest.fixture
def provider(suite: RunningSuite, there: tuple[Provider, dict[str, Any]]) -> Iterator[Provider]:
    """The account's; submissions ask for it only where they say so: the suite is also that of others."""
    provider, settings = there
    known = suite.api("PUT", "/account", {"certsign": settings})["certsign"]
    assert (known["mode"], known["problem"]) == ("signer", None)
    yield provider
    provider.faults.set([])
    suite.api("PUT", "/account", {"certsign": None})


class Person:
    """A signer with a browser that keeps cookies and runs no script."""

    def __init__(self, suite: RunningSuite, slug: str) -> None:
        self.suite, self.slug, self.browser = suite, slug, requests.Session()

    def call(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        answer = self.browser.request(method, f"{self.suite.base_url}/s/{self.slug}/{path}", json=body, timeout=30)
        assert answer.status_code == status, answer.text
        return answer.json()

    def begin(self, values: dict[str, Any]) -> None:
        """Fill in everything and begin to confirm."""
        self.suite.page("POST", f"/s/{self.slug}/view", {})
        body = {"values": filled(self.suite, self.slug, values), "request_id": str(uuid.uuid4())}
        self.call("POST", "confirmation/start", body)

    def until(self, step: str) -> dict[str, Any]:
        def look() -> Any:
            answer = self.browser.get(f"{self.suite.base_url}/s/{self.slug}/confirmation", timeout=30)
            return answer.json() if answer.ok and answer.json()["step"] == step else None  # 503, 429: asked again

        found: dict[str, Any] = wait_until(look, what=f"the step {step}")
        return found

    def decide(self, decision: str) -> str:
        """Go to the provider and press a button there; the address that leads back."""
        view = self.until("redirect")
        page = self.browser.get(self.call("POST", "confirmation/go", {"ask": view["ask"]})["url"], timeout=30)
        (number,) = re.findall(r'name="request" value="([^"]+)"', page.text)
        form = {"request": html.unescape(number), "decision": decision}
        decided = page.url.partition("/oauth2/")[0] + "/oauth2/decision"
        return self.browser.post(decided, data=form, allow_redirects=False, timeout=30).headers["Location"]

    def confirm(self) -> None:
        back = self.browser.get(self.decide("approve"), allow_redirects=False, timeout=30)
        assert (back.status_code, back.headers["Location"]) == (303, f"/s/{self.slug}")
        self.until("completed")


def submitter(suite: RunningSuite, one: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = suite.api("GET", f"/submitters/{one['id']}")
    return found


def test_two_signers_sign_one_after_the_other_and_others_find_both_valid(
    suite: RunningSuite, provider: Provider
) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Agreement")["id"]
    seller, buyer = send(suite, template, certsign={"enabled": True}, send_email=False)
    assert form(suite, seller["slug"])["confirm_with"] == "127.0.0.1"
    assert submitter(suite, seller)["identity_status"] is None
    first, second = Person(suite, seller["slug"]), Person(suite, buyer["slug"])
    assert first.call("GET", "confirmation")["step"] == "none"
    body = {"values": {}, "request_id": "r"}
    assert suite.page("POST", f"/s/{seller['slug']}/complete", body, status=422)["details"][0]["field"] == "state"

    first.begin(SELLER_VALUES)
    assert submitter(suite, seller)["identity_status"] == "pending"
    assert suite.api("GET", f"/submissions/{seller['submission_id']}")["certsign_sign_status"] == "pending"
    assert form(suite, seller["slug"])["state"] == "confirming"
    locked = suite.page("POST", f"/s/{seller['slug']}/values", body, status=422)
    assert locked["details"][0]["field"] == "state"
    refused = first.browser.get(first.decide("refuse"), timeout=30)
    assert refused.url == f"{suite.base_url}/s/{seller['slug']}"
    assert first.until("refused")["problem"] == "refused"
    wait_until(lambda: submitter(suite, seller)["identity_status"] == "failed", what="the API to say so")
    first.call("POST", "confirmation/again", {"request_id": "again"})
    back = first.decide("approve")
    stranger = requests.get(back, timeout=120)
    assert (stranger.status_code, "This does not belong to this page" in stranger.text) == (403, True)
    assert submitter(suite, seller)["identity_status"] == "pending"
    first.browser.get(back, timeout=30).raise_for_status()
    first.until("completed")
    assert first.browser.get(back, timeout=30).status_code == 403
    done = submitter(suite, seller)
    assert (done["status"], done["identity_status"], done["identity"]["provider"]) == (
        "completed",
        "verified",
        "127.0.0.1",
    )
    page = requests.get(f"{suite.base_url}/s/{seller['slug']}", timeout=120).text
    assert "It was signed with your certificate at 127.0.0.1" in page

    second.begin(BUYER_VALUES)
    second.confirm()
    submission = completed(suite, seller["submission_id"])
    assert submission["certsign_sign_status"] == "signed"
    (document,) = submission["documents"]
    data = fetched(document["url"])
    said = pdf_signatures(data)
    assert said.count("Signature is Valid") == said.count("Signature Validation:") == 3, said
    reader = PdfFileReader(io.BytesIO(data))
    context = ValidationContext(
        trust_roots=[x509.Certificate.load(provider.authorities.root.encoded)], allow_fetching=False
    )
    for signature, party in zip(reader.embedded_regular_signatures, submission["submitters"], strict=False):
        status = validate_pdf_signature(signature, context)
        assert status.intact
        assert status.valid
        assert status.trusted, status.pretty_print_details()
        assert signature.signer_cert.sha256.hex() == party["identity"]["sha256"]
    assert all(one.permitted for one in judged(data))
    assert "Zoë Łukasz Ångström" in pdf_text(data)
    trail = pdf_text(fetched(submission["audit_log_url"]))
    assert "127.0.0.1" in trail
    assert len(provider.signing.record.lines()) == 2


def test_what_cannot_be_signed_so_is_refused_and_what_was_begun_can_be_given_up(
    suite: RunningSuite, provider: Provider
) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Agreement")["id"]
    people = [{"role": role, "email": "s@example.com"} for role in ("Seller", "Buyer")]
    wish = {"template_id": template, "certsign": {"enabled": True}, "send_email": False}
    refused = suite.api("POST", "/submissions", {**wish, "submitters": people, "order": "random"}, status=422)
    assert "order" in refused["details"][0]["field"]
    together = [{**person, "order": 1} for person in people]
    refused = suite.api("POST", "/submissions", {**wish, "submitters": together}, status=422)
    assert refused["details"][0]["field"] == "submitters"

    seller, buyer = send(suite, template, certsign={"enabled": False}, send_email=False)
    assert form(suite, seller["slug"])["confirm_with"] is None
    sign(suite, seller["slug"], SELLER_VALUES)
    sign(suite, buyer["slug"], BUYER_VALUES)
    done = completed(suite, seller["submission_id"])
    assert (done["certsign_sign_status"], [one["identity_status"] for one in done["submitters"]]) == (
        None,
        [None, None],
    )

    signed = len(provider.signing.record.lines())
    seller, buyer = send(suite, template, certsign={"enabled": True}, send_email=False)
    first, second = Person(suite, seller["slug"]), Person(suite, buyer["slug"])
    first.begin(SELLER_VALUES)
    first.confirm()
    second.begin(BUYER_VALUES)
    second.until("redirect")
    given_up = suite.api("POST", f"/submissions/{seller['submission_id']}/seal", {"certsign": {"enabled": False}})
    assert given_up["certsign"]["waived_by"] == "admin@example.com"
    wait_until(lambda: form(suite, buyer["slug"])["state"] == "open", what="a form that can be completed")
    assert second.call("GET", "confirmation")["step"] == "none"
    sign(suite, buyer["slug"], BUYER_VALUES)
    done = completed(suite, seller["submission_id"])
    assert [one["identity_status"] for one in done["submitters"]] == ["verified", None]
    assert len(provider.signing.record.lines()) == signed + 1
    verdict = pdf_signatures(fetched(done["documents"][0]["url"]))
    assert verdict.count("Signature is Valid") == verdict.count("Signature Validation:") == 2, verdict
