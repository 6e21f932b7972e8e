"""A document that an answer decides about: it comes and goes on the page, and only what is seen is sealed."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.forms import field
from tests.browser.signer import Signer
from tests.e2e.documents.test_templates import encoded
from tests.e2e.sending.test_one_off_submissions import completed
from tests.support.material.agreement import agreement_pdf
from tests.support.material.outcomes import fetched, pdf_text
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser
COMPANY = "5f0c3c0e-0000-4000-8000-00000000c0de"


def test_an_annex_for_companies(suite: RunningSuite, open_page: OpenPage) -> None:
    """The annex comes first in the file order, so that the page begins with what is not there. One signer keeps it, the other
    does not; a template by PUT says the same as documents of its own."""
    annex = {
        "name": "Annex",
        "file": encoded(agreement_pdf(["Annex for companies"])),
        "fields": [field("Register number", line=2)],
    }
    contract = {
        "name": "Contract",
        "file": encoded(agreement_pdf(["The contract"])),
        "fields": [field("As a company", "checkbox", line=2, required=False, uuid=COMPANY), field("Name", line=4)],
    }
    made = suite.api("POST", "/templates/pdf", {"name": "Deal", "documents": [annex, contract]})
    assert [one["conditions"] for one in made["schema"]] == [[], []]
    wrong = {
        "schema": [
            {
                "attachment_uuid": made["schema"][0]["attachment_uuid"],
                "conditions": [{"field_uuid": "x", "action": "checked"}],
            }
        ]
    }
    refused = suite.api("PUT", f"/templates/{made['id']}", wrong, status=422)
    assert [one["field"] for one in refused["details"]] == ["schema[0].conditions[0].field_uuid"]
    condition = {"field_uuid": COMPANY, "action": "checked"}
    change = {"schema": [{"attachment_uuid": made["schema"][0]["attachment_uuid"], "conditions": [condition]}]}
    kept = suite.api("PUT", f"/templates/{made['id']}", change)
    assert [[one["field_uuid"] for one in item["conditions"]] for item in kept["schema"]] == [[COMPANY], []]

    submissions = [
        {"template_id": made["id"], "submitters": [{"role": "Signer", "email": "a@example.com"}]} for _ in range(2)
    ]
    person, company = (suite.api("POST", "/submissions", body)[0] for body in submissions)
    results = {}
    for who, one in (("person", person), ("company", company)):
        page = open_page(f"/s/{one['slug']}")
        signer = Signer(page)
        signer.start()
        heading = page.get_by_role("heading", name="Annex", exact=True)
        expect(heading).to_be_hidden()
        shown = page.get_by_role("img", name="Page 1 of 1 of Contract").element_handle()
        page.wait_for_function("picture => picture.naturalWidth > 0", arg=shown)
        assert [step["name"] for step in signer.form()["fields"]] == ["Register number", "As a company", "Name"]
        signer.field("As a company").check()
        expect(heading).to_be_visible()
        if who == "person":
            signer.field("As a company").uncheck()
            expect(heading).to_be_hidden()
        else:
            page.locator(".box--text").first.click()
            signer.fill("Register number", "FN 4711")
        signer.next()
        signer.fill("Name", "Zoë Ångström")
        expect(page.locator(".sheet__value")).to_have_count({"person": 1, "company": 3}[who])
        signer.complete()
        found = completed(suite, one["submission_id"])
        results[who] = {document["name"]: pdf_text(fetched(document["url"])) for document in found["documents"]}
    assert list(results["person"]) == ["Contract"]
    assert list(results["company"]) == ["Annex", "Contract"]
    assert "FN 4711" in results["company"]["Annex"]
    assert all("Zoë Ångström" in found["Contract"] for found in results.values())
