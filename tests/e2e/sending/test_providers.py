"""Agreements that the account's providers sign and stamp, as callers, signers and admins see it: the way that goes well, a provider
that does not want to, and an operator who waits no longer."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from deploy.providers.csc import Provider
from deploy.providers.faults import Fault
from deploy.providers.stamp_issuer import StampIssuer
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, form, send, sign
from tests.support.material.outcomes import completed, events_of, fetched, mail_text, mails_to
from tests.support.servers.providers.csc_provider import running
from tests.support.services.suite import RunningSuite, wait_until

ADMIN = "admin@example.com"


@pytest.fixture
def provider(suite: RunningSuite, tmp_path: Path) -> Iterator[Provider]:
    """One that submissions ask only where they say so: the suite is also that of others."""
    with running(tmp_path) as there:
        settings = json.loads((tmp_path / "certsign.json").read_text())
        known = suite.api("PUT", "/account", {"certsign": {**settings, "enabled": False}})["certsign"]
        assert (known["problem"], known["authorization"]["has_client_secret"]) == (None, True)
        yield there
        suite.api("PUT", "/account", {"certsign": None})


def signed_by_all(suite: RunningSuite, template: int) -> tuple[dict[str, Any], str]:
    """A submission whose documents the provider is to sign, once everybody has signed; with the link of the last one."""
    seller, buyer = send(suite, template, certsign={"enabled": True}, send_email=False)
    sign(suite, seller["slug"], SELLER_VALUES)
    sign(suite, buyer["slug"], BUYER_VALUES)
    return suite.api("GET", f"/submissions/{seller['submission_id']}"), buyer["slug"]


def state(suite: RunningSuite, submission: dict[str, Any], status: str) -> dict[str, Any]:
    """The submission once its ``certsign_sign_status`` is this."""

    def found() -> dict[str, Any] | None:
        shown: dict[str, Any] = suite.api("GET", f"/submissions/{submission['id']}")
        return shown if shown["certsign_sign_status"] == status else None

    return wait_until(found, what=f"the provider's signature is {status}")


def signers(suite: RunningSuite, document: dict[str, Any]) -> list[str]:
    verified = suite.api("POST", "/tools/verify", {"file": base64.b64encode(fetched(document["url"])).decode()})
    assert verified["checksum_status"] == "valid"
    assert {(one["indication"], one["trust"]) for one in verified["signatures"]} == {("TOTAL-PASSED", "trusted")}
    return [one["signer_name"] for one in verified["signatures"]]


def told_once(suite: RunningSuite, kind: str, submission: dict[str, Any]) -> list[dict[str, Any]]:
    """``data`` of the events of this kind about a submission; pollers are shown them when their second is over."""
    told: list[dict[str, Any]] = wait_until(lambda: events_of(suite, kind, id=submission["id"]), what=kind)
    return told


def test_the_provider_signs_refuses_and_is_waited_for_no_longer(suite: RunningSuite, provider: Provider) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Agreement")["id"]
    subject = suite.api("GET", "/account")["certsign"]["subject"]
    tested = suite.api("POST", "/account/certsign/test")
    assert (tested["ok"], tested["problem"], tested["subject"]) == (True, None, subject)

    submission, _ = signed_by_all(suite, template)
    done = completed(suite, submission["id"])
    assert (done["certsign_sign_status"], done["certsign"]["subject"]) == ("signed", subject)
    (name,) = signers(suite, done["documents"][0])
    assert f"CN={name}" in subject
    (event,) = told_once(suite, "submission.completed", submission)
    assert event["certsign_sign_status"] == "signed"

    provider.faults.set([Fault("suspended")])
    first, slug = signed_by_all(suite, template)
    second, _ = signed_by_all(suite, template)
    for one in (first, second):
        failed = state(suite, one, "failed")
        assert (failed["status"], failed["sealing_status"], failed["completed_at"]) == ("pending", "sealing", None)
        assert failed["certsign"]["message"]
        assert len(told_once(suite, "submission.certsign_failed", one)) == 1
    assert form(suite, slug)["state"] == "completed"
    assert "waits for another service" in requests.get(f"{suite.base_url}/s/{slug}", timeout=120).text
    said = failed["certsign"]["message"]
    wait_until(lambda: [one for one in mails_to(suite, ADMIN) if said in mail_text(one)], what="a mail to the admin")

    waiving = {"certsign": {"enabled": False}}
    waived = suite.api("POST", f"/submissions/{second['id']}/seal", waiving)
    assert waived["certsign"]["waived_by"] == ADMIN
    done = completed(suite, second["id"])
    assert done["certsign_sign_status"] == "failed"
    assert signers(suite, done["documents"][0]) != [name]
    assert "waive_certsign" in [line["event_type"] for line in done["submission_events"]]
    suite.api("POST", f"/submissions/{second['id']}/seal", waiving, status=409)

    provider.faults.set([])
    assert suite.api("POST", f"/submissions/{first['id']}/certsign")["certsign_sign_status"] == "pending"
    done = completed(suite, first["id"])
    assert (done["certsign_sign_status"], signers(suite, done["documents"][0])) == ("signed", [name])
    suite.api("POST", f"/submissions/{first['id']}/certsign", status=409)
    for one in (first, second):
        assert len(told_once(suite, "submission.completed", one)) == 1


@pytest.fixture
def issuer(suite: RunningSuite, tmp_path: Path) -> Iterator[StampIssuer]:
    """It places stamps in a folder that the suite's operator allows."""
    shared = Path(suite.settings["RENDERING_STAMP_FOLDER"]) / tmp_path.name
    there = StampIssuer(tmp_path, shared=shared, key_type="ec-p256").start()
    known = suite.api("PUT", "/account", {"dutystamp": {**there.settings(), "wait_minutes": 0}})["dutystamp"]
    assert (known["problem"], known["balance"], known["has_password"]) == (None, there.books.quota, True)
    assert "4b" in known["categories"]
    yield there
    suite.api("PUT", "/account", {"dutystamp": None})
    there.stop()


def stamped_by_all(suite: RunningSuite, template: int, **wish: Any) -> int:
    """A submission that wants stamps, once everybody has signed."""
    seller, buyer = send(suite, template, dutystamp={"enabled": True, **wish}, send_email=False)
    sign(suite, seller["slug"], SELLER_VALUES)
    sign(suite, buyer["slug"], BUYER_VALUES)
    return int(seller["submission_id"])


def stamped(suite: RunningSuite, submission_id: int) -> dict[str, Any]:
    """The submission once stamps are on its documents."""

    def found() -> dict[str, Any] | None:
        shown: dict[str, Any] = suite.api(
            "GET", f"/submissions/{submission_id}", params={"include": "combined_document_url"}
        )
        return shown if shown["documents"] and shown["documents"][0]["stamped_at"] else None

    # Who was away is tried again within half a minute.
    return wait_until(found, what="stamps are on the documents")


def test_stamps_are_bought_once_and_put_on_whenever_they_can_be_had(suite: RunningSuite, issuer: StampIssuer) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Agreement")["id"]
    people = [{"role": role, "email": "s@example.com"} for role in ("Seller", "Buyer")]
    for wish, where in (
        ({"code_document": "99"}, "dutystamp.code_document"),
        ({"positions": [{"page": 1, "x": 5000, "y": 20}]}, "dutystamp.positions[0].x"),
        ({"positions": [{"page": 99}]}, "dutystamp.positions[0].page"),
    ):
        body = {"template_id": template, "submitters": people, "dutystamp": {"enabled": True, **wish}}
        assert suite.api("POST", "/submissions", body, status=422)["details"][0]["field"] == where
        tried = suite.api("POST", "/submissions?dry_run=true", body)
        assert [one["field"] for one in tried["problems"]] == [where]

    suite.api("PUT", "/account", {"dutystamp": {"enabled": False}})
    body = {"template_id": template, "submitters": people, "dutystamp": {"enabled": True}}
    (detail,) = suite.api("POST", "/submissions", body, status=422)["details"]
    assert detail == {"field": "dutystamp.enabled", "reason": "is switched off in the account"}
    suite.api("PUT", "/account", {"dutystamp": {"enabled": True}})

    issuer.fail("error_500", times=10_000)
    late = stamped_by_all(suite, template)
    done = completed(suite, late)
    assert (done["documents"][0]["stamped_at"], done["dutystamp"]["provider"]) == (None, "127.0.0.1")
    assert done["dutystamp_status"] in ("pending", "failed")
    issuer.fail("error_500")

    place = {"page": 1, "x": 400, "y": 60}
    prompt = stamped_by_all(suite, template, targets=["documents", "combined"], positions=[place])
    done = stamped(suite, prompt)
    assert (done["status"], done["dutystamp_status"]) == ("completed", "stamped")
    first = done["dutystamp"]["stamps"][0]
    assert (first["page"], round(first["x"]), round(first["y"]), first["code_document"]) == (1, 400, 60, "4b")
    assert len(signers(suite, done["documents"][0])) == len(signers(suite, {"url": done["combined_document_url"]})) == 2
    suite.api("POST", f"/submissions/{prompt}/dutystamp", status=409)

    retried = suite.call("POST", f"/submissions/{late}/dutystamp").status_code
    assert retried in (200, 409), "tried again by itself already, or now"
    again = stamped(suite, late)
    assert again["completed_at"] == suite.api("GET", f"/submissions/{late}")["completed_at"]
    for number in (late, prompt):
        for kind in ("submission.completed", "submission.stamped"):
            (event,) = told_once(suite, kind, {"id": number})
        assert event["documents"][0]["stamped_at"]
    ledger = suite.api("GET", "/account/dutystamps", params={"limit": 100})["data"]
    bought = {one["serial"]: one["submission_id"] for one in ledger}
    assert sorted(bought.values()) == [late, prompt, prompt]
    assert set(bought) == set(issuer.books.sold)
