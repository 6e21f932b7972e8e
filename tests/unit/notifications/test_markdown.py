"""The body of a message, to the letter: what becomes of it as text, as HTML, and which addresses are in it."""

import pytest

from contracts.events import Recipient
from services.notifications.messages.markdown import Rendered, render_body
from services.notifications.messages.variables import Variables
from tests.support.material.letters import context, party

LINK = "https://sign.example.com/s/slug1"


def rendered(body: str, reader: Recipient | None = None) -> Rendered:
    reader = reader or party(1, name="Bo Buyer")
    return render_body(body, Variables(context(reader, party(2, name="Cy")), reader))


def link(address: str, words: str | None = None) -> str:
    return f'<a href="{address}" rel="noopener noreferrer">{words or address}</a>'


@pytest.mark.parametrize(
    ("body", "html"),
    [
        ("Dear Bo", "<p>Dear Bo</p>\n"),
        ("a ++b++ c ++d++ e", "<p>a <u>b</u> c <u>d</u> e</p>\n"),
        (
            "at https://a.example and https://b.example.",
            f"<p>at {link('https://a.example')} and {link('https://b.example')}.</p>\n",
        ),
        (
            "[see https://b.example](https://a.example)",
            f"<p>{link('https://a.example', 'see https://b.example')}</p>\n",
        ),
        ("[see ++b++](//a.example) ++c++", "<p>see ++b++ <u>c</u></p>\n"),
        (
            "{{submitter.link}} or [here]({{submitter.link}}), {{submitter.name}}",
            f"<p>{link(LINK)} or {link(LINK, 'here')}, Bo Buyer</p>\n",
        ),
    ],
)
def test_html(body: str, html: str) -> None:
    assert rendered(body).html == html


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("Dear *Bo*,\n\nread  \nthis\nand this", "Dear Bo,\n\nread\nthis\nand this"),
        (
            "To do:\n\n- read\n- sign\n  1. here\n  2. there\n- send\n\nThank you",
            "To do:\n\n- read\n- sign\n  1. here\n  2. there\n- send\n\nThank you",
        ),
        ("5. five\n6. six\n\nand\n\n1. one", "5. five\n6. six\n\nand\n\n1. one"),
        ("- a\n\n  b\n- c", "- a\nb\n- c"),
        ("[the terms](https://a.example) at https://b.example", "the terms (https://a.example) at https://b.example"),
    ],
)
def test_text(body: str, text: str) -> None:
    assert rendered(body).text == text


@pytest.mark.parametrize(
    ("body", "links"),
    [
        ("nothing", []),
        ("[a](https://a.example) https://b.example https://a.example", ["https://a.example", "https://b.example"]),
        ("{{submitter.name}} {{documents.link}} {{submitter.link}} {{submitter.link}}", [LINK]),
        ("[a](https://a.example/?n={{submitter.name}})", ["https://a.example/?n=Bo%20Buyer"]),
        ("[a](javascript:x) [b](//b.example)", []),
    ],
)
def test_links(body: str, links: list[str]) -> None:
    assert rendered(body).links == links


def test_an_address_that_somebody_gave_as_their_name_leads_nowhere() -> None:
    mail = rendered("Dear {{submitter.name}}", party(1, name="https://evil.example"))
    assert mail == Rendered("Dear https://evil.example", "<p>Dear https://evil.example</p>\n", [])
