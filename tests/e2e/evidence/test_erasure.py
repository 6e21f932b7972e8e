"""What was erased is in no file of the installation any more: not in a table, not in what a database keeps beside its tables."""

import base64
import hashlib
import re
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import requests
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.blobs import INCOMING
from contracts.runtime.data.database import Database
from deploy.services import SERVICES
from tests.e2e.conftest import ON_BOTH_DATABASES
from tests.support.material.agreement import (
    BUYER_TAGS,
    BUYER_VALUES,
    SELLER_TAGS,
    SELLER_VALUES,
    agreement_pdf,
    send,
    sign,
)
from tests.support.material.outcomes import completed, mails_to
from tests.support.servers.receiver import Receiver
from tests.support.services.suite import RunningSuite, wait_until

CANARY = "ꙮ\N{EGYPTIAN HIEROGLYPH D058}\N{CUNEIFORM SIGN KASKAL}"
"""Nobody else writes these three, and an index of trigrams has them as one term."""

BROKERS_OWN = "rabbitmq"
"""The broker's folder: what it keeps of messages that were taken is its own to overwrite (see the RUNBOOK)."""


def files_with(folder: Path, needle: bytes) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if is_in(path, needle)}


def is_in(path: Path, needle: bytes) -> bool:
    try:
        return path.is_file() and BROKERS_OWN not in path.parts and needle in path.read_bytes()
    except FileNotFoundError:
        return False  # removed meanwhile


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
    before = files_with(folder, needle)
    assert {Path(one).name.partition(".")[0] for one in before} >= {"submissions", "webhooks", "notifications"}
    for number in ids:
        removed = suite.api("DELETE", f"/submissions/{number}", params={"permanently": "true"})
        assert removed["erasure"]["storage"] == "overwritten"
    for name in before:  # looking everywhere takes long
        wait_until(lambda path=folder / name: not is_in(path, needle), what=f"that nothing is left in {name}")
    wait_until(lambda: not files_with(folder, needle), what="that nothing is left")


@pytest.mark.parametrize("suite", ["postgresql"], indirect=True)
def test_the_receipt_says_what_the_database_leaves(suite: RunningSuite) -> None:
    made = send(suite, suite.template(agreement_pdf())["id"])[0]["submission_id"]
    assert suite.api("DELETE", f"/submissions/{made}")["erasure"] is None
    removed = suite.api("DELETE", f"/submissions/{made}", params={"permanently": "true"})
    assert removed["archived_at"] is None
    assert removed["erasure"]["storage"] == "left_to_vacuum"
    assert removed["erasure"]["at"]


NAMED = {("submissions", "told"), ("submissions", "erasures"), ("rendering", "erasure_receipts")}
"""The events that say which documents were erased, for services that miss them: for EVENTS_KEPT_HOURS. And the receipt, which is
kept."""


def _rows(session: Session, query: sa.TextClause) -> Sequence[Any]:
    return session.execute(query).all()


Table = tuple[str, str]
"""A service, and the name of its table."""


def tables_with(suite: RunningSuite, texts: set[str], among: set[Table] | None = None) -> set[Table]:
    """The tables of all services in which one of the texts is found; ``among``: only these are looked into."""
    environment = suite.environment(suite.programs["gateway"])
    wanted = "|".join([*texts, *(text.encode().hex() for text in texts)])  # PostgreSQL writes bytes so
    found = set()
    for service in SERVICES if among is None else sorted({service for service, _ in among}):
        database = Database(environment[f"{service.upper()}_DATABASE_URL"])
        for table in sa.inspect(database.engine).get_table_names():
            if among is None or (service, table) in among:
                if database.engine.dialect.name == "postgresql":  # it looks itself
                    query = sa.text(f'SELECT 1 FROM "{table}" AS t WHERE CAST(t AS text) ~ :wanted LIMIT 1')
                    is_there = bool(database.read(_rows, query.bindparams(wanted=wanted)))
                else:
                    rows = database.read(_rows, sa.text(f'SELECT * FROM "{table}"'))
                    is_there = any(re.search(wanted, str(tuple(row))) for row in rows)
                if is_there:
                    found.add((service, table))
        database.dispose()
    return found


def keys(suite: RunningSuite) -> Iterator[tuple[str, Path]]:
    """Each file in the store, by its key; not those on their way, of which what was merged stays for a day."""
    root = suite.var_dir / "blobs"
    for path in root.rglob("*"):
        if path.is_file() and not path.is_relative_to(root / INCOMING):
            yield path.relative_to(root).as_posix(), path


def stored(suite: RunningSuite) -> dict[str, str]:
    """The SHA-256 of each file in the store, by its key."""
    files = {}
    for key, path in keys(suite):
        try:
            files[key] = hashlib.sha256(path.read_bytes()).hexdigest()
        except FileNotFoundError:
            continue  # removed meanwhile
    return files


def look_at(suite: RunningSuite, slug: str) -> None:
    """What a browser asks for: each page as a picture, in two sizes and formats, and as text."""
    form = suite.page("GET", f"/s/{slug}/form")
    for document in form["documents"]:
        for page in document["pages"]:
            for width, accepted in ((700, "image/webp,*/*"), (160, "image/png")):
                answer = requests.get(
                    f"{suite.base_url}{page['url']}?width={width}", headers={"Accept": accepted}, timeout=120
                )
                assert answer.status_code == 200, answer.text
        answer = requests.get(f"{suite.base_url}/s/{slug}/text/{document['uuid']}/1", timeout=120)
        assert answer.status_code == 200, answer.text


@ON_BOTH_DATABASES
def test_nothing_of_the_documents_of_an_erased_submission_is_left(suite: RunningSuite) -> None:
    """Two one-off submissions: a PDF that a third has brought along, too, with one that is its own, and HTML that became one
    file. Page pictures, texts, the pictures in mails and what HTML was laid out as go with them."""
    mark = uuid.uuid4().hex
    own, shared = (agreement_pdf([f"{text} {mark}", *SELLER_TAGS, *BUYER_TAGS]) for text in ("Own", "Shared"))
    people = [
        {"role": role, "email": f"{role}-{mark}@example.com", "name": f"{role} {mark}"} for role in ("Seller", "Buyer")
    ]

    def one_off(**body: Any) -> dict[str, Any]:
        kind = "html" if "html" in body["documents"][0] else "pdf"
        return suite.api("POST", f"/submissions/{kind}", {"submitters": people, **body})  # type: ignore[no-any-return]

    def document(data: bytes) -> dict[str, str]:
        return {"name": "agreement", "file": base64.b64encode(data).decode()}

    staying = one_off(documents=[document(shared)])
    look_at(suite, staying["submitters"][0]["slug"])
    before = stored(suite)
    going = one_off(documents=[document(own), document(shared)])
    texts = [
        f"<h1>{mark} {number}</h1>" + "".join(f"<p>{tag}</p>" for tag in tags)
        for number, tags in enumerate((SELLER_TAGS, BUYER_TAGS))
    ]
    merged = one_off(documents=[{"html": text, "name": "Page"} for text in texts], merge_documents=True)
    for made in (going, merged):
        for submitter, values in zip(made["submitters"], (SELLER_VALUES, BUYER_VALUES), strict=True):
            look_at(suite, submitter["slug"])
            sign(suite, submitter["slug"], values)
        completed(suite, made["id"])
    mails = wait_until(lambda: mails_to(suite, people[0]["email"]), what="the invitation")
    assert any(part.get_content_type() == "image/png" for part in mails[0].walk()), "it shows the first page"

    came = {key: sha256 for key, sha256 in stored(suite).items() if key not in before}
    digests = {sha256 for key, sha256 in came.items() if key.startswith("submissions/")} - {*before.values()}
    assert hashlib.sha256(own).hexdigest() in digests
    naming = {("submissions", "snapshots"), ("rendering", "result_sources")}
    assert tables_with(suite, digests, naming) == naming
    assert [key for key in came if key.startswith("rendering/")]
    for made in (going, merged):
        suite.api("DELETE", f"/submissions/{made['id']}", params={"permanently": "true"})
    # Looking everywhere takes long: first at those that have named them.
    for tables in (naming, None):
        wait_until(
            lambda among=tables: tables_with(suite, digests, among) <= NAMED, what="that no other table names them"
        )
    wait_until(lambda: not came.keys() & {key for key, _ in keys(suite)}, what="that all that came is gone")
    left = stored(suite)
    assert {
        key: sha256 for key, sha256 in before.items() if key.startswith(("rendering/", "submissions/"))
    }.items() <= left.items()
    assert not {*left.values()} & digests

    look_at(suite, staying["submitters"][0]["slug"])
    again = one_off(documents=[document(own)])
    look_at(suite, again["submitters"][0]["slug"])
