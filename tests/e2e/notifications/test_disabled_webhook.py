"""A receiver that is gone: its webhook is disabled, and every admin hears of it, not only the one who made it (decisions)."""

import contextlib
import uuid

from tests.support.material.agreement import agreement_pdf
from tests.support.material.outcomes import mail_text, mails_to
from tests.support.servers.receiver import Receiver
from tests.support.services.suite import RunningSuite, wait_until


def test_every_admin_hears_of_a_disabled_webhook(suite: RunningSuite) -> None:
    address = f"second-{uuid.uuid4().hex[:10]}@example.com"
    other = suite.api("POST", "/users", {"email": address, "first_name": "Grace", "role": "admin"}, status=201)
    try:
        with Receiver(lambda _: (410, {}, b"")) as receiver:

            def told() -> bool:
                """Who is an admin goes by event: the first webhook may be disabled before it has arrived, so that another one
                is made after a while."""
                suite.api("POST", "/webhooks", {"url": receiver.url, "events": ["template.created"]}, status=201)
                suite.copy_of_template(agreement_pdf(), name="Told of")
                with contextlib.suppress(AssertionError):
                    wait_until(lambda: mails_to(suite, address), within=5)
                return bool(mails_to(suite, address))

            wait_until(told, what="the mail to the other admin")
        assert receiver.url in mail_text(mails_to(suite, address)[0])
    finally:
        suite.api("DELETE", f"/users/{other['id']}")
