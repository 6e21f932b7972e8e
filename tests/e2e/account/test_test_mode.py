"""Test mode: an integrator tries everything, nobody outside hears of it, and nothing live is seen, changed or removed by it."""

import base64
import hashlib
import json
import sqlite3
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support.clients import published
from tests.support.clients.keys import new_key
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, send, sign
from tests.support.material.outcomes import completed, fetched, mails_to, pdf_signatures, pdf_text
from tests.support.servers.receiver import Receiver
from tests.support.services.suite import RunningSuite, wait_until
from tests.support.services.tester import Tester

MARK = "TEST – no legal effect"


@pytest.fixture(scope="module")
def tester(sqlite_suite: RunningSuite) -> Tester:
    return Tester(sqlite_suite)


def test_each_mode_sees_its_own(sqlite_suite: RunningSuite, tester: Tester) -> None:
    suite = sqlite_suite
    begin = suite.api("GET", "/events", params={"limit": 1})["end"]
    real = suite.template(agreement_pdf(), name="Of both modes")
    live = send(suite, real["id"], send_email=False, order="random", name="Live one")[0]
    test = send(tester, real["id"], send_email=False, order="random", name="Live two")[0]
    assert (live["test"], test["test"]) == (False, True)
    made = tester.template(agreement_pdf(), name="Of tests", external_id=f"lease-{uuid.uuid4().hex}")
    assert (made["test"], real["test"]) == (True, False)

    for mine, others, reader in ((live, test, suite), (test, live, tester)):
        number, foreign = mine["submission_id"], others["submission_id"]
        assert reader.api("GET", f"/submissions/{number}")["test"] is mine["test"]
        for method, path, body in (
            ("GET", f"/submissions/{foreign}", None),
            ("GET", f"/submissions/{foreign}/documents", None),
            ("GET", f"/submissions/{foreign}/events", None),
            ("GET", f"/submissions/{foreign}/evidence", None),
            ("GET", f"/submitters/{others['id']}", None),
            ("PUT", f"/submissions/{foreign}", {"name": "Taken over"}),
            ("PUT", f"/submitters/{others['id']}", {"completed": True}),
            ("POST", f"/submissions/{foreign}/seal", {}),
            ("POST", f"/submissions/{foreign}/send_again", {}),
            ("POST", f"/submissions/{foreign}/certsign", {}),
            ("POST", f"/submissions/{foreign}/dutystamp", {}),
            ("DELETE", f"/submissions/{foreign}?permanently=true", None),
        ):
            assert reader.call(method, path, body).status_code == 404, (method, path)
        for path, params in (
            ("/submissions", {"q": "Live", "template_folder": "Default"}),
            ("/submissions", {"status": "pending"}),
            ("/submissions", {}),
            (f"/templates/{real['id']}/submissions", {}),
        ):
            found = everything(reader, path, after=live["submission_id"] - 1, **params)
            assert number in ids(found), path
            assert foreign not in ids(found), path
        submitters = ids(everything(reader, "/submitters", after=live["id"] - 1))
        assert mine["id"] in submitters
        assert others["id"] not in submitters
        assert reader.api("GET", "/submissions", params={"slug": others["slug"]})["data"] == []
        about = reader.api("GET", "/account/people/seller@example.com", params={"after": number - 1, "limit": 1})
        assert ids(about["data"]) == [number]
        assert not [mail for mail in about["messages"] if mail["submission_id"] == foreign]

        def told(reader: Any = reader, mode: bool = mine["test"]) -> list[int]:
            rows, after = list[Any](), begin
            while (page := reader.api("GET", "/events", params={"after": after, "limit": 100}))["data"]:
                rows, after = rows + page["data"], page["pagination"]["next"]
            created = [row["data"] for row in rows if row["event_type"] == "submission.created"]
            assert {one["test"] for one in created} <= {mode}
            return ids(created)

        wait_until(lambda wanted=number: wanted in told(), what="it is in the feed")
        assert foreign not in told()

    assert suite.call("GET", f"/templates/{made['id']}").status_code == 404
    assert made["id"] not in ids(everything(suite, "/templates", after=real["id"] - 1))
    assert {made["id"], real["id"]} <= set(ids(everything(tester, "/templates", after=real["id"] - 1)))


def test_a_test_key_changes_nothing_that_live_mode_uses(sqlite_suite: RunningSuite, tester: Tester) -> None:
    suite = sqlite_suite
    own_key = f"lease-{uuid.uuid4().hex}"
    real = suite.template(agreement_pdf(), name="Kept as it is", external_id=own_key)
    before = suite.api("GET", f"/templates/{real['id']}")["updated_at"]
    document = {"name": "other", "file": "JVBERi0xLjcK"}
    me = suite.api("GET", "/user")["id"]
    for method, path, body in (
        ("PUT", f"/templates/{real['id']}", {"name": "Changed"}),
        ("DELETE", f"/templates/{real['id']}?permanently=true", None),
        ("PUT", f"/templates/{real['id']}/documents", {"documents": [{**document, "position": 0}]}),
        ("PUT", "/account", {"company_name": "Changed"}),
        ("POST", "/users", {"email": "new@example.com"}),
        ("GET", f"/users/{me}/api_key", None),
        ("POST", f"/users/{me}/api_key", {}),
        ("POST", f"/users/{me}/keys", {"name": "Live", "scopes": ["send"]}),
        ("POST", "/tools/merge", {"files": ["JVBERi0xLjcK", "JVBERi0xLjcK"]}),
    ):
        assert tester.call(method, path, body).status_code == 403, (method, path)
    for method, path, body in (
        ("GET", "/test_data", None),
        ("DELETE", "/test_data", None),
        ("POST", "/test_clock", {"advance": "1d"}),
        ("GET", "/test_mails", None),
        ("GET", "/test_text_messages", None),
    ):
        assert suite.call(method, path, body).status_code == 403, (method, path)
    kept = {"preferences": {"bcc_completed": "bcc@example.com"}}
    send(tester, real["id"], send_email=False, **kept)
    clone = tester.api("POST", f"/templates/{real['id']}/clone", {})
    assert clone["test"] is True
    assert tester.api("PUT", f"/templates/{clone['id']}", {"name": "Mine"})["name"] == "Mine"
    assert suite.call("POST", f"/templates/{clone['id']}/clone", {}).status_code == 404
    people = [{"role": "Seller", "email": "a@example.com"}, {"role": "Buyer", "email": "b@example.com"}]
    refused = suite.call("POST", "/submissions", {"template_id": clone["id"], "submitters": people})
    assert refused.status_code == 404, "what is made from a test template is a test"

    taken = tester.template(agreement_pdf(), external_id=f"{own_key}-new")
    mine = suite.template(agreement_pdf(), external_id=f"{own_key}-new")
    assert mine["test"] is False, "nothing of test mode is in the way of live mode"
    assert tester.api("GET", f"/templates/{taken['id']}")["external_id"] is None
    elsewhere = tester.template(agreement_pdf(), external_id=f"{own_key}-far", folder_name="Elsewhere")
    assert suite.api("GET", "/templates", params={"external_id": f"{own_key}-far"})["data"] == []
    limited = new_key(suite, "templates", folders=["Leases"])["api_key"]
    pdf = {
        "documents": [{"name": "a", "file": base64.b64encode(agreement_pdf()).decode()}],
        "external_id": f"{own_key}-far",
    }
    mine = suite.api("POST", "/templates/pdf", pdf, key=limited)
    assert (mine["test"], mine["folder_name"]) == (False, "Leases"), "nor of a key that does not reach its folder"
    assert tester.api("GET", f"/templates/{elsewhere['id']}")["external_id"] is None
    assert suite.api("GET", f"/templates/{real['id']}")["updated_at"] == before


def test_who_comes_by_a_shared_link_of_a_test_template_makes_a_test(sqlite_suite: RunningSuite, tester: Tester) -> None:
    template = tester.template(agreement_pdf(["{{Name;role=Guest}}"]), name="For visitors")
    page = requests.get(f"{sqlite_suite.base_url}/d/{template['slug']}", timeout=60)
    assert "Test mode" in page.text
    started = sqlite_suite.page(
        "POST", f"/d/{template['slug']}/start", {"email": "visitor@example.com", "request_id": "1"}
    )
    slug = started["url"].rpartition("/s/")[2].partition("?")[0]
    (made,) = tester.api("GET", "/submitters", params={"slug": slug})["data"]
    assert made["test"] is True
    assert sqlite_suite.api("GET", "/submitters", params={"slug": slug})["data"] == []


def test_an_agreement_is_walked_to_its_end_and_nobody_hears_of_it(sqlite_suite: RunningSuite, tester: Tester) -> None:
    """Poppler finds the mark on every page, and the signature sound."""
    suite = sqlite_suite
    with Receiver() as of_live, Receiver() as of_tests:
        live = suite.api("POST", "/webhooks", {"url": of_live.url, "events": ["submission.completed"]}, status=201)
        hook = tester.api("POST", "/webhooks", {"url": of_tests.url, "events": ["submission.completed"]}, status=201)
        assert (live["test"], hook["test"]) == (False, True)
        assert suite.call("GET", f"/webhooks/{hook['id']}").status_code == 404
        assert live["id"] not in ids(everything(tester, "/webhooks"))
        pages = agreement_pdf()
        template = tester.template(pages, name="Walked")
        address = f"seller.{uuid.uuid4().hex[:8]}@example.com"
        people = [
            {"role": "Seller", "email": address, "phone": "+43664123456", "send_sms": True},
            {"role": "Buyer", "email": "b@example.com"},
        ]
        for wish in ("certsign", "dutystamp"):
            body = {"template_id": template["id"], "submitters": people, wish: {"enabled": True}}
            answer = tester.call("POST", "/submissions", body)
            assert (answer.status_code, wish in answer.text) == (422, True), answer.text
        body = {"template_id": template["id"], "submitters": people, "order": "random"}
        seller, buyer = tester.api("POST", "/submissions", body)
        banner = requests.get(f"{suite.base_url}/s/{seller['slug']}", timeout=60).text
        assert "nothing that is signed here has legal effect" in banner
        sign(suite, seller["slug"], SELLER_VALUES)
        sign(suite, buyer["slug"], BUYER_VALUES)
        done = completed(tester, seller["submission_id"])
        (request,) = wait_until(lambda: of_tests.requests, what="the test's webhook was told")
        assert json.loads(request.body)["data"]["test"] is True
        assert of_live.requests == []
        suite.api("DELETE", f"/webhooks/{live['id']}")
        tester.api("DELETE", f"/webhooks/{hook['id']}")
    sealed, trail = fetched(done["documents"][0]["url"]), fetched(done["audit_log_url"])
    for file in (sealed, trail):
        for page in filter(None, pdf_text(file).split("\f")):
            assert page.count(MARK) >= 2, page
        said = pdf_signatures(file)
        assert "Signature is Valid" in said
        assert done["pades_level"] == "B-B"
    checked = requests.post(f"{suite.base_url}/verify", files={"file": ("lease.pdf", sealed)}, timeout=60).text
    assert 'data-kind="sealed"' in checked
    assert "nothing that is signed here has legal effect" in checked
    created = done["submission_events"][0]
    assert (created["event_type"], created["data"]["test"]) == ("create_submission", True)

    def mails() -> set[str]:
        about = {"submission_id": seller["submission_id"], "limit": 100}
        return {one["kind"] for one in tester.api("GET", "/test_mails", params=about)["data"] if one["state"] == "sent"}

    wait_until(lambda: {"invitation", "completed", "documents_copy"} <= mails(), what="the mails are there")
    (invitation, *_) = tester.api("GET", "/test_mails", params={"submission_id": seller["submission_id"]})["data"]
    assert any(seller["slug"] in link for link in invitation["links"])
    assert mails_to(suite, address), "and at /dev/mail, as everything is where there is no mail server"
    (sms,) = tester.api("GET", "/test_text_messages", params={"submission_id": seller["submission_id"]})["data"]
    assert seller["slug"] in sms["text"]


def test_a_published_client_walks_an_agreement_with_a_test_key(sqlite_suite: RunningSuite, tester: Tester) -> None:
    """And finds the mail on the page that shows what was kept."""
    suite = sqlite_suite
    python = published.PythonClient(f"{suite.base_url}/api", tester.api_key)
    script = published.JavaScriptClient(f"{suite.base_url}/api", tester.api_key)
    try:
        file = base64.b64encode(agreement_pdf(["{{Name;role=Guest}}"])).decode()
        template = python.call(
            "create_template_from_pdf", {"name": "From a client", "documents": [{"name": "lease", "file": file}]}
        )
        address = f"guest.{uuid.uuid4().hex[:8]}@example.com"
        asked = {"template_id": template["id"], "submitters": [{"role": "Guest", "email": address}]}
        (guest,) = script.call("create_submission", asked)["submitters"]
        sign(suite, guest["slug"], {"Name": "Ann"})
        wait_until(
            lambda: script.call("get_submission", guest["submission_id"])["status"] == "completed", what="completed"
        )
        wait_until(
            lambda: address in requests.get(f"{suite.base_url}/dev/mail", timeout=60).text, what="it is at /dev/mail"
        )
        live = published.JavaScriptClient(f"{suite.base_url}/api", suite.api_key)
        try:
            with pytest.raises(published.Refused, match=r"404|not found"):
                live.call("get_submission", guest["submission_id"])
        finally:
            live.close()
    finally:
        script.close()
        python.close()


def test_the_clock_is_moved_on_for_tests_alone(sqlite_suite: RunningSuite, tester: Tester) -> None:
    suite = sqlite_suite
    suite.api("PUT", "/account", {"reminders": {"first": "two_days", "second": "five_days", "third": None}})
    pdf = agreement_pdf(["{{Name;role=Guest}}"])
    template = suite.template(pdf, name="Of its time")["id"]
    until = "2036-06-30T22:00:00Z"

    def sent(api: Any, email: str, **more: Any) -> dict[str, Any]:
        one = {"template_id": template, "submitters": [{"email": email}], "expire_at": until, **more}
        (made,) = api.api("POST", "/submissions", one)
        return made  # type: ignore[no-any-return]

    live, waits = sent(suite, "live@example.com"), sent(tester, "waits@example.com")
    ends = sent(tester, "ends@example.com", preferences={"keep_days": 30})
    suite.api("PUT", "/account", {"reminders": None})
    before = suite.api("GET", f"/submissions/{live['submission_id']}")
    tester.api("PUT", f"/submissions/{ends['submission_id']}", {"archived": True})

    for body, field in (
        ({}, "advance"),
        ({"advance": "3 days"}, "advance"),
        ({"advance": "99999d"}, "advance"),
        ({"advance": "1d", "now": until}, "advance"),
        ({"now": "2020-01-01"}, "now"),
    ):
        refused = tester.api("POST", "/test_clock", body, status=422)
        assert refused["details"][0]["field"] == field, body
    moved = tester.api(
        "POST", "/test_clock", {"advance": "3d"}, headers={"Idempotency-Key": (again := uuid.uuid4().hex)}
    )
    assert moved["seconds"] == 259_200
    assert moved["due"]["reminders"] == 2, "whether each is still wanted is asked when it is due"
    assert tester.api("POST", "/test_clock", {"advance": "3d"}, headers={"Idempotency-Key": again}) == moved

    def reminded() -> list[dict[str, Any]]:
        about = {"submission_id": waits["submission_id"]}
        return [one for one in tester.api("GET", "/test_mails", params=about)["data"] if one["kind"] == "reminder"]

    (reminder,) = wait_until(reminded, what="the reminder was written")
    assert reminder["to"] == "waits@example.com"
    lines = tester.api("GET", f"/submissions/{waits['submission_id']}")
    assert lines["expire_at"] == "2036-06-27T22:00:00.000Z"
    (said,) = [line["data"] for line in lines["submission_events"] if line["event_type"] == "advance_test_clock"]
    assert (said["seconds"], said["expire_at"]) == (259_200, lines["expire_at"])

    assert tester.api("POST", "/test_clock", {"advance": "4w"})["due"]["erase"] == 1
    assert tester.call("GET", f"/submissions/{ends['submission_id']}").status_code == 404, "kept for 30 days"
    moved = tester.api(
        "POST", "/test_clock", {"now": tester.api("GET", f"/submissions/{waits['submission_id']}")["expire_at"]}
    )
    assert moved["due"]["expire"] == 1
    assert tester.api("GET", f"/submissions/{waits['submission_id']}")["status"] == "expired"
    page = requests.get(f"{suite.base_url}/s/{waits['slug']}", timeout=60).text
    assert 'data-state="expired"' in page
    wait_until(lambda: not any(tester.api("GET", "/test_data")["due"].values()), what="all that is due is done")
    after = suite.api("GET", f"/submissions/{live['submission_id']}")
    assert (after["expire_at"], after["status"]) == (before["expire_at"], "pending")
    assert "advance_test_clock" not in [line["event_type"] for line in after["submission_events"]]
    assert not [mail for mail in mails_to(suite, "live@example.com") if "eminder" in str(mail["subject"])]


def test_one_call_wipes_test_mode_and_nothing_live(sqlite_suite: RunningSuite, tester: Tester) -> None:
    suite = sqlite_suite
    secret = uuid.uuid4().hex
    real = suite.template(agreement_pdf(), name="Stays")
    made = tester.template(agreement_pdf([f"Of {secret}", "{{Name;role=Guest}}"]), name=f"Goes {secret}")
    copied = tester.api("POST", f"/templates/{real['id']}/clone", {"name": f"Copy {secret}"})
    kept = send(suite, real["id"], order="random", name="Stays")
    for party, values in zip(kept, (SELLER_VALUES, BUYER_VALUES), strict=True):
        sign(suite, party["slug"], values)
    live = completed(suite, kept[0]["submission_id"])
    parties = send(tester, copied["id"], order="random", name=f"Goes {secret}")
    for party, values in zip(parties, (SELLER_VALUES, BUYER_VALUES), strict=True):
        sign(suite, party["slug"], values)
    gone = completed(tester, parties[0]["submission_id"])
    (half,) = tester.api(
        "POST", "/submissions", {"template_id": made["id"], "submitters": [{"email": f"x.{secret}@example.com"}]}
    )
    rows = f"email\na.{secret}@example.com\nb.{secret}@example.com\n"
    tester.api(
        "POST",
        "/submissions/batch",
        status=202,
        params={"template_id": made["id"]},
        data=rows.encode(),
        headers={"Content-Type": "text/csv", "X-Auth-Token": tester.api_key},
    )
    wait_until(
        lambda: len(tester.api("GET", "/submissions", params={"q": secret, "limit": 50})["data"]) >= 2,
        what="rows became submissions",
    )
    files = [document["url"] for document in live["documents"]] + [live["audit_log_url"]]
    wait_until(lambda: len(mails_to(suite, "seller@example.com")) >= 2, what="the mails were written")
    before, bytes_before = about(suite, live["id"], real["id"]), [digest(fetched(url)) for url in files]
    assert before
    said = {*mentions(suite, secret)}
    assert said, "there is something to be wiped"

    wiped = tester.api("DELETE", "/test_data")
    assert wiped["submissions"] >= 4
    wait_until(
        lambda: (left := tester.api("GET", "/test_data"))["submissions"] + left["removing"] + left["batches"] == 0,
        what="nothing is left of test mode",
    )
    wait_until(lambda: not mentions(suite, secret, among=said), what="none that said anything of it does")
    wait_until(lambda: not mentions(suite, secret), what="no row and no file says anything of it")
    for number in (gone["id"], half["submission_id"]):
        assert tester.call("GET", f"/submissions/{number}").status_code == 404
        assert tester.call("GET", f"/submissions/{number}/erasure").status_code == 404
    assert tester.api("GET", "/test_mails", params={"submission_id": gone["id"]})["data"] == []
    assert requests.get(f"{suite.base_url}/s/{half['slug']}", timeout=60).status_code == 404
    assert tester.call("GET", f"/templates/{made['id']}").status_code == 404
    assert about(suite, live["id"], real["id"]) == before, "each row about what is live is as it was"
    assert [digest(fetched(url)) for url in files] == bytes_before
    again = send(suite, real["id"], send_email=False)
    assert again, "the live template is whole, though a test had a copy of it"
    assert tester.api("DELETE", "/test_data") == {"submissions": 0, "batches": 0}


def everything(api: Any, path: str, **params: Any) -> list[dict[str, Any]]:
    """All rows of a list."""
    rows: list[dict[str, Any]] = []
    more: dict[str, Any] = {}
    while (page := api.api("GET", path, params={"limit": 100, **params, **more}))["data"]:
        rows += page["data"]
        more = {"after": page["pagination"]["next"]}
    return rows


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return [row["id"] for row in rows]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _rows(suite: RunningSuite, among: set[str] | None = None) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Service, table and row of everything in the suite's databases; ``among``: in these tables alone."""
    for path in sorted(Path(suite.var_dir).rglob("*.db")) + sorted(Path(suite.var_dir).rglob("*.sqlite*")):
        if path.suffix in (".db", ".sqlite", ".sqlite3"):
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
                database.row_factory = sqlite3.Row
                names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
                for name in names:
                    wanted = among is None or f"{path.stem}.{name}" in among
                    if wanted and "fts" not in name and "_search" not in name:
                        for row in database.execute(f'SELECT * FROM "{name}"'):
                            yield path.stem, name, dict(row)


def about(suite: RunningSuite, submission_id: int, template_id: int) -> dict[str, str]:
    """The digests of the rows about a submission and a template, by service, table and content."""
    found = {}
    for service, table, row in _rows(suite):
        is_it = row.get("submission_id") == submission_id or (table == "submissions" and row.get("id") == submission_id)
        of_template = row.get("template_id") == template_id or (table == "templates" and row.get("id") == template_id)
        of_subject = row.get("subject") in (f"submission:{submission_id}", f"template:{template_id}")
        if (is_it or of_template or of_subject) and table not in ("outbox", "inbox"):
            key = f"{service}.{table}.{row.get('id') or row.get('position') or row.get('uuid') or row.get('sha256')}"
            found[key] = digest(repr(sorted(row.items())).encode())
    return found


def mentions(suite: RunningSuite, secret: str, among: set[str] | None = None) -> list[str]:
    """The tables whose rows say it, and the files of mails and documents that do; ``among``: of these tables alone."""
    found = [f"{service}.{table}" for service, table, row in _rows(suite, among) if secret in repr(row)]
    if among is not None:
        return found
    for folder in ("mail", "blobs"):
        for path in (Path(suite.var_dir) / folder).rglob("*"):
            of_a_day = "incoming" in path.parts  # uploads, which a sweep removes
            if path.is_file() and not of_a_day and secret.encode() in path.read_bytes():
                found.append(str(path))
    return found
