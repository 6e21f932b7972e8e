"""What the file with the audit trail is called where people meet it: by the trail's own name, in the account's language."""

from types import SimpleNamespace

import pytest

from services.submissions.reading import present


@pytest.mark.parametrize(
    ("locale", "name"),
    [
        ("en-GB", "Audit trail - Lease"),
        ("de-AT", "Prüfprotokoll - Lease"),
        ("he", "יומן ביקורת - Lease"),  # and no marks of direction: some programs show them as boxes
        ("zh-TW", "稽核軌跡 - Lease"),
        ("tlh", "Audit trail - Lease"),
    ],
)
def test_the_audit_trail_is_named_in_the_account_s_language(locale: str, name: str) -> None:
    assert present.audit_trail_name(SimpleNamespace(id=1, name="Lease"), None, locale) == name


@pytest.mark.parametrize(
    ("locale", "name"), [("fr", "Journal de preuve - Dossier 7"), ("en", "Audit trail - Submission 7")]
)
def test_that_of_what_nobody_has_named_has_its_number(locale: str, name: str) -> None:
    assert present.audit_trail_name(SimpleNamespace(id=7, name=None), None, locale) == name
    assert present.title(SimpleNamespace(id=7, name=None), None) == "Submission 7"
