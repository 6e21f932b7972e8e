"""A field that signers fill by proving who they are at an identity provider, which is a real one (OpenID Connect)."""

import uuid
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests

from tests.support.material.agreement import agreement_pdf
from tests.support.material.outcomes import completed, events_of, fetched, pdf_text
from tests.support.servers.identity_provider import SECRET, ProviderProcess
from tests.support.services.suite import RunningSuite, wait_until

HTML = """<p>Who: <text-field name="Who" role="Signer" style="width: 200px; height: 20px"></text-field></p>
<p>Proof: <verification-field name="Identity" role="Signer" method="aes" style="width: 160px; height: 28px">
</verification-field></p>"""
PASSPORT = {
    "name": "Passport",
    "type": "verification",
    "role": "Signer",
    "required": False,
    "preferences": {"method": "qes"},
    "areas": [{"x": 0.1, "y": 0.7, "w": 0.4, "h": 0.04, "page": 1}],
}


class Browser(requests.Session):
    """A signer's browser, at their form."""

    def __init__(self, suite: RunningSuite, slug: str) -> None:
        super().__init__()
        self.suite, self.page = suite, f"{suite.base_url}/s/{slug}"

    def fields(self) -> dict[str, Any]:
        return {one["name"]: one for one in self.get(f"{self.page}/form", timeout=60).json()["fields"]}

    def ask(self, what: str, *, status: int = 200, **body: Any) -> Any:
        answer = self.post(f"{self.page}/{what}", json={"request_id": uuid.uuid4().hex, **body}, timeout=60)
        assert answer.status_code == status, (what, answer.status_code, answer.text)
        return answer.json()

    def set_off(self, name: str = "Identity") -> str:
        """To the provider; its address."""
        return str(self.ask("identity", field=self.fields()[name]["uuid"])["url"])

    def come_back(self, address: str) -> requests.Response:
        return self.get(address, allow_redirects=False, timeout=60)


def test_a_signer_proves_who_he_is(suite: RunningSuite, identity_provider: ProviderProcess) -> None:
    name = uuid.uuid4().hex[:8]
    address, subject = f"{name}@example.com", f"subject-{name}"
    claims = {"name": "Ada Lovelace", "email": address, "email_verified": True}
    identity_provider.person(subject, **claims)
    identity_provider.person(f"eve-{name}", name="Eve", email="eve@example.com", email_verified=True)
    made = suite.api("POST", "/templates/html", {"html": HTML, "name": "With proof"})
    assert [(one["type"], one["preferences"].get("method")) for one in made["fields"]] == [
        ("text", None),
        ("verification", "aes"),
    ]
    party = suite.api("POST", "/submissions", {"template_id": made["id"], "submitters": [{"email": address}]})[0]
    browser, stranger = Browser(suite, party["slug"]), Browser(suite, party["slug"])
    fields = browser.fields()
    own, who = fields["Identity"]["uuid"], fields["Who"]["uuid"]
    for forged in ({"values": {own: "verified"}}, {}):
        refused = browser.ask("complete", status=422, **{"values": {who: "Ada"}, **forged})
        assert refused["details"][0]["field"] == own
    refused = suite.api("PUT", f"/submitters/{party['id']}", {"values": {"Identity": "verified"}}, status=422)
    assert refused["details"][0]["field"] == "values.Identity"

    for who_signs_in, problem in ((None, "cancelled"), (f"eve-{name}", "other_person")):
        back = identity_provider.sign_in(browser.set_off(), who_signs_in)
        assert browser.come_back(back).headers["Location"] == f"/s/{party['slug']}#field={own}"
        assert browser.fields()["Identity"]["verification_problem"] == problem
    away = browser.set_off()
    assert parse_qs(urlsplit(away).query)["prompt"] == ["login"]
    back = identity_provider.sign_in(away, subject)
    assert back.startswith(f"{suite.base_url}/identity/callback?")
    lost = stranger.come_back(back)  # login CSRF, a stolen code: another browser
    assert (lost.status_code, party["slug"] in lost.text) == (403, False)
    assert browser.fields()["Identity"]["value"] is None
    assert browser.come_back(back).status_code == 303
    assert browser.fields()["Identity"]["verified_as"] == "Ada Lovelace"
    assert stranger.fields()["Identity"]["value"] == "verified"  # it is the form that is verified
    assert browser.come_back(back).status_code == 403  # once
    assert suite.api("GET", f"/submitters/{party['id']}")["values"] == {"Identity": "verified"}
    assert browser.ask("identity", status=409, field=own)["code"] == "conflict"
    browser.ask("complete", values={who: "Ada"})

    submission = completed(suite, party["submission_id"])
    assert submission["submitters"][0]["values"] == {"Who": "Ada", "Identity": "verified"}
    kinds = [one["event_type"] for one in submission["submission_events"]]
    order = [kind for kind in kinds if kind.endswith("_verification")]
    assert order == [*["start_verification", "fail_verification"] * 2, "start_verification", "complete_verification"]
    line = next(one for one in submission["submission_events"] if one["event_type"] == "complete_verification")
    assert line["submitter_id"] == party["id"]
    said = {"provider": "Acme Login", "issuer": identity_provider.url, "method": "aes", "subject": subject}
    assert line["data"].items() >= {**said, "identified_as": "Ada Lovelace"}.items()
    assert "Verified" in pdf_text(fetched(submission["documents"][0]["url"]))
    trail = " ".join(pdf_text(fetched(submission["audit_log_url"])).split())
    for text in ("IDENTITY VERIFIED", "Identity check failed", "Ada Lovelace", identity_provider.url, subject):
        assert text in trail, text
    told = wait_until(
        lambda: events_of(suite, "form.completed", submission_id=submission["id"]), what="form.completed is polled"
    )
    assert [one["values"]["Identity"] for one in told] == ["verified"]
    logs = "".join(log.read_text(errors="replace") for log in (suite.var_dir / "log").glob("*.log"))
    secrets = [value for name in ("code", "state") for value in parse_qs(urlsplit(back).query)[name]]
    assert not [secret for secret in (*secrets, SECRET, "Lovelace") if secret in logs]
    suite.api("DELETE", f"/submissions/{submission['id']}", params={"permanently": "true"})


def test_proofs_that_are_not_strong_enough_and_tags(suite: RunningSuite, identity_provider: ProviderProcess) -> None:
    """The provider does not say that it has vouched as a qualified signature needs it."""
    identity_provider.person("weak", name="Willy Weak")
    pdf = agreement_pdf(
        ["Proof: {{Card;type=verification;role=Signer;method=qes;required=false}}", "{{Who;role=Signer}}"]
    )
    made = suite.template(pdf, name="With tags", document={"fields": [PASSPORT]})
    found = {one["name"]: one for one in made["fields"]}
    assert (found["Card"]["type"], found["Card"]["preferences"]["method"]) == ("verification", "qes")
    party = suite.api("POST", "/submissions", {"template_id": made["id"], "submitters": [{"email": "w@example.com"}]})[
        0
    ]
    browser = Browser(suite, party["slug"])
    for name in ("Passport", "Card"):
        away = browser.set_off(name)
        assert parse_qs(urlsplit(away).query)["acr_values"] == ["urn:example:qes"]
    browser.come_back(identity_provider.sign_in(away, "weak"))
    assert browser.fields()["Card"]["verification_problem"] == "weak"
    browser.ask("complete", values={found["Who"]["uuid"]: "Willy"})  # it may be left out
    submission = completed(suite, party["submission_id"])
    assert submission["submitters"][0]["values"] == {"Card": None, "Who": "Willy", "Passport": None}
