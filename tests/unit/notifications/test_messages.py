"""What an API user writes in a message: variables, light Markdown, and that nothing in it ever runs or leads astray."""

import re

import pytest

from contracts.events import InvitationDue
from contracts.rpc.submissions.api import Message
from services.notifications.messages import composing
from services.notifications.messages.composing import Mail
from tests.support.material.letters import invitation, party

LINK = "https://sign.example.com/s/slug1"


def said(body: str, subject: str | None = None, due: InvitationDue | None = None) -> Mail:
    wanted = due or invitation(
        party(1, name="Bo Buyer", values={"Full Name": "Bo B.", "Price": 12.5, "Agreed": True, "Not yet": None})
    )
    return composing.invitations(wanted.model_copy(update={"message": Message(subject=subject, body=body)}))[0]


def html(body: str, due: InvitationDue | None = None) -> str:
    """The part of the HTML mail that the body became."""
    return said(f"{body}\n\nend {{{{submitter.link}}}}", due=due).html.partition("word-break:break-all")[0]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("{{submitter.name}}", "Bo Buyer"),
        ("{submitter.name}", "Bo Buyer"),
        ("{{{{ Submitter.NAME }}}}", "Bo Buyer"),
        ("{{submitter.first_name}}", "Bo"),
        ("{{submitter.email}}", "signer1@example.com"),
        ("{{submitter.id}}/{{submitter.slug}}", "1/slug1"),
        ("{{submitter.Full Name}} {{submitter.full name}}", "Bo B. Bo B."),
        ("{{submitter.Price}} {{submitter.Agreed}}", "12.5 yes"),
        ("{{submitters[1].name}} {{submitters[1].Full Name}}", "Bo Buyer Bo B."),
        ("[{{submitters[7].name}}]", "[]"),
        ("[{{submitter.Not yet}}]", "[]"),
        ("{{submitters}} {{submission.submitters}}", "Bo Buyer Bo Buyer"),
        ("{{template.name}} {{template.id}}", "Lease 7"),
        ("{{submission.name}} {{submission.id}}", "Lease 2026 31"),
        ("{{account.name}}", "Acme Ltd"),
        ("{{sender.name}} {{sender.first_name}} {{sender.email}}", "Ana Ray Ana ana@acme.example"),
        ("[{{submission.expire_at}}{{documents.link}}{{documents.links}}]", "[]"),
    ],
)
def test_variables_are_replaced(written: str, read: str) -> None:
    mail = said(f"x {written} y", subject=written)
    assert f"x {read} y" in mail.text
    assert f"x {read} y" in mail.html
    assert mail.subject == read


@pytest.mark.parametrize(
    "written", ["Dear {{submitter.name}}, please sign", "Dear  {submitters[9].email}, please sign"]
)
def test_no_gap_is_left_before_a_comma_where_a_name_is_missing(written: str) -> None:
    mail = said(
        f"{written}.\n\nFor {{{{submitter.name}}}} {{{{config}}}}, yes", written, invitation(party(1, name=None))
    )
    assert mail.subject == "Dear, please sign"
    assert "Dear, please sign." in mail.text
    assert "Dear, please sign." in mail.html
    assert "{{config}}, yes" in mail.text


@pytest.mark.parametrize(("known", "read"), [("Mary Ann", "Mary Ann"), (None, "Mary")])
def test_the_sender_s_first_name_is_the_user_s_where_it_is_known(known: str | None, read: str) -> None:
    due = invitation(party(1))
    sender = {"sender_name": "Mary Ann Lee", "sender_first_name": known}
    mail = said(
        "[{{sender.first_name}}]", due=due.model_copy(update={"context": due.context.model_copy(update=sender)})
    )
    assert f"[{read}]" in mail.text


@pytest.mark.parametrize(
    "written",
    [
        "{{config}}",
        "{{7*7}}",
        "{{ 7 * 7 }}",
        "{% for x in y %}",
        "{{submitter.__class__}}",
        "{{submitter.name.__class__.__mro__}}",
        "{{''.__class__}}",
        "{{submitters[0]}}",
        "{{ self }}",
        "{{cycler.__init__.__globals__.os}}",
        "{{account}}",
        "{{submitter.values}}",
        "${7*7}",
        "#{7*7}",
        "{}",
        "{{}}",
        "{ {submission.name",
    ],
)
def test_whatever_else_is_in_braces_stays_as_it_is(written: str) -> None:
    mail = said(f"x {written} y", subject=f"x {written} y")
    assert mail.subject == f"x {written} y"
    assert f"x {written} y" in mail.text
    assert f"x {written.replace(chr(39), '&#x27;')} y" in mail.html or f"x {written} y" in mail.html


def test_values_are_text_and_never_markdown_html_or_variables() -> None:
    hostile = "**bold** [click](https://evil.example) <img src=x onerror=alert(1)> {{account.name}} ++u++"
    due = invitation(party(1, name=hostile, values={"Note": hostile}))
    mail = said("Hello {{submitter.name}} and {{submitter.Note}}", due=due)
    for shown in (mail.text, mail.subject):
        assert "Acme Ltd" not in shown.replace("-- \nAcme Ltd", "")
    assert f"Hello {hostile} and {hostile}" in mail.text
    body = html("Hello {{submitter.name}} and {{submitter.Note}}", due=due)
    assert "<strong>" not in body
    assert "<img" not in body
    assert "<u>" not in body
    assert 'href="https://evil.example"' not in body
    assert "**bold** [click](https://evil.example) &lt;img" in body


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("**bold** and *italic*", "<strong>bold</strong> and <em>italic</em>"),
        ("++under++ me, C++ and B++", "<u>under</u> me, C++ and B++"),
        ("one\ntwo", "one<br>\ntwo"),
        ("- a\n- b", "<li>a</li>"),
        ("see https://example.com/a_b?c=1&d=2.", '<a href="https://example.com/a_b?c=1&amp;d=2"'),
        ("[terms](https://example.com)", '<a href="https://example.com" rel="noopener noreferrer">terms</a>'),
        ("[Sign]({{submitter.link}})", f'<a href="{LINK}" rel="noopener noreferrer">Sign</a>'),
        ("{{submitter.link}}", f'<a href="{LINK}" rel="noopener noreferrer">{LINK}</a>'),
        ("https://x.example/?n={{submitter.name}}", '<a href="https://x.example/?n=Bo%20Buyer"'),
        ("# not a heading", "# not a heading"),
        ("    not code", "not code"),
        ("AT&T &amp; <b>", "AT&amp;T &amp;amp; &lt;b&gt;"),
    ],
)
def test_markdown_is_light(written: str, read: str) -> None:
    assert read in html(written)


@pytest.mark.parametrize(
    "written",
    [
        "[x](javascript:alert(1))",
        "[x](JAVASCRIPT:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "[x](vbscript:x)",
        "[x](//evil.example)",
        "[x]({{submitter.name}})",
        "<a href='javascript:alert(1)'>x</a>",
        "![x](https://tracker.example/pixel.png)",
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<style>*{display:none}</style>",
        '[x](https://a.example" onclick="alert(1))',
    ],
)
def test_nothing_in_a_message_can_run_or_load(written: str) -> None:
    due = invitation(party(1, name="javascript:alert(1)"))
    body = html(written, due=due).partition("</head>")[2].lower()
    assert "<script" not in body
    assert "<img" not in body
    assert "<style" not in body
    assert re.search(r"<[^>]*\son", body) is None
    assert 'href="javascript' not in body
    assert 'href="data' not in body
    assert 'href="vbscript' not in body
    assert 'href="//' not in body


def test_the_plain_text_says_the_same() -> None:
    mail = said("Dear *Bo*,\n\nread [the terms](https://example.com):\n\n1. this\n2. that\n\n- [x] {{submitter.link}}")
    assert mail.text.startswith("Dear Bo,\n\nread the terms (https://example.com):\n\n1. this\n2. that\n")
    assert f"- [x] {LINK}" in mail.text
    assert mail.links == ["https://example.com", LINK]


def test_the_link_is_appended_when_the_body_has_none() -> None:
    without = said("Please sign.")
    assert without.text.count(LINK) == 1
    assert without.html.count(f'href="{LINK}"') == 2
    assert without.links == [LINK]
    placed = said("Please sign: {{ submitter.LINK }}")
    assert placed.text.count(LINK) == 1
    assert placed.html.count(f'href="{LINK}"') == 1


def test_a_message_may_be_a_subject_or_a_body_only() -> None:
    assert said("", subject="Hi {{submitter.first_name}}").subject == "Hi Bo"
    assert "asks you to sign" in said("", subject="Hi").text
    assert said("Just this").subject == "Ana Ray asks you to sign “Lease 2026”"
    assert "asks you to sign" not in said("Just this").text


@pytest.mark.parametrize(
    "subject", ["Hi\r\nBcc: evil@example.com", "Hi\nBcc: evil@example.com", "Hi\x00\x0bBcc:", "Hi\u2028Bcc"]
)
def test_a_subject_is_one_line(subject: str) -> None:
    assert "\n" not in said("x", subject=subject).subject
    assert "\r" not in said("x", subject=subject).subject
    assert said("x", subject=subject).subject.startswith("Hi Bcc")


def test_a_name_with_a_line_break_does_not_break_the_subject() -> None:
    due = invitation(party(1, name="Bo\r\nBcc: evil@example.com"))
    assert said("x", subject="Hi {{submitter.name}}", due=due).subject == "Hi Bo Bcc: evil@example.com"


def test_characters_that_nothing_can_store_are_left_out() -> None:
    mail = said("a\x00b\ud800c\u202ed\r\ne\tf")
    assert mail.text.startswith("abcd\ne\tf\n")
    mail.html.encode()


def test_a_body_that_is_made_to_be_slow_is_not() -> None:
    for body in (
        "[" * 100_000,
        "*a " * 50_000,
        "{{" * 50_000,
        "- " * 50_000,
        "++a" * 30_000,
        "> " * 50_000,
        "`" * 100_000,
        "x {" * 50_000 + "}" * 50_000,
        "x {a" + " " * 100_000,
    ):
        said(body)
