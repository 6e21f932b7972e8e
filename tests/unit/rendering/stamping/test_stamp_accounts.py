"""Accounts of settings, and what is said of failures."""

import json
from datetime import timedelta
from typing import Any

import pytest

from contracts.evidence.sealed_text import seal
from contracts.providers import CERTSIGN, DUTYSTAMP
from contracts.runtime.http.outbound import Answer
from services.rendering.providers import calls
from services.rendering.providers.failures import ProviderFailed
from services.rendering.stamping import accounts
from tests.support.services.secret_settings import LINK_SECRET

SETTINGS = {
    "provider": "peruri",
    "backend_url": "https://backend.example",
    "stamp_url": "https://stamps.example",
    "adapter_url": "http://10.0.0.7:7777",
    "user": "ops",
    "password": "one",
}


def account(**more: Any) -> accounts.Account:
    return accounts.opened(seal(LINK_SECRET, DUTYSTAMP, json.dumps({**SETTINGS, **more})), LINK_SECRET)


def test_an_account_stays_the_same_with_another_password_and_another_adapter() -> None:
    known = account()
    assert account(password="two", adapter_url="http://10.0.0.8:7777").id == known.id
    assert account(user="other").id != known.id
    assert account(stamp_url="https://staging.example").id != known.id
    assert known.name == "stamps.example"
    assert (known.lane, account(adapter_url="http://10.0.0.8:7777").lane) == (
        "http://10.0.0.7:7777",
        "http://10.0.0.8:7777",
    )
    assert "one" not in repr(known)


def test_settings_that_cannot_be_opened_are_told_in_words() -> None:
    for sealed in (
        seal("another secret that is long enough", DUTYSTAMP, json.dumps(SETTINGS)),
        seal(LINK_SECRET, CERTSIGN, json.dumps(SETTINGS)),
    ):
        with pytest.raises(ProviderFailed) as failed:
            accounts.opened(sealed, LINK_SECRET)
        assert failed.value.code == "settings_unreadable"
    with pytest.raises(ProviderFailed) as failed:
        account(provider="unheard of")
    assert failed.value.code == "settings_invalid"


def test_installations_have_names_of_their_own() -> None:
    assert accounts.installation(LINK_SECRET) != accounts.installation("another secret that is long enough")


@pytest.mark.parametrize(
    ("status", "buys", "code", "retryable"),
    [
        (500, True, "no_answer", True),
        (502, False, "unavailable", True),
        (408, True, "no_answer", True),
        (429, True, "busy", True),
        (404, True, "refused", False),
        (302, True, "refused", False),
    ],
)
def test_what_a_status_says_of_the_money(status: int, buys: bool, code: str, retryable: bool) -> None:
    answer = Answer(status, {"Retry-After": "7"}, b"")
    with pytest.raises(ProviderFailed) as failed:
        calls.judge(answer, buys=buys, secrets=())
    assert (failed.value.code, failed.value.retryable) == (code, retryable)
    assert failed.value.retry_after == (timedelta(seconds=7) if status == 429 else None)


def test_words_of_a_provider_are_one_short_line_without_our_secrets() -> None:
    said = calls.without_secrets("the password hunter2\nis wrong\x07" + "!" * 500, ("hunter2", None, ""))
    assert said.startswith("the password *** is wrong")
    assert "hunter2" not in said
    assert len(said) == 300
