"""``go_to_last``: Start leads to what is still to be filled in, or to the first field."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.forms import field, template
from tests.browser.signer import Signer
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser


def test_start_leads_where_the_sender_wants(suite: RunningSuite, open_page: OpenPage) -> None:
    made = template(suite, field("Name"), field("City", line=1), field("Job", line=2))
    expected = {True: ("City", "2 of 3"), False: ("Name", "1 of 3"), None: ("Name", "1 of 3")}
    for wanted, (label, progress) in expected.items():
        person = {"role": "Signer", "email": "s@example.com", "values": {"Name": "Ann"}, "go_to_last": wanted}
        (row,) = suite.api("POST", "/submissions", {"template_id": made, "submitters": [person], "send_email": False})
        page = open_page(f"/s/{row['slug']}")
        signer = Signer(page)
        signer.start()
        expect(signer.field(label)).to_be_focused()
        expect(page.locator(".progress__text")).to_have_text(progress)
        if wanted is None:
            signer.fill("Name", "Anna")
            signer.saved()
            signer = Signer(open_page(f"/s/{row['slug']}"))  # another browser, another day
            signer.start()
            expect(signer.field("City")).to_be_focused()
    suite.api("PUT", f"/submitters/{row['id']}", {"go_to_last": False})
    signer = Signer(open_page(f"/s/{row['slug']}"))
    signer.start()
    expect(signer.field("Name")).to_be_focused()
