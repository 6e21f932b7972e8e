"""The smaller rules: addresses, formats, placeholders, names of fields, preferences and who gets mail."""

from dataclasses import asdict
from datetime import UTC, date, datetime
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.fields.date_formats import parsed_date
from contracts.fields.labels import labels
from contracts.problems import Problems
from contracts.types import Account, FieldDefinition
from services.submissions.rules import preferences
from services.submissions.rules.parties import addresses
from services.submissions.rules.values import formats, naming, placeholders
from services.submissions.rules.values import variables as documents_variables
from services.submissions.site import Site, file_name
from services.submissions.storage.store import new_slug
from tests.support.material.submissions import create_command, template
from tests.support.material.submissions import field as submission_field

NOON = datetime(2026, 3, 4, 23, 30, tzinfo=UTC)


def field(kind: str = "text", **more: Any) -> FieldDefinition:
    return FieldDefinition(**{"uuid": "u", "submitter_uuid": "p", "role": "r", "name": "It", "type": kind, **more})


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (" ann@example.com ", "ann@example.com"),
        ("Ann <ann@example.com>", "ann@example.com"),
        ("Ann.Smith+tag_x-y@mail.sub.example.museum", "Ann.Smith+tag_x-y@mail.sub.example.museum"),
        ("ann@münchen.de", "ann@münchen.de"),
        ("ann@office.local", "ann@office.local"),
    ],
)
def test_addresses_that_are_accepted(given: str, kept: str) -> None:
    assert addresses.email(given) == kept


@pytest.mark.parametrize(
    "given",
    [
        *(
            "ann@",
            "ann@example",
            "a..b@example.com",
            "a@ex..com",
            "a@-ex.com",
            "a@ex-.com",
            "a@[IPv6:::1]",
            "a b@ex.com",
        ),
        *(".a@ex.com", "a@.ex.com", "a@ex.c", "a@@ex.com", "a@b.co d@e.fg", "a@b.co,d@e.fg", "a@1.2.3.4"),
        *("ann@example.com>", "<ann@example.com", "ann@example.com <"),
        "x" * 300 + "@ex.com",
    ],
)
def test_addresses_that_are_refused(given: str) -> None:
    with pytest.raises(addresses.BadAddress):
        addresses.email(given)


def test_lists_of_addresses() -> None:
    assert addresses.emails("a@b.co, C@d.ef;A@B.co") == ["A@B.co", "C@d.ef"]
    assert addresses.emails(" a@b.co,, ;c@d.ef,") == ["a@b.co", "c@d.ef"]
    assert len(addresses.emails(", ".join(f"a{n}@b.co" for n in range(20)))) == 20
    for bad in ("", " , ", "a@b.co c@d.ef", "a@b.co,\nc@d.ef", ", ".join(f"a{n}@b.co" for n in range(21))):
        with pytest.raises(addresses.BadAddress):
            addresses.emails(bad)


@pytest.mark.parametrize("url", ["https://example.com/a?b=c#d", "http://localhost:8000/", "https://münchen.de/"])
def test_urls_that_are_accepted(url: str) -> None:
    assert addresses.web_url(f" {url} ") == url


@pytest.mark.parametrize(
    "url",
    [
        *(
            "javascript:alert(1)",
            "data:text/html,x",
            "//example.com",
            "ftp://example.com",
            "https://",
            "https://a b.com/",
        ),
        *("https://example.com/\nx", 'https://example.com/"onload', "https://example.com:port/"),
        "https://e.com/" + "x" * 2_100,
    ],
)
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(addresses.BadAddress):
        addresses.web_url(url)


def test_a_blank_url_is_none() -> None:
    assert addresses.web_url(None) is addresses.web_url(" ") is None


@pytest.mark.parametrize(
    ("address", "same"),
    [(" Ann@B.co ", True), ("ANN@B.CO", True), ("ann@b.co.", False), ("änn@b.co", False), (None, False), ("", False)],
)
def test_mailboxes_are_told_apart(address: str | None, same: bool) -> None:
    assert (addresses.mailbox(address) == "ann@b.co") is same
    assert addresses.mailbox("Ä@straße.de") == "Ä@straße.de", "of A to Z the case does not count, and of nothing else"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, None),
        ("  ", None),
        (" Ann \t Smith\x07 ", "Ann Smith"),
        ("A\u0301nn", "\u00c1nn"),
        ("gpj.\u202eexe", "gpj.exe"),
        ("a\ud800b", "ab"),
        ("x" * 255, "x" * 255),
    ],
)
def test_names_are_shown_as_they_are_meant(given: str | None, kept: str | None) -> None:
    assert addresses.name(given) == kept


def test_texts_keep_their_lines() -> None:
    assert addresses.text(" a\r\nb\tc\u202e \n\n") == "a\nbc"


def test_telephone_numbers() -> None:
    assert addresses.phone("+1 (415) 555-0123") == "+14155550123"
    assert addresses.calling_code("+4366412345") == "+43"
    assert addresses.calling_code("+14155550123") == "+1"
    for bad, reason in (("0664 123", "country code"), ("+99912345678", "the code of a country")):
        with pytest.raises(addresses.BadAddress, match=reason):
            addresses.phone(bad)


def test_search_text_is_lower_case_in_every_script() -> None:
    assert addresses.searchable("Ödön ΣΟΦΙΑ", None, "A@B.co") == "ödön σοφια a@b.co"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (None, "03/04/2026"),
        ("DD/MM/YYYY", "04/03/2026"),
        ("D MMMM YYYY", "4 March 2026"),
        ("MMM D, YY", "Mar 4, 26"),
        ("YYYY-MM-DD", "2026-03-04"),
        ("[Day] D", "Day 4"),
    ],
)
def test_dates_on_paper(pattern: str | None, text: str) -> None:
    assert formats.formatted_date(date(2026, 3, 4), pattern) == text


def test_month_names_follow_the_locale() -> None:
    assert formats.formatted_date(date(2026, 3, 4), "D. MMMM", "de-AT") == "4. März"
    assert formats.formatted_date(date(2026, 3, 4), "D MMMM", "xx-nonsense") == "4 March"


@pytest.mark.parametrize("pattern", ["DD/MM/YYYY", "MM/DD/YYYY", "D MMM YYYY", "MMMM D, YYYY", "YYYY.M.D", "DD-MM-YY"])
def test_written_dates_are_read_back(pattern: str) -> None:
    day = date(2026, 11, 5)
    assert parsed_date(formats.formatted_date(day, pattern), pattern) == day


@pytest.mark.parametrize(
    ("text", "pattern", "day"),
    [
        ("01/31/0099", None, date(99, 1, 31)),
        ("1.2.99", "D.M.YY", date(2099, 2, 1)),
        ("on 1.2.2026", "[on] D.M.YYYY", date(2026, 2, 1)),
        ("1.2.2026 3:04 pm CET", "D.M.YYYY h:mm a z", date(2026, 2, 1)),
        ("20260201 1504", "YYYYMMDD HHmm", date(2026, 2, 1)),
        ("2026-02", "YYYY-MM", date(2026, 2, 1)),
    ],
)
def test_dates_as_a_format_writes_them(text: str, pattern: str | None, day: date) -> None:
    assert parsed_date(text, pattern) == day


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("01.02.03.2026", "DD.DD.MM.YYYY"),
        ("1.2.2026 123", "D.M.YYYY H"),
        ("1.2.2026 1:2", "D.M.YYYY H"),
        ("at 1.2.2026", "[on] D.M.YYYY"),
        ("1.2.2026 nine", "D.M.YYYY A"),
    ],
)
def test_each_part_of_a_date_is_short_and_there_once(text: str, pattern: str) -> None:
    """Else matching takes as many steps as there are ways to divide a text among the parts."""
    assert parsed_date(text, pattern) is None


@pytest.mark.parametrize("text", ["31/02/2026", "5", "", "2026", "aa/bb/cccc"])
def test_what_is_no_date_in_that_format(text: str) -> None:
    assert parsed_date(text, "DD/MM/YYYY") is None


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("usd", "$1,234.50"),
        ("gbp", "£1,234.50"),
        ("eur", "1\u00a0234,50\u00a0€"),
        ("comma", "1,234.5"),
        ("dot", "1.234,5"),
        ("space", "1\u00a0234,5"),
        ("percent", "1234.5%"),
        ("percent_space", "1234,5\u00a0%"),
        (None, "1234.5"),
    ],
)
def test_numbers_on_paper(style: str | None, text: str) -> None:
    assert formats.display(field("number", preferences={"format": style}), 1234.5) == text


@pytest.mark.parametrize(
    ("mask", "text"),
    [(False, "AB-12 (x)"), (True, "XX-XX (X)"), (2, "AB-XX (X)"), (-3, "XX-XX (x)"), (99, "AB-12 (x)")],
)
def test_masks(mask: Any, text: str) -> None:
    assert formats.display(field(preferences={"mask": mask}), "AB-12 (x)") == text


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("text", "Ann", "Ann"),
        ("date", "2026-03-04", "03/04/2026"),
        ("heading", "Terms", "Terms"),
        ("text", None, None),
        ("text", True, None),
        ("checkbox", True, None),
        ("signature", "uuid", None),
        ("strikethrough", "x", None),
        ("dutystamp", "x", None),
        ("payment", None, "$5.00"),
    ],
)
def test_what_is_shown_as_text(kind: str, value: Any, text: str | None) -> None:
    assert formats.display(field(kind, preferences={"price": 5}), value) == text
    assert formats.display(field("payment"), value) is None, "without a price there is nothing to show"


def test_only_texts_can_be_masked() -> None:
    assert formats.is_masked(field("number", preferences={"mask": True}))
    assert not formats.is_masked(field("signature", preferences={"mask": True}))
    assert not formats.is_masked(field(preferences={"mask": False}))


def test_placeholders_are_resolved_in_the_account_s_zone() -> None:
    details = {"id": 7, "role": "Buyer", "name": "Ann", "email": None}

    def resolved(default: Any, kind: str = "text", **more: Any) -> Any:
        return placeholders.resolve(field(kind, default_value=default, **more), details, NOON, "Europe/Vienna")

    assert resolved("{{date}}", "date") == "2026-03-05"
    timed = field("date", default_value="{{date}}", preferences={"format": "DD.MM.YYYY HH:mm z"})
    assert placeholders.resolve(timed, {}, NOON, "Asia/Tokyo") == "2026-03-04T23:30:00Z"
    assert resolved("{date}", preferences={"format": "DD.MM.YYYY"}) == "05.03.2026"
    assert resolved("{{name}}, {role} #{{ id }} <{{email}}>") == "Ann, Buyer #7 <>"
    assert resolved("{{time}} {{hour}} {{minute}} {{day}}.{{month}}.{{year}}") == "00:30 00 30 05.03.2026"
    assert resolved("{{slug}} {{submitter.__class__}}") == "{{slug}} {{submitter.__class__}}"
    for unknown in ("No/Where", "../etc", ""):
        assert placeholders.resolve(field(default_value="{{date}}"), {}, NOON, unknown) == "03/04/2026"
        assert placeholders.zone(unknown).key == "UTC"


@pytest.mark.parametrize(
    ("default", "kind", "kept"),
    [
        (5, "number", 5),
        (None, "text", None),
        ("{{nothing}}", "text", "{{nothing}}"),
        ("{{name}}", "date", None),
        ("{phone}", "text", ""),
    ],
)
def test_what_a_placeholder_stands_for(default: Any, kind: str, kept: Any) -> None:
    made = field(kind, default_value=default)
    assert placeholders.resolve(made, {"name": "Ann", "phone": None}, NOON, "UTC") == kept


def test_who_it_is_is_filled_in_before_the_moment_of_completing() -> None:
    details = {"name": "Ann", "email": None, "id": 7}
    text = "{name} {{email}}#{id}, {{role}} on {date}"
    assert placeholders.with_person(text, details) == "Ann #7, {{role}} on {date}"


def test_names_that_callers_write() -> None:
    fields = [
        field(uuid="a", name="Full Name"),
        field(uuid="b", name="fullName"),
        field(uuid="full_name", name="x"),
        field(uuid="d", name="Full Name"),
        field(uuid="e", name="Größe (cm)"),
    ]
    called = naming.FieldIndex(fields, labels(fields))

    def meant(key: str) -> list[str]:
        return [one.uuid for one in called.fields(key)]

    assert meant("a") == ["a"]
    assert meant("Full Name") == ["a", "d"]
    assert meant(" FULL NAME ") == ["a", "d"]
    assert meant("full_name") == ["full_name"], "a uuid comes before all names"
    assert meant("FULLNAME") == ["b"]
    assert meant("größe_cm") == ["e"]
    assert meant("") == meant("nobody") == []
    assert naming.snake_case("IBANNumber of payee") == "ibannumber_of_payee"
    assert naming.snake_case(" A-1B ") == "a_1_b"


def test_fields_that_are_left_keep_the_names_that_they_had() -> None:
    fields = [field(uuid="a", name=""), field(uuid="b", name=""), field(uuid="c")]
    names = labels(fields)
    left = naming.keeping_names(fields[1:], names)
    assert [one.name for one in left] == ["Text Field 2", "It"]
    assert naming.keeping_names(fields[:1], names)[0] is fields[0]


def test_unnamed_fields_are_called_by_their_type() -> None:
    fields = [field(uuid="a", name=""), field(uuid="b"), field("date", uuid="c", name=""), field(uuid="d", name="")]
    assert labels(fields) == {"a": "Text Field 1", "b": "It", "c": "Date Field 1", "d": "Text Field 3"}


def test_of_fields_with_one_name_the_first_value_counts() -> None:
    fields = [field(uuid="a"), field(uuid="b")]
    names = labels(fields)
    assert naming.by_name(fields, names, {"a": None, "b": "x"}) == {"It": "x"}
    assert naming.by_name(fields, names, {"a": "1", "b": "x"}) == {"It": "1"}
    assert naming.by_name(fields, names, {}) == {}


def problems_of(given: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    problems = Problems()
    return preferences.checked(given, problems), [one["field"] for one in problems.entries]


def test_preferences_are_kept_in_their_types() -> None:
    assert problems_of({"require_email_2fa": " TRUE ", "shared_link_2fa": 0, "unknown": 1, "bcc_completed": ""}) == (
        {"require_email_2fa": True, "shared_link_2fa": False},
        [],
    )
    assert problems_of({"submitters_order": "random", "bcc_completed": "a@b.co; c@d.ef"}) == (
        {"submitters_order": "random", "bcc_completed": "a@b.co, c@d.ef"},
        [],
    )
    assert problems_of({"require_phone_2fa": 1, "shared_link_2fa": "False "})[0] == {
        "require_phone_2fa": True,
        "shared_link_2fa": False,
    }
    assert problems_of({"require_phone_2fa": None, "submitters_order": None}) == ({}, [])
    for certsign in (True, False):
        assert problems_of({"certsign_sign_enabled": certsign}) == ({"certsign_sign_enabled": certsign}, [])


def test_preferences_that_cannot_be() -> None:
    wrong = {
        "shared_link_2fa": "perhaps",
        "certsign_sign_enabled": "perhaps",
        "submitters_order": "any",
        "bcc_completed": "x",
    }
    assert problems_of(wrong) == (
        {},
        [
            f"preferences.{key}"
            for key in ("certsign_sign_enabled", "shared_link_2fa", "submitters_order", "bcc_completed")
        ],
    )


def test_what_a_template_passes_on() -> None:
    kept = {
        "documents_copy_email_enabled": False,
        "require_email_2fa": True,
        "submitters_order": "random",
        "bcc_completed": "",
    }
    assert preferences.of_template({**kept, "shared_link_2fa": True, "other": 1}) == kept
    odd = {"documents_copy_email_enabled": "no", "require_email_2fa": 1, "submitters_order": "any", "bcc_completed": 5}
    assert preferences.of_template(odd) == {}


def new_submission(most_bytes: int, *variables: dict[str, Any]) -> dict[str, Any]:
    found = template(submission_field())
    command = create_command(found, *({"variables": one} for one in variables[1:]), variables=variables[0])
    return documents_variables.merged(command, most_bytes)


def test_variables_of_submitters_come_after_those_of_the_request() -> None:
    assert new_submission(100, {"a": 1, "b": 1}, {"b": 2}, {"c": "Ł"}) == {"a": 1, "b": 2, "c": "Ł"}
    assert new_submission(len('{"a": "Ł"}'.encode()), {"a": "Ł"}) == {"a": "Ł"}
    with pytest.raises(ServiceError, match="more than 10 bytes"):
        new_submission(10, {"a": "Ł"})
    found = template(submission_field())
    asked = documents_variables.fill(create_command(found, {}), found, {"a": 1})
    assert (asked.id, asked.variables, asked.actor.user_id) == (found.id, {"a": 1}, 1)


def mailing(account: dict[str, Any], chosen: dict[str, Any], **more: Any) -> preferences.Mailing:
    given: dict[str, Any] = {"send_email": True, "sender": "me@x.co", "copied": ["ann@x.co"], "bcc": None, **more}
    return preferences.mailing(Account(**account), chosen, **given)


def test_the_account_is_the_ceiling_over_preferences() -> None:
    key = "completed_notification_email_enabled"
    assert mailing({}, {}).notify_sender
    assert not mailing({}, {key: False}).notify_sender
    assert not mailing({key: False}, {key: True}).notify_sender
    assert not mailing({"documents_copy_email_enabled": False}, {"documents_copy_email_enabled": True}).copy_signers
    assert not mailing({}, {"documents_copy_email_attach_audit": False}).copy_attach_audit
    assert not mailing({"documents_copy_email_attach_documents": False}, {}).copy_attach_documents


def test_nobody_gets_two_mails() -> None:
    """Pain 59: the sender who is also a signer, and a BCC who is also one of them."""
    both = mailing({}, {}, sender="Ann@x.co", bcc="ANN@x.co, third@x.co")
    assert (both.notify_sender, both.bcc) == (False, ["third@x.co"])
    assert mailing({}, {}, bcc="me@x.co").bcc == []
    uncopied = mailing({}, {"documents_copy_email_enabled": False}, sender="ann@x.co")
    assert uncopied.notify_sender
    assert mailing({}, {}, sender=None, bcc="me@x.co").notify_sender is False
    assert mailing({"completed_notification_email_enabled": False}, {}, bcc="me@x.co").bcc == ["me@x.co"]


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("completed_notification_email_attach_documents", "sender_attach_documents"),
        ("completed_notification_email_attach_audit", "sender_attach_audit"),
        ("documents_copy_email_enabled", "copy_signers"),
        ("documents_copy_email_attach_documents", "copy_attach_documents"),
        ("documents_copy_email_attach_audit", "copy_attach_audit"),
    ],
)
def test_each_switch_switches_one_thing(key: str, told: str) -> None:
    """Of the account or of the preferences: either says no."""
    everything = asdict(mailing({}, {}, copied=[]))
    for off in (mailing({key: False}, {}, copied=[]), mailing({}, {key: False}, copied=[])):
        assert asdict(off) == {**everything, told: False}
    assert asdict(mailing({}, {key: None}, copied=[])) == everything


def test_bcc_of_the_submission_comes_before_that_of_template_and_account() -> None:
    account = {"bcc_emails": "account@x.co"}
    assert mailing(account, {}).bcc == ["account@x.co"]
    assert mailing(account, {"bcc_completed": "template@x.co"}).bcc == ["template@x.co"]
    assert mailing(account, {"bcc_completed": "template@x.co"}, bcc="own@x.co").bcc == ["own@x.co"]
    assert mailing({"bcc_emails": "no address"}, {}).bcc == []


def test_without_mail_only_those_who_want_copies_get_any() -> None:
    silent = mailing({"bcc_emails": "account@x.co"}, {}, send_email=False)
    assert (silent.notify_sender, silent.bcc, silent.copy_signers) == (False, [], True)


def test_slugs_are_long_and_random() -> None:
    slugs = {new_slug() for _ in range(2_000)}
    assert len(slugs) == 2_000
    assert {len(slug) for slug in slugs} == {22}
    assert len({slug[0] for slug in slugs}) > 50


@pytest.mark.parametrize(
    ("name", "safe"),
    [("a.pdf", "a.pdf"), ("../../etc/passwd.pdf", "_.._etc_passwd.pdf"), ('a"b\r\n.pdf', "a_b__.pdf"), ("...", "file")],
)
def test_file_names_are_never_paths(name: str, safe: str) -> None:
    assert file_name(name) == safe


def test_links_of_answers_end_and_those_of_events_do_not() -> None:
    site = Site("https://x.example", "secret", 60, 600)
    assert site.expiring(NOON).expires_at == int(NOON.timestamp()) + 60
    assert site.mailed(NOON).expires_at == int(NOON.timestamp()) + 600
    assert site.lasting(31).expires_at is None
