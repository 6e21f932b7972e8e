"""What a browser may offer for a field: only where the field's whole name is about the signer."""

from typing import Any

import pytest

from contracts.rpc.submissions.signing.form import FormField
from services.gateway.pages.answering.autocomplete import tokens


def offered(*labels: str, **more: Any) -> list[str | None]:
    fields = [
        FormField(uuid=str(number), submitter_uuid="s", role="Signer", **{"type": "text", **more})
        for number in range(len(labels))
    ]
    found = tokens(fields, {field.uuid: label for field, label in zip(fields, labels, strict=True)})
    return [found.get(field.uuid) for field in fields]


@pytest.mark.parametrize(
    ("label", "token"),
    [
        ("Name", "name"),
        ("Your full name", "name"),
        ("  E-Mail-Adresse: * ", "email"),
        ("Email", "email"),
        ("Straße", "address-line1"),
        ("STRASSE", "address-line1"),
        ("Nom et prénom", "name"),
        ("Prénom", "given-name"),
        ("Company", "organization"),
        ("PLZ", "postal-code"),
        ("पूरा नाम", "name"),
        ("氏名", "name"),
        ("الاسم الكامل", "name"),
        ("Ім’я та прізвище", "name"),
        ("Name of the landlord", None),
        ("Landlord's name", None),
        ("Spouse: name", None),
        ("Name (guarantor)", None),
        ("Emergency phone", None),
        ("Amount", None),
        ("", None),
    ],
)
def test_the_whole_name_of_a_field_says_what_it_asks(label: str, token: str | None) -> None:
    assert offered(label) == [token]


def test_what_two_fields_ask_for_is_offered_to_neither() -> None:
    assert offered("Name", "City", "Full name") == [None, "address-level2", None]


@pytest.mark.parametrize("more", [{"mine": False}, {"readonly": True}, {"type": "number"}, {"type": "select"}])
def test_other_fields_get_nothing(more: dict[str, Any]) -> None:
    assert offered("Name", **more) == [None]


def test_a_day_is_a_birthday_only_in_a_date() -> None:
    assert offered("Date of birth", type="date") == ["bday"]
    assert offered("Date of birth") == [None]
    assert offered("Date", type="date") == [None]
