"""What labels say of the field beside them, in the languages of the table."""

import pytest

from contracts.types import FieldType
from services.rendering.jobs.detection.labels import label_words
from services.rendering.jobs.detection.labels.labels import (
    is_answer,
    is_for_office,
    language_of,
    meaning,
    name_of,
    normalised,
    party_of,
    type_of,
)
from services.rendering.jobs.detection.labels.word_table import WordTable
from tests.support.files.plain_forms import WORDINGS
from tests.support.present import present


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("Signature", "signature"),
        ("SIGNATURE OF APPLICANT:", "signature"),
        ("Unterschrift", "signature"),
        ("Kundenunterschrift", "signature"),
        ("Ort, Datum, Unterschrift", "signature"),
        ("Date and signature", "signature"),
        ("Date / Signature", "signature"),
        ("Signature, date", "signature"),
        ("X", "signature"),
        ("By:", "signature"),
        ("Date of signature", "date"),
        ("Signature date:", "date"),
        ("Initials", "initials"),
        ("Middle initial", "text"),
        ("First name and initial", "text"),
        ("Geburtsdatum", "date"),
        ("Ort, Datum", "text"),
        ("Place and date", "text"),
        ("Date of birth (DD/MM/YYYY)", "date"),
        ("Tel.:", "phone"),
        ("Phone number", "phone"),
        ("E-Mail-Adresse", "email"),
        ("E-mail", "email"),
        ("Account number", "text"),
        ("Total amount", "number"),
        ("Gesamtbetrag", "number"),
        ("Address", "text"),
        ("氏名", "text"),
        ("日期", "date"),
        ("签名", "signature"),
        ("서명", "signature"),
        ("Підпис", "signature"),
        ("İmza", "signature"),
    ],
)
def test_a_label_says_what_is_filled_in(label: str, kind: str) -> None:
    assert meaning(label) == (kind, True)


def test_what_no_word_tells_is_a_text() -> None:
    assert meaning("Favourite colour") == ("text", False)
    assert meaning("") == ("text", False)


def test_a_word_means_what_it_means_in_the_language_of_the_document() -> None:
    assert meaning("Firma", "de").kind == "text"
    assert meaning("Firma", "es").kind == "signature"
    assert meaning("By:", "da").kind == "text"
    # What the language does not know may be of another one: forms in two languages.
    assert meaning("Unterschrift", "en").kind == "signature"


def test_the_language_is_that_of_most_labels() -> None:
    for language, wording in WORDINGS.items():
        labels = [wording.name, wording.address, wording.born, wording.signature, wording.date, wording.amount]
        assert language_of(labels) == language
    assert language_of(["Lorem", "ipsum"]) == ""
    assert language_of([]) == ""


def test_words_are_compared_without_case_accents_and_marks() -> None:
    assert normalised("  Prénom(s) & NOM_:") == "prenom s nom"
    assert normalised("Straße") == "strasse"
    assert normalised("Fødselsdato") == "fodselsdato"
    assert normalised("Číslo") == "cislo"
    assert normalised("Ｎａｍｅ") == "name"
    assert normalised("Příjmení\u00a0/ Imię łódź") == "prijmeni imie lodz"


def test_the_words_of_the_table_are_normalised() -> None:
    tables = (label_words.SIGNATURE, label_words.INITIALS, label_words.DATE, label_words.PHONE, label_words.EMAIL)
    others = (label_words.NUMBER, label_words.TEXT, label_words.AGREEING, label_words.OFFICE)
    for table in (*tables, *others):
        for words in table.values():
            for word in words.split(","):
                plain = word.strip().removeprefix("=").removesuffix("*").removeprefix("*")
                assert plain
                assert normalised(plain) == plain
    twelve = {"en", "de", "fr", "es", "it", "pt", "nl", "pl", "cs", "sv", "da", "fi"}
    assert all(twelve <= table.keys() for table in (*tables, *others))
    assert twelve <= label_words.PARTIES.keys()


def test_types_of_fields() -> None:
    assert type_of("signature") is FieldType.SIGNATURE
    assert type_of("initials") is FieldType.INITIALS
    assert type_of("date") is FieldType.DATE
    assert type_of("phone") is FieldType.PHONE
    assert type_of("number") is FieldType.NUMBER
    assert type_of("email") is type_of("text") is FieldType.TEXT


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("Name:", "Name"),
        ("7. Address (street and number):", "Address"),
        ("3a) Date ......", "Date"),
        ("12b. ZIP*", "ZIP"),
        ("(optional)", "optional"),
        ("  Full   name  ", "Full name"),
        ("Date of birth (DD/MM/YYYY)", "Date of birth"),
        ("word " * 30, ("word " * 12).strip()),
        ("x" * 100, "x" * 60),
        ("", ""),
    ],
)
def test_a_field_is_called_after_its_label(label: str, name: str) -> None:
    assert name_of(label) == name


def test_parties() -> None:
    landlord, genitive = party_of("Signature of the LANDLORD"), party_of("Unterschrift des Mieters")
    assert landlord is not None
    assert (landlord.side, landlord.name) == (0, "Landlord")
    assert genitive is not None
    assert (genitive.side, genitive.name) == (1, "Mieters")
    nominative = party_of("Mieter")
    assert nominative is not None
    assert nominative.key == genitive.key
    assert party_of("Service provider (hereinafter “SP”)") == present(party_of("Service Provider"))._replace(
        name="Service provider"
    )
    assert present(party_of("Vermieter und Mieter")).name == "Vermieter"
    assert party_of("Signature") is None


def test_answers_and_office_use() -> None:
    assert is_answer("Yes")
    assert is_answer("Ich stimme zu")
    assert not is_answer("Address")
    assert is_for_office("FOR OFFICE USE ONLY")
    assert is_for_office("Nicht ausfüllen")
    assert not is_for_office("Office address")


def test_a_table_of_words() -> None:
    table = WordTable(
        [("date of birth", 1), ("date", 2), ("*datum", 3), ("sign*", 4), ("=am", 5), ("no", 6), ("日期", 7)]
    )
    assert table.matches("date of birth") == [(0, 3, 1), (0, 1, 2)]
    assert table.matches("your date") == [(1, 2, 2)]
    assert table.matches("geburtsdatum") == [(0, 1, 3)]
    assert table.matches("signed") == [(0, 1, 4)]
    assert table.matches("geboren am") == [(1, 2, 5)]
    assert table.matches("am morgen") == []
    assert table.matches("no way") == []
    assert table.matches("account no") == [(1, 2, 6)]
    assert table.matches("出生日期") == [(2, 1, 7)]
    assert table.matches("") == []
