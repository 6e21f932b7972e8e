"""What the gateway's answers let a browser do, as a judge of Content-Security-Policies sees it."""

import re
from typing import Any

import requests

from tests.support.judges.pages.security_policies import weaknesses
from tests.support.material.agreement import agreement_pdf
from tests.support.services.suite import RunningSuite, wait_until

OF_OUR_OWN_SCRIPTS = "MEDIUM_MAYBE script-src 'self'"
"""It warns of files of strangers that our own address might give out as scripts, see ``test_files.py`` of the pages."""
OF_THE_VIEWER = "MEDIUM_MAYBE object-src 'self'"
"""Browsers show a PDF by an element that this allows, in an answer that is the PDF itself."""


def test_no_policy_of_any_page_has_a_weakness(suite: RunningSuite) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Agreement")
    parties: list[dict[str, Any]] = suite.api(
        "POST",
        "/submissions",
        {
            "template_id": template["id"],
            "submitters": [
                {"role": "Seller", "email": "ana@example.com"},
                {"role": "Buyer", "email": "bob@example.com"},
            ],
        },
    )
    mail = wait_until(lambda: _newest_mail(suite), what="a mail's page")
    paths = ["/", "/nothing", "/verify", "/embed.js", "/docs", "/reference", "/ops", "/dev/mail", mail, f"{mail}/html"]
    slugs = [parties[0]["slug"], "nobody"]
    paths += [f"/{page}/{slug}" for page in ("s", "e", "d") for slug in slugs]
    urls = [*(f"{suite.base_url}{path}" for path in paths), template["documents"][0]["url"]]
    policies = {url: requests.get(url, timeout=120).headers.get("Content-Security-Policy") for url in urls}
    assert None not in policies.values(), policies
    found = weaknesses(policy for policy in policies.values() if policy)
    left = {
        policy: [fault for fault in faults if not fault.startswith((OF_OUR_OWN_SCRIPTS, OF_THE_VIEWER))]
        for policy, faults in found.items()
    }
    assert not any(left.values()), left
    assert len(left) >= 5, "pages of each kind were looked at"


def test_the_judge_finds_what_a_weak_policy_lets_in() -> None:
    weak = "script-src 'self' 'unsafe-inline' https:"
    assert {fault.split()[0] for fault in weaknesses([weak])[weak]} >= {"HIGH"}


def _newest_mail(suite: RunningSuite) -> str | None:
    """Return the path of the page that shows a mail."""
    shown = re.search(r"/dev/mail/\d+", requests.get(f"{suite.base_url}/dev/mail", timeout=120).text)
    return shown[0] if shown else None
