"""The language of a page: which one a reader gets, and how they choose another."""

import re
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.languages.choosing import languages
from contracts.languages.saying import messages
from contracts.rpc import submissions
from services.gateway.pages import prepared, texts
from tests.unit.gateway.pages.conftest import SLUG, RecordingBus, signing_form

PAGES = Path(texts.__file__).parent


def test_every_message_that_is_asked_for_exists_and_every_message_is_asked_for() -> None:
    sources = [path.read_text() for kind in ("*.js", "*.html", "*.py") for path in PAGES.rglob(kind)]
    used = set(re.findall(r"\"([a-z]+\.[A-Za-z0-9_.%d]+)\"", " ".join(sources)))
    built = re.compile(
        r"verify\.(problem|signature)\.|verify\.[a-z_]+\.(title|text)|kind\.|progress\.party\.|(verification|confirm)\.problem\.|problem\.required\.|problem\.(small|straight)|saving\.|error\.|(decline|wrong_recipient)\.|[a-z_.]+\.approver$|signature\.(draw|type|upload)(_hint)?"
    )
    words = set(messages("en", texts.SECTION))
    unknown = {key for key in used if key.split(".")[0] in {word.split(".")[0] for word in words}} - words
    unknown -= set(messages("en", prepared.SECTION))  # that page has words of its own
    assert {key for key in unknown if "%" not in key and not key.endswith((".html", ".js"))} == set()
    assert {word for word in words - used if not built.match(word)} == set()


@pytest.mark.parametrize("accepted", ["de-AT,de;q=0.9", "en", "", "*", "de;q=0", "\xe4,;;q=x"])
def test_the_page_says_its_language(client: Any, accepted: str) -> None:
    spoken = "de" if accepted == "de-AT,de;q=0.9" and "de" in languages() else "en"
    assert f'<html lang="{spoken}" dir="ltr">' in client.get("/", headers={"Accept-Language": accepted}).text


def test_the_language_that_a_reader_chose_is_kept(client: Any) -> None:
    page = "/?a=1&b=2"
    assert '<input type="hidden" name="page" value="/?a=1&amp;b=2">' in client.get(page).text
    answer = client.post("/language", data={"lang": "qps", "page": page})
    assert (answer.status_code, answer.headers["Location"]) == (303, page)
    assert {"Path=/", "HttpOnly", "SameSite=Lax"} <= set(answer.headers["Set-Cookie"].split("; "))
    assert '<html lang="qps"' in client.get(page, headers={"Accept-Language": "en"}).text


@pytest.mark.parametrize(
    "page", ["//evil.example", "https://evil.example/", "/\\evil.example", "", "/x y", "/a\r\nX: y", "/" * 3000]
)
def test_choosing_a_language_leads_to_no_other_site(client: Any, page: str) -> None:
    assert client.post("/language", data={"lang": "en", "page": page}).headers["Location"] == "/"


@pytest.mark.parametrize("lang", ["", "xx", "en/../de", "EN", "\u0000"])
def test_a_language_that_there_is_not_is_refused(client: Any, lang: str) -> None:
    answer = client.post("/language", data={"lang": lang, "page": "/"})
    assert answer.status_code == 422
    assert answer.json["details"][0]["field"] == "lang"
    assert "Set-Cookie" not in answer.headers


def test_another_site_chooses_no_language(client: Any) -> None:
    answer = client.post("/language", data={"lang": "en", "page": "/"}, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("cookie", "party", "accepted", "spoken"),
    [
        (None, None, "qps", "qps"),
        (None, "qps", "en", "qps"),
        ("qps", "en", "en", "qps"),
        ("en", "qps", "qps", "en"),
        ("nonsense", "qps", "en", "qps"),
    ],
)
def test_what_was_chosen_comes_before_what_the_sender_said_and_that_before_the_browser(
    client: Any, bus: RecordingBus, cookie: str | None, party: str | None, accepted: str, spoken: str
) -> None:
    bus.answers[submissions.form.OPEN_FORM] = signing_form("expired", lang=party)
    if cookie:
        client.set_cookie(texts.CHOSEN, cookie, domain="localhost")
    page = client.get(f"/s/{SLUG}", headers={"Accept-Language": accepted}).text
    assert f'<html lang="{spoken}"' in page


def test_the_language_that_a_party_chose_is_stored_for_later_mails(client: Any, bus: RecordingBus) -> None:
    bus.answers[submissions.form.CHOOSE_LANGUAGE] = submissions.form.Done(state="open")
    answer = client.post("/language", data={"lang": "qps", "page": f"/s/{SLUG}"})
    assert answer.headers["Location"] == f"/s/{SLUG}"
    (command,) = bus.requests(submissions.form.CHOOSE_LANGUAGE)
    assert (command.slug, command.lang) == (SLUG, "qps")


def test_a_link_that_is_dead_keeps_nobody_from_choosing(client: Any, bus: RecordingBus) -> None:
    bus.answers[submissions.form.CHOOSE_LANGUAGE] = ServiceError("not_found", "Form not found")
    assert client.post("/language", data={"lang": "qps", "page": f"/s/{SLUG}"}).status_code == 303
