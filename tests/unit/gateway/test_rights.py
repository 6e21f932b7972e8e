"""What a key may do, what it may give to another key, and what can be taken from it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.errors import ServiceError
from services.gateway import rights
from services.gateway.http.openapi import specification
from services.gateway.rights import EVERY_SCOPE, WHOLE, CallersKey, Mode, Rights, Scope

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
SOON, LATER = NOW + timedelta(hours=1), NOW + timedelta(days=1)
OPERATIONS = list(specification.operations(specification.document()))

NEEDED = {
    "any": "users.current tools.version",
    "read": """
        templates.search templates.get templates.schema templates.evaluate templates.detected_fields
        templates.submissions
        submissions.search submissions.get submissions.events submissions.documents submissions.evidence
        batches.search batches.get batches.rows batches.results
        submissions.erasure submissions.erasure_receipt
        submitters.search submitters.get tools.merge tools.verify events.feed events.form events.submission
        test_mode.get
    """,
    "send": """
        templates.create_submission submissions.create submissions.init submissions.create_from_pdf
        submissions.create_from_docx submissions.create_from_html submissions.emails submissions.update
        batches.create batches.cancel batches.retry
        submissions.remove submissions.seal submissions.send_again submissions.dutystamp submissions.certsign
        submitters.update
        test_mode.mails test_mode.text_messages
    """,
    "templates": """
        templates.create_from_pdf templates.create_from_docx templates.create_from_html templates.merge
        templates.update templates.remove templates.change_documents templates.clone
    """,
    "webhooks": """
        webhooks.search webhooks.create webhooks.get webhooks.update webhooks.remove webhooks.test
        webhooks.replace_secret webhooks.replay webhooks.deliveries webhooks.resend
    """,
    "admin": """
        users.search users.create users.get users.update users.remove users.api_key users.rotate_api_key
        keys.search keys.get keys.create keys.update keys.remove
        account.get account.update account.test_certsign account.dutystamps people.get people.remove_unsent
        test_mode.advance test_mode.wipe
    """,
}
"""Written once more by hand: to move an operation to another scope is a decision, no slip."""


OF_FOLDERS = """
    templates.search templates.get templates.schema templates.evaluate templates.detected_fields templates.submissions
    templates.create_submission templates.create_from_pdf templates.create_from_docx templates.create_from_html
    templates.merge templates.update templates.remove templates.change_documents templates.clone
    submissions.search submissions.get submissions.events submissions.documents submissions.evidence
    submissions.create submissions.init submissions.emails submissions.update submissions.remove submissions.seal
    submissions.send_again submissions.dutystamp submissions.certsign submissions.erasure submissions.erasure_receipt
    batches.create batches.cancel batches.retry batches.search batches.get batches.rows batches.results
    submitters.search submitters.get submitters.update tools.merge tools.verify tools.version users.current
"""
"""The same of what keys of folders may call: one that reaches a record asks a service that knows its folder."""


def of(*words: str, until: datetime | None = None, folders: tuple[str, ...] | None = None) -> Rights:
    return Rights(frozenset(map(Scope, words)), until, folders=folders)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_the_document_says_which_scope_an_operation_needs(operation: specification.Operation) -> None:
    word: Any = operation.definition.get("x-scope")
    if operation.definition.get("security") == []:
        assert word is None, "nobody's key is asked for"
        assert operation.scopes == frozenset()
    else:
        assert operation.id in NEEDED[word].split()
        assert operation.scopes == (EVERY_SCOPE if word == "any" else {Scope(word)})


def test_the_table_above_has_every_operation_once() -> None:
    listed = [operation for words in NEEDED.values() for operation in words.split()]
    assert sorted(listed) == sorted(operation.id for operation in OPERATIONS if operation.roles)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_the_document_says_which_operations_keys_of_folders_may_call(operation: specification.Operation) -> None:
    assert operation.by_folder is (operation.id in OF_FOLDERS.split())
    if operation.by_folder:
        assert not operation.scopes & rights.OF_THE_ACCOUNT or operation.scopes == EVERY_SCOPE


def test_a_key_of_folders_is_refused_where_folders_mean_nothing() -> None:
    rights.check_folders(WHOLE, allowed=False)
    rights.check_folders(of("read", folders=("A",)), allowed=True)
    for limited in (of("read", folders=("A",)), of("read", folders=())):
        with pytest.raises(ServiceError) as refused:
            rights.check_folders(limited, allowed=False)
        assert (refused.value.code, refused.value.details) == ("forbidden", [])


@pytest.mark.parametrize("words", [("admin",), ("read", "webhooks"), ("admin", "webhooks", "send")])
def test_a_key_of_folders_has_no_scope_of_the_account(words: tuple[str, ...]) -> None:
    rights.check_scopes_of_folders(of(*words))
    with pytest.raises(ServiceError) as refused:
        rights.check_scopes_of_folders(of(*words, folders=("A",)))
    assert (refused.value.code, [detail["field"] for detail in refused.value.details]) == ("invalid", ["scopes"])
    rights.check_scopes_of_folders(of("read", "send", "templates", "agent:send", folders=("A",)))


def test_an_operation_of_which_nothing_is_said_needs_what_no_key_has() -> None:
    silent = specification.Operation("x.y", "/x", "get", {"x-roles": ["admin"]})
    with pytest.raises(ServiceError) as refused:
        rights.check_scope(WHOLE, silent.scopes)
    assert refused.value.code == "forbidden"


def test_what_only_reads_needs_no_other_scope_and_what_changes_needs_more_than_read() -> None:
    for operation in OPERATIONS:
        if operation.definition.get("x-scope") == "read":
            asks = operation.id.startswith("tools.") or operation.id == "templates.evaluate"
            assert operation.method == "get" or asks


@pytest.mark.parametrize("scope", list(Scope))
def test_a_scope_is_good_for_itself_alone(scope: Scope) -> None:
    only = Rights(frozenset({scope}))
    rights.check_scope(only, frozenset({scope}))
    rights.check_scope(only, EVERY_SCOPE)
    rights.check_scope(WHOLE, frozenset({scope}))
    for other in EVERY_SCOPE - {scope}:
        with pytest.raises(ServiceError) as refused:
            rights.check_scope(only, frozenset({other}))
        assert (refused.value.code, refused.value.message, refused.value.details) == (
            "forbidden",
            f"This API key does not have the scope {other.value}.",
            [],
        )


def test_of_several_scopes_that_would_do_all_are_named() -> None:
    with pytest.raises(ServiceError, match="the scope send, webhooks or admin"):
        rights.check_scope(of("read"), frozenset({Scope.ADMIN, Scope.WEBHOOKS, Scope.SEND}))


def test_a_key_expires_at_its_very_moment() -> None:
    key = of("read", until=NOW)
    assert not key.expired(NOW - timedelta(microseconds=1))
    assert key.expired(NOW)
    assert key.expired(LATER)
    assert not WHOLE.expired(LATER)


def test_scopes_are_shown_in_one_order_and_read_without_what_is_not_known() -> None:
    assert rights.in_words({Scope.ADMIN, Scope.READ, Scope.SEND}) == ["read", "send", "admin"]
    assert rights.in_words(EVERY_SCOPE) == ["read", "send", "templates", "webhooks", "admin", "agent:send"]
    assert rights.read_scopes(["send", "agent:sign", "", "read", "Read"]) == {Scope.SEND, Scope.READ}


@pytest.mark.parametrize(
    ("own", "given"),
    [
        (WHOLE, WHOLE),
        (WHOLE, of("read", until=SOON)),
        (of("admin", "read"), of("admin", "read")),
        (of("admin", "read"), of("read", until=LATER)),
        (of("admin", "read", until=LATER), of("read", until=LATER)),
        (of("admin", "read", until=LATER), of("read", "admin", until=SOON)),
        (of("admin", "read"), of("read", folders=("A",))),
        (of("read", folders=("A", "B")), of("read", folders=("B / C",))),
    ],
)
def test_a_key_gives_what_it_has(own: Rights, given: Rights) -> None:
    rights.check_giving(own, given)


@pytest.mark.parametrize(
    ("own", "given", "said"),
    [
        (of("admin"), of("read"), "cannot give a key the scope read: it does not have the scope itself"),
        (of("admin"), of("admin", "read"), "cannot give a key the scope read"),
        (of("admin", "read"), WHOLE, "cannot give a key the scopes send, templates, webhooks and agent:send"),
        (of("admin", "read"), of("send", "templates"), "cannot give a key the scopes send and templates"),
        (of("admin", until=SOON), of("admin"), "expires at 2026-03-04T06:06:07.000Z and cannot create a key that"),
        (of("admin", until=SOON), of("admin", until=LATER), "expires at 2026-03-04T06:06:07.000Z and cannot"),
        (Rights(EVERY_SCOPE, SOON), WHOLE, "cannot create a key that is valid for longer"),
        (of("read", folders=("A",)), of("read"), "cannot give a key more folders"),
        (of("read", folders=("A",)), of("read", folders=("A", "B")), "cannot give a key more folders"),
        (of("read", folders=("A / B",)), of("read", folders=("A",)), "cannot give a key more folders"),
    ],
)
def test_a_key_gives_no_more_than_it_has(own: Rights, given: Rights, said: str) -> None:
    with pytest.raises(ServiceError) as refused:
        rights.check_giving(own, given)
    assert refused.value.code == "forbidden"
    assert said in refused.value.message
    assert refused.value.message.startswith("This API key ")


@pytest.mark.parametrize("expires_at", [None, NOW + timedelta(microseconds=1), LATER])
def test_an_end_lies_ahead(expires_at: datetime | None) -> None:
    rights.check_expiry(expires_at, NOW)


@pytest.mark.parametrize("expires_at", [NOW, NOW - timedelta(days=400)])
def test_an_end_that_is_over_is_refused_by_its_field(expires_at: datetime) -> None:
    with pytest.raises(ServiceError) as refused:
        rights.check_expiry(expires_at, NOW)
    assert (refused.value.code, refused.value.details) == (
        "invalid",
        [{"field": "expires_at", "reason": "must be in the future"}],
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (of("read", "send"), of("read")),
        (of("read"), of("read")),
        (of("read"), of("read", until=LATER)),
        (of("read", "send", until=LATER), of("send", until=SOON)),
        (of("read", until=LATER), of("read", until=LATER)),
        (of("read"), of("read", folders=("A",))),
        (of("read", folders=("A",)), of("read", folders=("A / B", "A / C"))),
    ],
)
def test_a_key_is_limited(before: Rights, after: Rights) -> None:
    rights.check_limiting(before, after, first=False)


@pytest.mark.parametrize(
    ("before", "after", "field", "said"),
    [
        (
            of("read"),
            of("read", "send"),
            "scopes",
            "cannot get send: a key cannot get more scopes than it was made with",
        ),
        (of("read", "send"), of("admin"), "scopes", "cannot get admin"),
        (of("read", until=SOON), of("read", until=LATER), "expires_at", "must not be later than it is now"),
        (of("read", until=SOON), of("read"), "expires_at", "must not be later than it is now"),
        (of("read", folders=("A",)), of("read"), "folders", "must be within those"),
        (of("read", folders=("A",)), of("read", folders=("B",)), "folders", "must be within those"),
        (of("read", folders=("A",)), of("read", folders=("A", "AB")), "folders", "must be within those"),
        (of("read", folders=()), of("read", folders=("A",)), "folders", "must be within those"),
    ],
)
def test_a_key_never_gets_more(before: Rights, after: Rights, field: str, said: str) -> None:
    with pytest.raises(ServiceError) as refused:
        rights.check_limiting(before, after, first=False)
    (detail,) = refused.value.details
    assert (refused.value.code, detail["field"]) == ("invalid", field)
    assert detail["reason"].startswith(said)
    assert refused.value.message == f"{field} {detail['reason']}"


@pytest.mark.parametrize(
    ("after", "field"),
    [
        (of("read"), "scopes"),
        (Rights(EVERY_SCOPE, LATER), "expires_at"),
        (of("read", until=LATER), "scopes"),
        (Rights(folders=("A",)), "folders"),
    ],
)
def test_a_first_key_is_not_limited(after: Rights, field: str) -> None:
    """An older version, which may run beside this one, would not know of it, and take the key for a whole one."""
    rights.check_limiting(WHOLE, WHOLE, first=True)
    with pytest.raises(ServiceError) as refused:
        rights.check_limiting(WHOLE, after, first=True)
    assert [detail["field"] for detail in refused.value.details] == [field]
    assert "delete the first one" in refused.value.message


@pytest.mark.parametrize("after", [None, of("read", "send"), of("admin", until=LATER)])
def test_the_last_key_to_manage_keys_with_stays_what_it_is(after: Rights | None) -> None:
    with pytest.raises(ServiceError) as refused:
        rights.check_one_is_left(of("admin", "send", "read"), after, other_keys=0)
    assert refused.value.code == "invalid"
    assert "the last key with the scope admin that does not expire" in refused.value.message
    rights.check_one_is_left(of("admin", "send", "read"), after, other_keys=1)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (of("admin", "read"), of("admin")),
        (of("read"), None),
        (of("admin", until=LATER), None),
        (of("admin", until=LATER), of("read", until=SOON)),
    ],
)
def test_what_is_not_lost_may_go(before: Rights, after: Rights | None) -> None:
    rights.check_one_is_left(before, after, other_keys=0)


def test_a_key_in_a_log_says_nothing_that_finds_it() -> None:
    assert "f00d" not in repr(CallersKey("3fa1c0de9b7d4e21", "f00d" * 16))


def test_a_test_key_is_stored_so_that_a_version_without_test_mode_gives_it_nothing() -> None:
    for given in (WHOLE, Rights(test=True), Rights(frozenset({Scope.SEND}), LATER, test=True), of("read", until=SOON)):
        text = rights.stored(given)
        assert rights.read_stored(text, given.expires_at) == given
        as_before = rights.read_scopes(text.split())
        assert as_before == (frozenset() if given.test else given.scopes)
    assert rights.read_stored("test:send read", None).scopes == {Scope.SEND}, "never more for what is mixed"


def test_a_key_of_folders_is_stored_so_that_a_version_without_them_gives_it_nothing() -> None:
    for test in (False, True):
        for folders in (("A", "B / C"), ()):
            given = Rights(frozenset({Scope.READ, Scope.SEND}), LATER, test, folders)
            text = rights.stored(given)
            assert rights.read_stored(text, LATER, list(folders)) == given
            assert rights.read_stored(text, LATER).folders == (), "without its folders it reaches nothing"
            words = text.split()
            assert rights.read_scopes(words) == frozenset(), "a version without folders"
            of_test_mode = [word.removeprefix("test:") for word in words]
            assert rights.read_scopes(of_test_mode) == frozenset(), "nor one that knows test mode alone"
    assert rights.read_stored("folders:send read", None, ["A"]).scopes == {Scope.SEND}, "never more for what is mixed"
    assert rights.read_stored("read", None, ["A"]).folders == ("A",)
    assert not of("admin", folders=("A",)).lasts_as_admin


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_what_both_modes_share_takes_a_live_key_to_change(operation: specification.Operation) -> None:
    # What names a person is looked for in the mode of the key, as what test mode holds is.
    of_one_mode = operation.id.startswith(("test_mode.", "people."))
    of_account = operation.definition.get("x-scope") == "admin" and not of_one_mode
    if of_account and operation.method != "get":
        assert operation.mode is Mode.LIVE
    if operation.id.startswith("test_mode."):
        assert operation.mode is Mode.TEST


def test_a_key_is_refused_where_only_the_other_mode_is_served() -> None:
    live, test = WHOLE, Rights(test=True)
    for key, mode in ((live, Mode.LIVE), (live, None), (test, Mode.TEST), (test, None)):
        rights.check_mode(key, mode)
    for key, mode in ((live, Mode.TEST), (test, Mode.LIVE)):
        with pytest.raises(ServiceError) as refused:
            rights.check_mode(key, mode)
        assert refused.value.code == "forbidden"


def test_a_test_key_gives_no_live_key_and_does_not_count_as_the_admins_own() -> None:
    rights.check_giving(WHOLE, Rights(test=True))
    rights.check_giving(Rights(test=True), Rights(test=True))
    with pytest.raises(ServiceError, match="cannot give a live key"):
        rights.check_giving(Rights(test=True), of("read"))
    assert not Rights(test=True).lasts_as_admin
