"""Headers on everything, own files, the local mails, the texts."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import brotli
import pytest

from contracts.errors import ServiceError, not_found
from contracts.rpc import notifications, submissions
from contracts.runtime.clock import now
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.types import Account, Page, Pagination
from deploy.suite import PROVIDER_MAILBOX
from services.gateway.pages import texts
from services.gateway.pages.answering.static_files import StaticFiles
from services.gateway.pages.app import create_pages, serves
from services.gateway.pages.mail import web_links
from tests.unit.gateway.pages.conftest import SLUG, MakePages, RecordingBus, Settings

PAGES = Path(texts.__file__).parent


@pytest.mark.parametrize(
    "path", ["/", f"/s/{SLUG}", f"/s/{SLUG}/form", "/s/x/y", "/nothing", "/favicon.ico", "/robots.txt"]
)
def test_headers_on_everything(client: Any, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
    assert "unsafe" not in policy
    assert policy.endswith("frame-ancestors 'none'")
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Robots-Tag"] == "noindex, nofollow"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "no-store" in headers["Cache-Control"] or "immutable" in headers["Cache-Control"]


def test_the_account_says_who_may_frame_a_signers_page_and_no_other(make_pages: MakePages) -> None:
    client = make_pages(Account(frame_ancestors=["https://app.example", "'self'"])).test_client()
    page = client.get(f"/s/{SLUG}")
    assert page.headers["Content-Security-Policy"].endswith("; frame-ancestors https://app.example 'self'")
    assert "X-Frame-Options" not in page.headers
    assert '<meta name="countersign-framers" content="https://app.example &#39;self&#39;">' in page.text
    for path in ("/", "/verify", f"/s/{SLUG}/form", "/static/175c4c/account.css", "/embed.js", "/nothing"):
        answer = client.get(path)
        assert answer.headers["Content-Security-Policy"].endswith("; frame-ancestors 'none'"), path
        assert answer.headers["X-Frame-Options"] == "DENY", path
        assert "countersign-framers" not in answer.text, path


def test_when_the_account_cannot_be_read_nobody_frames_a_page(bus: RecordingBus, blobs: BlobStore) -> None:
    def unreadable() -> Account:
        raise ServiceError("unavailable", "The database is not reachable")

    client = create_pages(Settings(), bus, blobs, lambda _token: False, account=unreadable).test_client()
    answer = client.get(f"/s/{SLUG}")
    assert answer.status_code == 200
    assert answer.headers["Content-Security-Policy"].endswith("; frame-ancestors 'none'")


def test_the_pages_have_the_colour_of_the_account(make_pages: MakePages) -> None:
    client = make_pages(Account(accent_color="#7a1fa2")).test_client()
    link = (
        '<link rel="stylesheet" href="/static/7a1fa2/account.css" media="not screen and (prefers-color-scheme: dark)">'
    )
    assert link in client.get(f"/s/{SLUG}").text  # on dark screens words in it could not be read
    assert "account.css" not in client.get("/verify").text
    sheet = client.get("/static/7a1fa2/account.css")
    assert sheet.mimetype == "text/css"
    assert sheet.text.startswith(":root{--accent:#7a1fa2;--accent-dark:rgb(89 23 118);")
    for wrong in ("7a1fa", "7A1FA2", "zzzzzz", "7a1fa2;}"):
        assert client.get(f"/static/{wrong}/account.css").status_code == 404
    assert "account.css" not in make_pages().test_client().get(f"/s/{SLUG}").text


@pytest.mark.parametrize("path", ["/embed.js", "/js/form.js"])
def test_what_other_sites_load_is_small_and_asked_for_again(client: Any, path: str) -> None:
    first = client.get(path, headers={"Accept-Encoding": "gzip"})
    assert len(gzip.decompress(first.data)) < 5 * 1024  # also when it is not compressed
    assert first.headers["Access-Control-Allow-Origin"] == "*"
    assert first.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    tag = first.headers["ETag"]
    same = client.get(path, headers={"Accept-Encoding": "gzip", "If-None-Match": tag})
    assert (same.status_code, same.data) == (304, b"")
    assert client.get(path, headers={"If-None-Match": tag}).status_code == 200  # in another coding other bytes


def test_no_page_needs_what_the_policy_forbids() -> None:
    """No inline script, style or handler, and nothing from another host, in any template."""
    for path in (PAGES / "templates").rglob("*.html"):
        source = path.read_text()
        for script in re.findall(r"<script[^>]*>", source):
            assert 'type="application/json"' in script or 'src="{{ own(script' in script, (path, script)
        assert not re.search(r"<style|\sstyle=|\son\w+=|https?://", source), path
    for path in (PAGES / "static").rglob("*.css"):
        assert not re.search(r"https?://|@import (?!\"\.\./\w+\.css\";\n)", path.read_text()), path


@pytest.mark.parametrize(("status", "text"), [(404, "nothing at this address"), (503, "not reachable right now")])
def test_a_person_gets_a_page_and_a_program_json(client: Any, bus: RecordingBus, status: int, text: str) -> None:
    error = not_found("Form")
    error.code = {404: "not_found", 503: "unavailable"}[status]
    bus.answers[submissions.form.OPEN_FORM] = error
    browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"
    page = client.get(f"/s/{SLUG}", headers={"Accept": browser})
    assert (page.status_code, page.mimetype) == (status, "text/html")
    assert text in page.text
    for accept in ("*/*", "application/json", None):
        answer = client.get(f"/s/{SLUG}/form", headers={"Accept": accept} if accept else {})
        assert (answer.status_code, answer.json["code"]) == (status, error.code)


def test_the_methods_that_there_are(client: Any) -> None:
    answer = client.delete(f"/s/{SLUG}")
    assert answer.status_code == 405
    assert "GET" in answer.headers["Allow"]


@pytest.mark.parametrize("as_modules", [False, True])
def test_own_files_are_kept_for_ever_under_the_address_of_their_content(
    make_pages: MakePages, as_modules: bool
) -> None:
    client = make_pages(pages_as_modules=as_modules).test_client()
    addresses = re.findall(r"/static/[0-9a-f]{16}/[\w/.]+", client.get(f"/s/{SLUG}").text)
    ending = "" if as_modules else ".min"
    names = [address.split("/", 3)[3] for address in addresses]
    assert names == [f"sheets/signing{ending}.css", f"form/main{ending}.js", "icon.svg"]
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code == 200
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    script = client.get(addresses[1])
    assert script.mimetype == "text/javascript"
    for coding, opened in (("gzip", gzip.decompress), ("br", brotli.decompress)):
        small = client.get(addresses[1], headers={"Accept-Encoding": coding})
        assert (small.headers["Content-Encoding"], small.headers["Vary"]) == (coding, "Accept-Encoding")
        assert opened(small.data) == script.data


def test_no_words_of_the_address_stand_beside_a_signers_secrets(client: Any) -> None:
    """A compressed answer tells by its length what repeats in it (http/encodings.py)."""
    for path in (f"/s/{SLUG}", f"/s/{SLUG}/form", f"/s/{SLUG}/results.json"):
        answer = client.get(
            f"{path}?guess=Zanzibar&receipt=Zanzibar", headers={"Referer": "https://a.example/Zanzibar"}
        )
        assert answer.status_code == 200
        assert "Zanzibar" not in answer.text


@pytest.mark.parametrize("name", ["form/main.js", "form/main.min.js"])
def test_while_an_update_is_under_way_another_versions_file_is_not_kept(client: Any, name: str) -> None:
    assert client.get(f"/static/0123456789abcdef/{name}").headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("name", ["form/nothing.js", "../app.py", "%2e%2e/app.py", "form/", "icons/../../app.py"])
def test_nothing_else_is_served_as_own_file(client: Any, name: str) -> None:
    assert client.get(f"/static/{StaticFiles().address(name='icon.svg').partition('/')[0]}/{name}").status_code in (
        404,
        308,
    )


@pytest.mark.parametrize(
    ("path", "ours"),
    [
        ("/", True),
        ("/s/x", True),
        ("/file/t/n", True),
        ("/dev/mail", True),
        ("/static/v/x", True),
        ("/submissions", False),
        ("/sx", False),
    ],
)
def test_which_paths_belong_to_the_pages(path: str, ours: bool) -> None:
    assert serves(path) is ours


def mail(number: int, **more: Any) -> dict[str, Any]:
    given = {"kind": "invitation", "to": "a@example.com", "subject": "Please <b>sign</b>", "state": "sent"}
    return {"id": number, **given, "attempts": 1, "created_at": now(), **more}


@pytest.fixture
def mailbox(bus: RecordingBus) -> None:
    bus.answers[notifications.LIST] = Page[notifications.Mail](
        data=[notifications.Mail(**mail(number)) for number in (1, 2)], pagination=Pagination(count=2)
    )
    sms = {"kind": "invitation", "to": "+14155550123", "state": "sent", "attempts": 1, "created_at": now()}
    said = "<b>Acme</b> asks you: https://sign.example/s/y javascript:alert(1)"
    bus.answers[notifications.LIST_PHONE_MESSAGES] = Page[notifications.PhoneMessage](
        data=[notifications.PhoneMessage(id=1, text=said, **sms)], pagination=Pagination(count=1)
    )
    links = ["https://sign.example/s/x", "javascript:alert(1)"]
    text = notifications.MailText(**mail(2), text="Hello <i>", html="<script>alert(1)</script><p>Hi</p>", links=links)
    bus.answers[notifications.GET] = text


LOCAL = {"base_url": "http://localhost:8000", "trusted_proxies": "127.0.0.1/32,::1/128"}


@pytest.fixture
def local(make_pages: MakePages) -> Any:
    """An installation that is tried out on one machine."""
    return make_pages(**LOCAL).test_client()


@pytest.mark.usefixtures("mailbox")
def test_local_mails_newest_first(local: Any) -> None:
    page = local.get("/dev/mail").text
    assert page.index('href="/dev/mail/2"') < page.index('href="/dev/mail/1"')
    assert "Please &lt;b&gt;sign" in page


@pytest.mark.usefixtures("mailbox")
def test_local_text_messages_with_their_links(local: Any) -> None:
    page = local.get("/dev/mail").text
    assert '&lt;b&gt;Acme&lt;/b&gt; asks you: <a href="https://sign.example/s/y">https://sign.example/s/y</a>' in page
    assert 'href="javascript' not in page


@pytest.mark.usefixtures("mailbox")
def test_codes_of_the_local_provider_are_shown_with_the_text_messages(make_pages: MakePages, tmp_path: Path) -> None:
    client = make_pages(**LOCAL, var_dir=tmp_path).test_client()
    assert "certsign" not in client.get("/dev/mail").text
    (tmp_path / "mail").mkdir()
    lines = [
        json.dumps({"at": "2026-11-23", "to": "signer@example.com", "text": f"<b>{code}"})
        for code in ("111111", "222222")
    ]
    (tmp_path / "mail" / PROVIDER_MAILBOX).write_text("\n".join([*lines, '{"half": ']))
    page = client.get("/dev/mail").text
    assert page.index("&lt;b&gt;222222") < page.index("&lt;b&gt;111111")
    assert "<b>" not in page.partition("<main")[2]


@pytest.mark.usefixtures("mailbox")
def test_a_mail_is_shown_in_a_sandbox(local: Any) -> None:
    page = local.get("/dev/mail/2")
    assert 'href="https://sign.example/s/x"' in page.text
    assert "javascript:" not in page.text
    assert "Hello &lt;i&gt;" in page.text
    assert "frame-src 'self'" in page.headers["Content-Security-Policy"]
    html = local.get("/dev/mail/2/html")
    assert html.text.startswith('<base target="_blank">')
    policy = html.headers["Content-Security-Policy"]
    assert policy.startswith("sandbox ")
    assert "allow-scripts" not in policy
    assert "script-src" not in policy
    assert "X-Frame-Options" not in html.headers


@pytest.mark.usefixtures("mailbox")
@pytest.mark.parametrize("path", ["/dev/mail", "/dev/mail/2", "/dev/mail/2/html"])
def test_mails_are_shown_on_the_machine_itself_only(local: Any, path: str) -> None:
    for host in ("localhost", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]", "[::1]:8000"):
        assert local.get(path, headers={"Host": host}).status_code == 200, host
    for host in (
        "",
        "sign.example",
        "localhost.sign.example",
        "127.0.0.1.sign.example",
        "sign.example:127.0.0.1",
        "localhost:8000@sign.example",
        "192.168.0.2:8000",
        "localhost,sign.example",
    ):
        assert local.get(path, headers={"Host": host}).status_code == 403, host
    for name in ("X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Forwarded", "Via"):
        assert local.get(path, headers={name: "127.0.0.1"}).status_code == 403, name
    assert local.get(path, environ_base={"REMOTE_ADDR": "8.8.8.8"}).status_code == 403
    assert local.get(path, environ_base={"REMOTE_ADDR": "172.17.0.1"}).status_code == 200  # as in a container


@pytest.mark.usefixtures("mailbox")
@pytest.mark.parametrize(
    "settings",
    [
        {"base_url": "https://localhost:8000"},
        {"base_url": "HTTPS://sign.example"},
        {"trusted_proxies": "10.0.0.0/8"},
        {"trusted_proxies": "127.0.0.1/32,::1/128,192.168.7.1"},
        {"trusted_proxies": "0.0.0.0/0"},
    ],
)
def test_there_is_no_page_of_mails_where_others_may_come(make_pages: MakePages, settings: dict[str, str]) -> None:
    client = make_pages(**{**LOCAL, **settings}).test_client()
    for path in ("/dev/mail", "/dev/mail/2", "/dev/mail/2/html"):
        assert client.get(path).status_code == 404
    assert "/dev/mail" not in client.get("/").text


@pytest.mark.usefixtures("mailbox")
@pytest.mark.parametrize(("settings", "test"), [({}, None), ({"smtp_url": "smtp://mail.example"}, True)])
def test_beside_a_mail_server_there_are_the_mails_of_test_mode_alone(
    make_pages: MakePages, bus: RecordingBus, settings: dict[str, str], test: bool | None
) -> None:
    client = make_pages(**{**LOCAL, **settings}).test_client()
    for path in ("/dev/mail", "/dev/mail/2", "/dev/mail/2/html"):
        assert client.get(path).status_code == 200
    asked = [request for _, request in bus.asked]
    assert len(asked) == 4
    assert {request.test for request in asked} == {test}


def test_the_welcome_page_names_the_mails_when_there_are_some(local: Any) -> None:
    assert "/dev/mail" in local.get("/").text


@pytest.mark.usefixtures("mailbox")
@pytest.mark.parametrize("path", ["/", "/dev/mail"])
def test_pages_lead_to_the_providers_that_are_tried_here(make_pages: MakePages, path: str) -> None:
    where = {"local_provider_url": "http://127.0.0.1:8180", "local_stamp_issuer_url": "http://127.0.0.1:8181"}
    page = make_pages(**LOCAL, **where).test_client().get(path).text
    assert all(f'href="{url}"' in page for url in where.values())
    assert "127.0.0.1:818" not in make_pages(**LOCAL).test_client().get(path).text


def test_no_page_leads_to_local_providers_where_others_may_come(make_pages: MakePages) -> None:
    public = {**LOCAL, "base_url": "https://sign.example", "local_stamp_issuer_url": "http://127.0.0.1:8181"}
    assert "127.0.0.1:8181" not in make_pages(**public).test_client().get("/").text


def test_links_that_a_mail_may_lead_to() -> None:
    assert web_links(["http://a", "https://b", "javascript:x", "file:///etc"]) == ["http://a", "https://b"]
