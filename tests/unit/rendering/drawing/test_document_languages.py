"""What documents say that nobody has written is in the account's language: poppler reads it there, as it was drawn."""

import re
from collections import Counter
from pathlib import Path

import pikepdf
import pytest

from contracts.fields.paper import page_footer, words_of
from contracts.languages.choosing import PSEUDO, languages
from contracts.types import Account
from services.rendering.jobs.drawing.fill import fill_into
from services.rendering.jobs.sealing.verifying.reading import is_found
from tests.support.rendering.drawing import (
    area,
    blank_pdf,
    field_value,
    note,
    party,
    poppler_text,
    request,
    saved,
    stored,
)
from tests.support.rendering.filling import ATTACHMENTS, FILES, SIGNATURE

SIGNERS = [party(), party(2, role="Vermieterin", name="Bob")]


def filled(locale: str) -> tuple[bytes, list[str]]:
    """A page with everything that is said in words of ours, and these as they were drawn."""
    account = Account(locale=locale, with_signature_id=True)
    reasoned = field_value("signature", SIGNATURE, area(0.1, 0.25, 0.5, 0.1))
    fields = [
        field_value("stamp", None, area(0.1, 0.1, 0.4, 0.1)),
        reasoned,
        field_value("signature", SIGNATURE, area(0.1, 0.4, 0.5, 0.1)),
        field_value("verification", "verified", area(0.1, 0.55, 0.4, 0.03)),
        field_value("multiple", ["B", ""], area(0.1, 0.6, 0.4, 0.03), options=["", "B"]),
    ]
    pdf: pikepdf.Pdf = blank_pdf()
    asked = request(
        *fields, account=account, notes=[note(reasoned, "I approve")], attachments=ATTACHMENTS, parties=SIGNERS
    )
    drawn = fill_into(pdf, stored(), asked, FILES)
    return saved(pdf), [*(one.text or "" for one in drawn), page_footer(account, asked.submission_slug)]


@pytest.mark.parametrize("tag", languages())
def test_it_is_in_the_accounts_language_and_can_be_read(tag: str, tmp_path: Path) -> None:
    say = words_of(Account(locale=tag))
    data, drawn = filled(tag)
    read = poppler_text(data, tmp_path)
    for text in drawn:
        for line in text.splitlines():
            assert is_found(line, read), (line, read)
    stamp, reason, signed = drawn[0], " ".join(drawn[1].split()), " ".join(drawn[2].split())
    assert stamp.splitlines()[0] == say("signed_by")
    assert letters(say("role", role="First Party")) <= letters(stamp)
    assert letters(say("reason.name", reason="I approve", name="Ana Kowalska ana@example.com")) <= letters(reason)
    assert letters(say("signed_by.name", name="Ana Kowalska ana@example.com")) <= letters(signed)
    assert drawn[3:5] == [say("verified"), f"B, {say('option', number=1)}"]


def test_nothing_of_it_stands_outside_the_files_of_messages(tmp_path: Path) -> None:
    data, _ = filled(PSEUDO)
    rest = re.sub(r"⟦[^⟧]*⟧", " ", " ".join(poppler_text(data, tmp_path).split()))
    for own in (SIGNATURE.upper(), "Ana Kowalska", "ana@example.com"):
        rest = rest.replace(own, " ")
    words = re.findall(r"[^\W\d_]{2,}", rest)
    assert {*words} <= {"ID", "Nov", "AM", "PM", "UTC"}, rest


def letters(text: str) -> Counter[str]:
    """What it is made of: a note is told in the order in which it stands on paper, which is another one from right to left."""
    return Counter(text.translate(dict.fromkeys([*range(0x2066, 0x206A), 0x20, 0xA0])))
