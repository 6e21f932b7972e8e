"""Per-recipient branding: on that recipient's page, mails and stamp fields, and nowhere else."""

import base64
import html
import re
import uuid
from collections.abc import Iterator
from datetime import timedelta
from email.message import EmailMessage

import pytest
import requests

from contracts.rpc.submissions.api import PICTURES_IN_USE, AccountPictures
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.clock import now
from contracts.runtime.data.files.blobstore import BlobStore
from services.gateway.accounts.account_pictures import PREFIX
from tests.support.files.docx_files import docx, paragraph
from tests.support.material.agreement import agreement_pdf, sign
from tests.support.material.outcomes import completed, fetched, mails_to, pdf_text
from tests.support.servers.logos import BLUE, RED, LogoServer, share_of
from tests.support.services.suite import RunningSuite, wait_until


@pytest.fixture
def logos() -> Iterator[LogoServer]:
    with LogoServer() as server:
        yield server


@pytest.fixture
def template(suite: RunningSuite) -> int:
    fields = [
        {"name": f"{kind} {role}", "type": kind, "role": role, "areas": [{**area, "page": 1}]}
        for role, y in (("Seller", 0.2), ("Buyer", 0.6))
        for kind, area in (
            ("text", {"x": 0.1, "y": y, "w": 0.4, "h": 0.03}),
            ("stamp", {"x": 0.1, "y": y + 0.1, "w": 0.4, "h": 0.1}),
        )
    ]
    made = suite.template(agreement_pdf(["Agreement"]), name="Branded", document={"fields": fields})
    return int(made["id"])


def page(suite: RunningSuite, slug: str) -> tuple[str, bytes | None]:
    """Whose name is on the signing page, and the logo's bytes; it comes from us, whatever address it was given with."""
    answer = requests.get(f"{suite.base_url}/s/{slug}", timeout=120)
    assert answer.status_code == 200
    assert "img-src 'self' data: blob:" in answer.headers["Content-Security-Policy"]
    name = re.search(r'class="(?:top|card)__from">From ([^<]*)<', answer.text)
    picture = re.search(r'class="(?:top|card)__logo" src="(/file/[^"]*)"', answer.text)
    assert name is not None
    found = None
    if picture is not None:
        got = requests.get(f"{suite.base_url}{html.unescape(picture[1])}", timeout=120)
        assert (got.status_code, got.headers["Content-Type"]) == (200, "image/png")
        found = got.content
    return html.unescape(name[1]), found


def logo_of(mail: EmailMessage) -> bytes | None:
    body = mail.get_body(("html",))
    assert body is not None
    shown = 'src="cid:logo"' in body.get_content()
    parts = [part for part in mail.walk() if part["Content-ID"] == "<logo>"]
    assert len(parts) == (1 if shown else 0)
    assert "/logo.png" not in body.get_content()  # nobody learns when the mail is read
    return parts[0].get_content() if parts else None


def test_one_recipient_sees_his_branding(suite: RunningSuite, template: int, logos: LogoServer) -> None:
    mark = uuid.uuid4().hex[:8]
    branded, plain = f"branded.{mark}@example.com", f"plain.{mark}@example.com"
    people = [
        {"role": "Seller", "email": branded, "company_name": "Ångström & Søn", "logo_url": f"{logos.root}/red.png"},
        {"role": "Buyer", "email": plain, "stamp_url": f"{logos.root}/blue.jpg"},
    ]
    seller, buyer = suite.api("POST", "/submissions", {"template_id": template, "submitters": people})
    assert seller["preferences"]["logo_url"] == f"{logos.root}/red.png"
    name, picture = page(suite, seller["slug"])
    assert name == "Ångström & Søn"
    assert picture is not None
    assert picture.startswith(b"\x89PNG")
    account = suite.api("GET", "/account")["name"]
    assert page(suite, buyer["slug"]) == (account, None)
    mail = wait_until(lambda: mails_to(suite, branded), what="the invitation")[0]
    assert (mail["From"].addresses[0].display_name, logo_of(mail)) == ("Ångström & Søn", picture)

    sign(suite, seller["slug"], {"text Seller": "Ann"})
    mail = wait_until(lambda: mails_to(suite, plain), what="the second invitation")[0]
    assert (mail["From"].addresses[0].display_name, logo_of(mail)) == (account, None)
    draft = suite.api("GET", f"/submissions/{seller['submission_id']}/documents")["documents"][0]
    assert share_of(RED, fetched(draft["url"])) > 0.01
    sign(suite, buyer["slug"], {"text Buyer": "Bob"})
    submission = completed(suite, seller["submission_id"])
    assert 0.01 < share_of(RED, fetched(submission["documents"][0]["url"])) < 0.06, (
        "the buyer's stamp is not the seller's"
    )
    assert share_of(BLUE, fetched(submission["documents"][0]["url"])) > 0.01, "their own stamp, without a logo"
    assert (
        share_of(RED, fetched(submission["audit_log_url"])) == share_of(BLUE, fetched(submission["audit_log_url"])) == 0
    )
    assert "Ångström" not in pdf_text(fetched(submission["audit_log_url"]))
    copies = wait_until(lambda: _both(suite, branded, plain), what="the copies")
    assert [logo_of(mail) for mail in copies] == [picture, None]
    assert page(suite, seller["slug"])[1] == picture
    assert logos.asked_for("/red.png") == 1


def test_a_whole_submission_of_word_is_branded(suite: RunningSuite, logos: LogoServer) -> None:
    """The only creating call that the specification gives branding at the top: for everybody who has none of their own."""
    tags = "{{A;type=text;role=Seller}} {{B;type=text;role=Buyer}} {{C;type=stamp;role=Buyer;width=200;height=80}}"
    body = {
        "documents": [{"name": "note", "file": base64.b64encode(docx(paragraph(tags))).decode()}],
        "submitters": [
            {"role": "Seller", "email": "s@example.com", "company_name": "Own Ltd"},
            {"role": "Buyer", "email": "b@example.com"},
        ],
        "order": "random",
        "send_email": False,
        "company_name": "Whole Ltd",
        "logo_url": f"{logos.root}/red.png",
        "stamp_url": f"{logos.root}/blue.jpg",
    }
    seller, buyer = suite.api("POST", "/submissions/docx", body)
    assert (page(suite, seller["slug"])[0], page(suite, buyer["slug"])[0]) == ("Own Ltd", "Whole Ltd")
    assert page(suite, seller["slug"])[1] == page(suite, buyer["slug"])[1] is not None
    sign(suite, seller["slug"], {"A": "a"})
    sign(suite, buyer["slug"], {"B": "b"})
    sealed = fetched(completed(suite, seller["submission_id"])["documents"][0]["url"])
    assert share_of(BLUE, sealed) > 0.001
    assert share_of(RED, sealed) == 0


def _account_pictures_in_use(suite: RunningSuite) -> list[bytes]:
    """Of those that were ever set, those that submissions show, asked as the gateway's background process asks."""
    settings = suite.environment(suite.programs["gateway"])
    blobs = BlobStore.from_url(settings["BLOB_URL"])
    there = blobs.older(PREFIX, now() + timedelta(seconds=1))
    client = RpcClient(settings["AMQP_URL"])
    try:
        keys = client.call(PICTURES_IN_USE, AccountPictures(keys=there)).keys
    finally:
        client.close()
    return [blobs.get(key) for key in keys]


def _both(suite: RunningSuite, *addresses: str) -> list[EmailMessage] | None:
    found = [mails_to(suite, address)[1:] for address in addresses]
    return [mails[0] for mails in found] if all(found) else None


def test_branding_is_changed_cleared_and_falls_back_to_the_account(
    suite: RunningSuite, template: int, logos: LogoServer
) -> None:
    people = [{"role": "Seller", "email": "s@example.com"}, {"role": "Buyer", "email": "b@example.com"}]
    wish = {"template_id": template, "submitters": people, "send_email": False, "order": "random"}
    red, blue = f"{logos.root}/red.png", f"{logos.root}/blue.jpg"
    try:
        changed = suite.api("PUT", "/account", {"company_name": "House", "logo_url": blue, "stamp_url": ""})
        assert (changed["company_name"], changed["logo_url"], changed["stamp_url"]) == ("House", blue, "")
        assert set(changed) & {"logo", "stamp"} == set()
        seller, buyer = suite.api("POST", "/submissions", {**wish, "company_name": "Both", "stamp_url": red})
        assert [page(suite, each["slug"])[0] for each in (seller, buyer)] == ["Both", "Both"]
        of_account = page(suite, seller["slug"])[1]
        assert of_account is not None
        assert logos.asked_for("/red.png") == 1, "one address in a request is asked once"
        refused = suite.api("PUT", "/account", {"name": "Half", "logo_url": f"{logos.root}/page.html"}, status=422)
        assert refused["details"][0]["field"] == "logo_url"
        assert suite.api("GET", "/account") == changed
    finally:
        suite.api("PUT", "/account", {"company_name": None, "logo_url": "", "stamp_url": None})
    assert suite.api("GET", "/account")["logo_url"] == ""
    suite.api("PUT", f"/submitters/{seller['id']}", {"logo_url": red, "company_name": "Mine"})
    name, picture = page(suite, seller["slug"])
    assert name == "Mine"
    assert picture not in (None, of_account)
    assert page(suite, buyer["slug"]) == ("Both", of_account), "what it was made under"
    assert of_account in _account_pictures_in_use(suite), "so it stays in the store"
    half = {"name": "Half", "logo_url": f"{logos.root}/bomb.png"}
    refused = suite.api("PUT", f"/submitters/{seller['id']}", half, status=422)
    assert refused["details"][0]["field"] == "logo_url"
    assert page(suite, seller["slug"]) == ("Mine", picture)
    cleared = suite.api("PUT", f"/submitters/{seller['id']}", {"logo_url": "", "company_name": "", "stamp_url": ""})
    assert not {"logo_url", "company_name", "stamp_url"} & set(cleared["preferences"])
    assert page(suite, seller["slug"]) == ("House", of_account)
    sign(suite, seller["slug"], {"text Seller": "Ann"})
    sign(suite, buyer["slug"], {"text Buyer": "Bob"})
    sealed = fetched(completed(suite, seller["submission_id"])["documents"][0]["url"])
    assert share_of(RED, sealed) > 0.01, "the buyer's own stamp"
    assert share_of(BLUE, sealed) > 0.01, "the account's, for the seller"


@pytest.mark.parametrize(
    "address",
    [
        "{root}/page.html",
        "{root}/drawing.svg",
        "{root}/bomb.png",
        "{root}/large.png",
        "{root}/empty.png",
        "{root}/missing.png",
        "http://10.0.0.1/logo.png",
        "http://169.254.169.254/latest/meta-data",
        "ftp://acme.example/logo.png",
        "javascript:alert(1)",
        "data:image/png;base64,iVBORw0KGgo=",
    ],
)
def test_what_is_no_logo_is_refused_by_name(
    sqlite_suite: RunningSuite, template_of_sqlite: int, logos: LogoServer, address: str
) -> None:
    suite = sqlite_suite
    url = address.format(root=logos.root)
    for key in ("logo_url", "stamp_url"):
        people = [{"role": "Seller", "email": "s@example.com"}, {"role": "Buyer", "email": "b@example.com", key: url}]
        body = {"template_id": template_of_sqlite, "submitters": people, "send_email": False}
        refused = suite.api("POST", "/submissions", body, status=422)
        assert refused["details"][0]["field"] == f"submitters[1].{key}", refused
    made = suite.api("GET", "/submissions", params={"template_id": template_of_sqlite})["data"]
    assert made == []


@pytest.fixture
def template_of_sqlite(sqlite_suite: RunningSuite) -> int:
    return int(sqlite_suite.copy_of_template(agreement_pdf(), name="Agreement")["id"])
