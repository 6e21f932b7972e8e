"""What was erased is in no file of the installation any more: not in a table, not in what a database keeps beside its tables."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, send, sign
from tests.support.material.outcomes import completed
from tests.support.servers.receiver import Receiver
from tests.support.services.suite import RunningSuite, wait_until

CANARY = "ꙮ\N{EGYPTIAN HIEROGLYPH D058}\N{CUNEIFORM SIGN KASKAL}"
"""Nobody else writes these three, and an index of trigrams has them as one term."""

BROKERS_OWN = "rabbitmq"
"""The broker's folder: what it keeps of messages that were taken is its own to overwrite (see the RUNBOOK)."""


def files_with(folder: Path, needle: bytes) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and BROKERS_OWN not in path.parts:
            try:
                found = needle in path.read_bytes()
            except FileNotFoundError:
                continue  # removed meanwhile
            if found:
                yield str(path.relative_to(folder))


def test_nothing_of_an_erased_submission_is_left_in_the_files(sqlite_suite: RunningSuite) -> None:
    suite = sqlite_suite
    folder = suite.var_dir
    with Receiver() as receiver:
        hook = suite.api("POST", "/webhooks", {"url": receiver.url, "events": ["form.completed"]}, status=201)
        template = suite.template(agreement_pdf())
        wanted: dict[str, Any] = {"name": f"{CANARY} agreement"}
        done, begun = (send(suite, template["id"], **wanted) for _ in range(2))
        for submitter, values in zip(done, (SELLER_VALUES, BUYER_VALUES), strict=True):
            text = {name: f"{CANARY} {value}" for name, value in values.items() if name in ("Company", "Full name")}
            sign(suite, submitter["slug"], {**values, **text})
        sign(suite, begun[0]["slug"], {**SELLER_VALUES, "Company": CANARY})
        ids = [done[0]["submission_id"], begun[0]["submission_id"]]
        completed(suite, ids[0])
        wait_until(lambda: len(receiver.requests) >= 3, what="the deliveries")
        suite.api("DELETE", f"/webhooks/{hook['id']}")
    needle = CANARY.encode()
    before = set(files_with(folder, needle))
    assert {Path(one).name.partition(".")[0] for one in before} >= {"submissions", "webhooks", "notifications"}
    for number in ids:
        removed = suite.api("DELETE", f"/submissions/{number}", params={"permanently": "true"})
        assert removed["erasure"]["storage"] == "overwritten"
    wait_until(lambda: not list(files_with(folder, needle)), what="that nothing is left")


@pytest.mark.parametrize("suite", ["postgresql"], indirect=True)
def test_the_receipt_says_what_the_database_leaves(suite: RunningSuite) -> None:
    made = send(suite, suite.template(agreement_pdf())["id"])[0]["submission_id"]
    assert suite.api("DELETE", f"/submissions/{made}")["erasure"] is None
    removed = suite.api("DELETE", f"/submissions/{made}", params={"permanently": "true"})
    assert removed["archived_at"] is None
    assert removed["erasure"]["storage"] == "left_to_vacuum"
    assert removed["erasure"]["at"]
