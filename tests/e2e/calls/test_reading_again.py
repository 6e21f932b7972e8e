"""Reads that are answered with 304, changes that are made only to what was read, and pages that lead to the next: with all services."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests

from contracts.links import expiry_of_answers
from tests.e2e.conftest import ON_BOTH_DATABASES
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, send, sign
from tests.support.material.outcomes import completed
from tests.support.services.suite import RunningSuite, wait_until

DAY = 86_400
"""``FILE_LINK_TTL``, as it is by default."""


@pytest.fixture
def submitters(suite: RunningSuite) -> list[dict[str, Any]]:
    """Without mails: each that leaves is a line of the trail, whenever that is."""
    template = suite.copy_of_template(agreement_pdf(), name="Lease that is read again")
    return send(suite, template["id"], send_email=False, order="random")


def read(suite: RunningSuite, path: str, known: str = "") -> requests.Response:
    answer = suite.call("GET", path, headers={"If-None-Match": known} if known else {})
    assert answer.status_code in (200, 304), answer.text
    return answer


def another_second(than: datetime) -> None:
    wait_until(lambda: datetime.now(UTC) > than + timedelta(seconds=1), what="another second")


@ON_BOTH_DATABASES
def test_what_nobody_has_changed_is_the_same_in_another_second(
    suite: RunningSuite, submitters: list[dict[str, Any]]
) -> None:
    """With links to documents, previews, sealed files and the audit trail in the answers. What somebody does changes them."""
    seller, buyer = submitters
    number = seller["submission_id"]
    sign(suite, seller["slug"], SELLER_VALUES)
    paths = [
        f"/submissions/{number}",
        f"/submissions/{number}/documents",
        f"/submitters/{seller['id']}",
        f"/submitters?submission_id={number}",
        f"/submissions?template_id={suite.api('GET', f'/submissions/{number}')['template']['id']}",
        f"/templates/{suite.api('GET', f'/submissions/{number}')['template']['id']}",
        "/templates?q=Lease+that+is+read+again",
        "/account",
    ]

    def unchanged() -> dict[str, str]:
        """The tags, after each was read again in another second."""
        while True:
            began = datetime.now(UTC)
            tags = {path: read(suite, path).headers["ETag"] for path in paths}
            another_second(began)
            again = {path: read(suite, path, tag).status_code for path, tag in tags.items()}
            if expiry_of_answers(began, DAY) == expiry_of_answers(datetime.now(UTC), DAY):
                assert again == dict.fromkeys(paths, 304)
                return tags  # else the links were renewed in between, as they are every six hours

    half = unchanged()
    sign(suite, buyer["slug"], BUYER_VALUES)
    completed(suite, number)
    whole = unchanged()
    same = {path for path in paths if half[path] == whole[path]}
    assert same == {path for path in paths if path.startswith(("/templates", "/account"))}


@ON_BOTH_DATABASES
@pytest.mark.parametrize("kind", ["templates", "submissions", "submitters", "webhooks"])
def test_one_of_many_who_have_read_the_same_changes_it(
    suite: RunningSuite, submitters: list[dict[str, Any]], kind: str
) -> None:
    seller = submitters[0]
    if kind == "webhooks":
        hook = suite.api(
            "POST", "/webhooks", {"url": "https://receiver.example/0", "events": ["form.viewed"]}, status=201
        )
        path, key, value = f"/webhooks/{hook['id']}", "url", "https://receiver.example/{}"
    else:
        template = suite.api("GET", f"/submissions/{seller['submission_id']}")["template"]
        numbers = {"templates": template["id"], "submissions": seller["submission_id"], "submitters": seller["id"]}
        path, key, value = f"/{kind}/{numbers[kind]}", "name", "Changed by {}"
    tag = read(suite, path).headers["ETag"]

    def change(number: int) -> requests.Response:
        return suite.call("PUT", path, {key: value.format(number)}, headers={"If-Match": tag})

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(change, range(6)))
    assert sorted(answer.status_code for answer in answers) == [200, 412, 412, 412, 412, 412]
    (winner,) = [number for number, answer in enumerate(answers) if answer.status_code == 200]
    now = read(suite, path)
    assert now.json()[key] == value.format(winner)
    assert {answer.json()["code"] for answer in answers if answer.status_code == 412} == {"precondition_failed"}

    if kind != "submitters":
        assert suite.call("DELETE", path, headers={"If-Match": tag}).status_code == 412
        assert read(suite, path, now.headers["ETag"]).status_code == 304
        assert suite.call("DELETE", path, headers={"If-Match": now.headers["ETag"]}).status_code == 200


def test_the_links_lead_through_a_list(suite: RunningSuite, submitters: list[dict[str, Any]]) -> None:
    number = submitters[0]["submission_id"]
    answer = suite.call("GET", f"/submitters?submission_id={number}&limit=1")
    seen: list[int] = []
    while "next" in answer.links:
        seen += [row["id"] for row in answer.json()["data"]]
        answer = requests.get(answer.links["next"]["url"], headers={"X-Auth-Token": suite.api_key}, timeout=120)
        assert answer.status_code == 200, answer.text
    assert (seen, answer.json()["data"]) == ([submitter["id"] for submitter in submitters], [])
