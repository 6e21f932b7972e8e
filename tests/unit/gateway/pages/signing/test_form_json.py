"""What the browser is told of a form."""

from datetime import UTC, datetime
from typing import Any

import pytest

from contracts.rpc import submissions
from services.gateway.pages.signing.form_json import web_address
from tests.unit.gateway.pages.conftest import SLUG, RecordingBus, signing_form


def field(uuid: str, **more: Any) -> dict[str, Any]:
    return {"uuid": uuid, "submitter_uuid": "s", "role": "Signer", **more}


def fields_of(client: Any, bus: RecordingBus, *fields: dict[str, Any]) -> list[dict[str, Any]]:
    bus.answers[submissions.form.OPEN_FORM] = signing_form(fields=list(fields))
    shown: list[dict[str, Any]] = client.get(f"/s/{SLUG}/form").json["fields"]
    return shown


def test_a_field_is_called_by_its_title_else_its_name_else_its_kind(client: Any, bus: RecordingBus) -> None:
    shown = fields_of(
        client,
        bus,
        field("1", name="a", title="Your **name**"),
        field("2", name="*b*"),
        field("3", type="signature"),
        field("4", type="signature"),
        field("5", name="c", title="![](x)"),
    )
    assert [one["label"] for one in shown] == ["Your name", "*b*", "Signature", "Signature 2", "c"]
    assert [one["title_html"] for one in shown] == ["Your <strong>name</strong>", "", "", "", ""]


def test_of_others_only_what_stands_on_the_page(client: Any, bus: RecordingBus) -> None:
    (shown,) = fields_of(
        client,
        bus,
        field("1", name="IBAN", mine=False, value="AT61", display="AT61", default_value="secret", description="secret"),
    )
    assert (shown["value"], shown["display"], shown["mine"]) == ("AT61", "AT61", False)
    assert "secret" not in str(shown)


def test_a_masked_value_of_another_is_not_sent(client: Any, bus: RecordingBus) -> None:
    # XXXX is how a masked value is shown, not something left out.
    (shown,) = fields_of(client, bus, field("1", mine=False, value="AT61", display="XXXX", preferences={"mask": True}))
    assert shown["value"] is None
    assert "AT61" not in str(shown)


@pytest.mark.parametrize("state", ["waiting", "declined", "expired", "archived"])
def test_a_page_that_is_not_open_holds_no_data(client: Any, bus: RecordingBus, state: str) -> None:
    bus.answers[submissions.form.OPEN_FORM] = signing_form(state, submitter_email="anna@example.com")
    page = client.get(f"/s/{SLUG}")
    assert page.status_code == 200
    assert "Agreement" in page.text
    assert "anna@example.com" not in page.text


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", "//evil.example", "/x", "", None, "http://", "https://[x"]
)
def test_addresses_that_a_browser_is_not_sent_to(url: str | None) -> None:
    assert web_address(url) is None


def test_addresses_that_it_is_sent_to() -> None:
    assert web_address("https://shop.example:8443/done?x=1") == {
        "url": "https://shop.example:8443/done?x=1",
        "host": "shop.example",
    }


def test_the_redirect_is_in_the_form_only_when_it_is_harmless(client: Any, bus: RecordingBus) -> None:
    for url, kept in [("https://ok.example/", "https://ok.example/"), ("javascript:alert(1)", None)]:
        bus.answers[submissions.form.OPEN_FORM] = signing_form(completed_redirect_url=url)
        assert client.get(f"/s/{SLUG}/form").json["completed_redirect_url"] == kept
        bus.answers[submissions.form.OPEN_FORM] = signing_form("completed", completed_redirect_url=url)
        assert (f'href="{url}"' in client.get(f"/s/{SLUG}").text) is bool(kept)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ([field("1")], "There is one field for you."),
        ([field("1"), field("2", readonly=True), field("3", type="heading")], "There is one field for you."),
        ([field("1"), field("2")], "There are 2 fields for you."),
        ([field("1", readonly=True)], "There is nothing to fill in: read the document"),
        ([field("1", mine=False)], "There is nothing for you to fill in or to sign."),
        ([], "There is nothing for you to fill in or to sign."),
        ([field("1", value="Ann"), field("2")], "What was filled in before is kept."),
        (
            [field("1"), field("2", conditions=[{"field_uuid": "1", "action": "not_empty"}])],
            "There is one field for you.",
        ),
    ],
)
def test_the_page_says_what_is_asked_for_before_there_is_a_script(
    client: Any, bus: RecordingBus, fields: list[dict[str, Any]], said: str
) -> None:
    until = datetime(2027, 1, 31, 23, 30, tzinfo=UTC)
    bus.answers[submissions.form.OPEN_FORM] = signing_form(
        fields=fields,
        go_to_last=True,
        sender_name="Bo <b>",
        submitter_name="Ann",
        expire_at=until,
        time_zone="Europe/Vienna",
    )
    page = client.get(f"/s/{SLUG}").text
    assert said in page
    assert "Hello Ann," in page
    assert "1 February 2027, 00:30 CET" in page
    may_complete = any(one.get("mine", True) for one in fields)
    assert ('href="#start"' in page) == ('id="decline"' in page) == may_complete
    assert ("Bo &lt;b&gt; asks you" in page) == may_complete
