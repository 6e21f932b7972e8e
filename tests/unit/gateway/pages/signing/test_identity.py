"""The way to the identity provider and back: what the browser keeps, who may come back, where it leads."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from contracts.errors import ServiceError
from contracts.rpc import submissions
from contracts.rpc.submissions.signing.identity import IdentityCheckClaimed, IdentityCheckFinished, IdentityCheckStarted
from contracts.runtime.clock import now
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.http.outbound import Outbound
from services.gateway.identity.provider import IdentityProvider, ProviderSettings, digest_of
from services.gateway.pages.app import create_pages
from tests.support.servers.identity_provider import CLIENT, Provider
from tests.unit.gateway.pages.conftest import SLUG, RecordingBus, Settings, signing_form

FIELD = "5f0c7d9e-1111-4222-8333-444455556666"


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    provider.claims = {"name": "Ada Lovelace", "email": "ada@example.com", "email_verified": True}
    yield provider
    provider.close()


@pytest.fixture
def answering(bus: RecordingBus, provider: Provider) -> RecordingBus:
    until = now() + timedelta(minutes=15)
    bus.answers[submissions.identity.START_IDENTITY_CHECK] = IdentityCheckStarted(expires_at=until)
    claimed = IdentityCheckClaimed(slug=SLUG, field=FIELD, issuer=provider.url, usable=True)
    bus.answers[submissions.identity.CLAIM_IDENTITY_CHECK] = claimed
    bus.answers[submissions.identity.FINISH_IDENTITY_CHECK] = IdentityCheckFinished()
    return bus


def pages(bus: RecordingBus, provider: Provider, **more: Any) -> Any:
    said = {"scopes": "openid", "acr_values": {}, "any_email": False, "name": "Acme Login", "secret": None, **more}
    settings = ProviderSettings(issuer=provider.url, client_id=CLIENT, **said)
    base = "http://localhost/sign"
    own = IdentityProvider(settings, Outbound("127.0.0.0/8"), "secret of the links", base)
    blobs = BlobStore.from_url("file:///nowhere")
    return create_pages(Settings(base_url=base), bus, blobs, lambda _: False, identity_provider=own)


@pytest.fixture
def client(answering: RecordingBus, provider: Provider) -> Any:
    return pages(answering, provider).test_client()


def begun(client: Any, provider: Provider) -> str:
    """Send the signer to the provider; return the state of the attempt."""
    answer = client.post(f"/s/{SLUG}/identity", json={"field": FIELD, "time_zone": "Europe/Vienna"})
    assert answer.status_code == 200, answer.text
    provider.authorize(answer.json["url"])
    keep_cookies(client, answer)
    return provider.authorized["state"]


def keep_cookies(client: Any, answer: Any) -> None:
    """As a browser does; the test client keeps no cookies of another path than those that it asks for."""
    for cookie in answer.headers.getlist("Set-Cookie"):
        assert "HttpOnly" in cookie
        name, _, value = cookie.partition(";")[0].partition("=")
        client.set_cookie(name, value, path="/identity")


def come_back(client: Any, state: str, **said: str) -> Any:
    return client.get("/identity/callback", query_string={"code": "the-code", "state": state, **said})


def test_the_signer_is_sent_with_an_attempt_that_only_his_browser_can_finish(
    client: Any, answering: RecordingBus, provider: Provider
) -> None:
    answer = client.post(f"/s/{SLUG}/identity", json={"field": FIELD}, headers={"User-Agent": "Browser"})
    asked = parse_qs(urlsplit(answer.json["url"]).query)
    (state,) = asked["state"]
    (command,) = answering.requests(submissions.identity.START_IDENTITY_CHECK)
    assert (command.slug, command.field, command.user_agent) == (SLUG, FIELD, "Browser")
    assert (command.issuer, command.provider) == (provider.url, "Acme Login")
    assert command.state_digest == digest_of(state)
    assert state not in command.model_dump_json()
    cookie = answer.headers["Set-Cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Lax", "Path=/sign/identity", "Expires="))
    assert state not in cookie
    assert cookie.partition("=")[2].partition(";")[0] not in answer.json["url"]


def test_he_comes_back_to_the_field_and_the_service_hears_who_he_is(
    client: Any, answering: RecordingBus, provider: Provider
) -> None:
    state = begun(client, provider)
    answer = come_back(client, state)
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/sign/s/{SLUG}#field={FIELD}")
    assert "Expires=" in answer.headers["Set-Cookie"]
    (claim,) = answering.requests(submissions.identity.CLAIM_IDENTITY_CHECK)
    (told,) = answering.requests(submissions.identity.FINISH_IDENTITY_CHECK)
    assert claim.state_digest == told.state_digest == digest_of(state)
    assert (told.slug, told.problem, told.any_email) == (SLUG, None, False)
    assert (told.identity.name, told.identity.email) == ("Ada Lovelace", "ada@example.com")


def test_who_began_on_a_device_that_was_handed_to_them_comes_back_to_its_link(
    client: Any, answering: RecordingBus, provider: Provider
) -> None:
    """The service names the party's own link, which nobody reads on a device of somebody else."""
    answer = client.post("/s/of-the-device/identity", json={"field": FIELD})
    provider.authorize(answer.json["url"])
    keep_cookies(client, answer)
    back = come_back(client, provider.authorized["state"])
    assert back.headers["Location"] == f"/sign/s/of-the-device#field={FIELD}"
    assert not any(SLUG in value for _, value in back.headers)
    assert all("Expires=" in cookie for cookie in back.headers.getlist("Set-Cookie"))
    state = begun(client, provider)
    client.delete_cookie(f"identity_{digest_of(state)[:16]}_page", path="/identity")
    without = come_back(client, state, error="access_denied")
    assert (without.status_code, SLUG in f"{without.text} {without.headers}") == (403, False)


def test_what_went_wrong_is_told_too(answering: RecordingBus, provider: Provider) -> None:
    client = pages(answering, provider, any_email=True).test_client()
    assert come_back(client, begun(client, provider), error="access_denied").status_code == 303
    provider.claims["nonce"] = "another"
    assert come_back(client, begun(client, provider)).status_code == 303
    cancelled, failed = answering.requests(submissions.identity.FINISH_IDENTITY_CHECK)
    assert (cancelled.problem, cancelled.identity, cancelled.any_email) == ("cancelled", None, True)
    assert (failed.problem, failed.identity) == ("failed", None)


def test_nobody_else_can_finish_an_attempt(client: Any, answering: RecordingBus, provider: Provider) -> None:
    """Another browser, a state that nobody began, a cookie of another attempt: the provider is not even asked."""
    state = begun(client, provider)
    stranger = pages(answering, provider).test_client()
    lost = [come_back(stranger, state), come_back(client, "never begun"), client.get("/identity/callback")]
    lost += [come_back(client, "x" * 300), come_back(client, "é"), client.get("/identity/callback?code=a")]
    other = begun(stranger, provider)
    mine = client.get_cookie(f"identity_{digest_of(state)[:16]}", path="/identity")
    stranger.set_cookie(f"identity_{digest_of(other)[:16]}", mine.value, path="/identity")
    lost.append(come_back(stranger, other))
    for answer in lost:
        assert answer.status_code == 403
        assert "This does not belong to this page" in answer.text
        assert SLUG not in answer.text
    assert answering.requests(submissions.identity.CLAIM_IDENTITY_CHECK) == []
    assert "/token" not in provider.paths()


def test_an_attempt_that_is_over_leads_back_and_asks_nobody(
    client: Any, answering: RecordingBus, provider: Provider
) -> None:
    state = begun(client, provider)
    claimed = answering.answers[submissions.identity.CLAIM_IDENTITY_CHECK]
    answering.answers[submissions.identity.CLAIM_IDENTITY_CHECK] = claimed.model_copy(update={"usable": False})
    assert come_back(client, state).headers["Location"].startswith(f"/sign/s/{SLUG}#")
    assert answering.requests(submissions.identity.FINISH_IDENTITY_CHECK) == []
    answering.answers[submissions.identity.CLAIM_IDENTITY_CHECK] = ServiceError("not_found", "Identity check not found")
    assert come_back(client, begun(client, provider)).status_code == 403
    assert "/token" not in provider.paths()


def test_a_form_that_has_ended_meanwhile_is_shown_as_it_is(
    client: Any, answering: RecordingBus, provider: Provider
) -> None:
    answering.answers[submissions.identity.FINISH_IDENTITY_CHECK] = ServiceError("invalid", "Form has been declined.")
    assert come_back(client, begun(client, provider)).status_code == 303
    answering.answers[submissions.identity.FINISH_IDENTITY_CHECK] = ServiceError("unavailable", "no answer")
    assert come_back(client, begun(client, provider)).status_code == 503


def test_an_attempt_that_was_begun_at_another_provider_does_not_count(
    client: Any, answering: RecordingBus, provider: Provider
) -> None:
    claimed = answering.answers[submissions.identity.CLAIM_IDENTITY_CHECK]
    moved = claimed.model_copy(update={"issuer": "https://old.example.com"})
    answering.answers[submissions.identity.CLAIM_IDENTITY_CHECK] = moved
    come_back(client, begun(client, provider))
    assert answering.requests(submissions.identity.FINISH_IDENTITY_CHECK)[0].problem == "failed"


def test_a_method_is_asked_for_and_who_was_another_signs_in_anew(answering: RecordingBus, provider: Provider) -> None:
    client = pages(answering, provider, acr_values={"qes": ["urn:qes"]}).test_client()
    started = answering.answers[submissions.identity.START_IDENTITY_CHECK]
    update = {"method": "qes", "anew": True}
    answering.answers[submissions.identity.START_IDENTITY_CHECK] = started.model_copy(update=update)
    begun(client, provider)
    assert (provider.authorized["acr_values"], provider.authorized["prompt"]) == ("urn:qes", "login")


def test_it_is_begun_by_a_command_of_our_own_page_only(client: Any, bus: RecordingBus) -> None:
    path = f"/s/{SLUG}/identity"
    assert client.get(path).status_code == 405
    assert client.post(path, data={"field": FIELD}).status_code == 415
    assert client.post(path, json={}).status_code == 422
    assert client.post(path, json={"field": ["x"]}).status_code == 422
    assert client.post(path, json={"field": "x" * 101}).status_code == 422
    stranger = client.post(path, json={"field": FIELD}, headers={"Sec-Fetch-Site": "cross-site"})
    assert stranger.status_code == 403
    assert bus.requests(submissions.identity.START_IDENTITY_CHECK) == []


def test_a_stranger_does_not_keep_us_busy(client: Any, bus: RecordingBus, provider: Provider) -> None:
    for answer, status in ((ServiceError("not_found", "Submitter not found"), 404), (signing_form("waiting"), 403)):
        bus.answers[submissions.form.OPEN_FORM] = answer
        assert client.post(f"/s/{SLUG}/identity", json={"field": FIELD}).status_code == status
    assert provider.asked == []
    assert bus.requests(submissions.identity.START_IDENTITY_CHECK) == []


def test_a_provider_that_cannot_be_reached_is_told_before_anything_begins(
    client: Any, bus: RecordingBus, provider: Provider
) -> None:
    provider.answer = lambda _: (500, {})
    answer = client.post(f"/s/{SLUG}/identity", json={"field": FIELD})
    assert (answer.status_code, "Acme Login cannot be reached" in answer.text) == (503, True)
    assert bus.requests(submissions.identity.START_IDENTITY_CHECK) == []


def test_without_a_provider_nothing_begins(make_pages: Any, bus: RecordingBus) -> None:
    client = make_pages().test_client()
    answer = client.post(f"/s/{SLUG}/identity", json={"field": FIELD})
    assert (answer.status_code, answer.json["error"]) == (422, "Identity verification not configured")
    assert client.get("/identity/callback?code=a&state=b").status_code == 403
    assert client.get(f"/s/{SLUG}/form").json["identity_provider"] is None


def test_the_page_says_what_the_provider_is_called(client: Any, bus: RecordingBus) -> None:
    bus.answers[submissions.form.OPEN_FORM] = signing_form()
    assert client.get(f"/s/{SLUG}/form").json["identity_provider"] == "Acme Login"
