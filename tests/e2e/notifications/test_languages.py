"""``lang`` of submissions and submitters: kept, checked, and what mails are written in."""

import re

import pytest
import requests

from tests.support.material.agreement import agreement_pdf
from tests.support.material.outcomes import mail_text, mails_to
from tests.support.services.suite import RunningSuite, wait_until


def test_the_language_of_a_party_is_kept_and_spoken(suite: RunningSuite) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Lease of languages")
    people = [
        {"role": "Seller", "email": "lang.seller@example.com", "lang": "qps"},
        {"role": "Buyer", "email": "lang.buyer@example.com"},
    ]
    body = {"template_id": template["id"], "submitters": people, "lang": "en_gb", "order": "random"}
    seller, buyer = suite.api("POST", "/submissions", body)
    assert (seller["preferences"]["lang"], buyer["preferences"]["lang"]) == ("qps", "en-GB")
    marked = wait_until(lambda: mails_to(suite, "lang.seller@example.com"))[0]
    plain = wait_until(lambda: mails_to(suite, "lang.buyer@example.com"))[0]
    assert mail_text(marked).startswith("⟦Hello")
    assert "⟦" not in mail_text(plain)
    pages = [requests.get(f"{suite.base_url}/s/{one['slug']}", timeout=120).text for one in (seller, buyer)]
    assert [re.findall(r'<html lang="([^"]+)"', page) for page in pages] == [["qps"], ["en"]]
    changed = suite.api("PUT", f"/submitters/{buyer['id']}", {"lang": "qps"})
    assert changed["preferences"]["lang"] == "qps"
    assert "lang" not in suite.api("PUT", f"/submitters/{buyer['id']}", {"lang": ""})["preferences"]


@pytest.mark.parametrize("lang", ["xx", "English", "de_", "../de", 7])
def test_a_language_that_nobody_knows_is_refused_with_its_field(suite: RunningSuite, lang: object) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Lease of languages")
    person = {"role": "Seller", "email": "s@example.com", "lang": lang}
    for body, field in (
        ({"submitters": [person]}, "submitters[0].lang"),
        ({"submitters": [{**person, "lang": None}], "lang": lang}, "lang"),
    ):
        answer = suite.call("POST", "/submissions", {"template_id": template["id"], **body})
        assert answer.status_code == 422, answer.text
        assert answer.json()["details"][0]["field"] == field
