"""Every language is complete and sound, and the check notices what is not."""

import sys
from typing import Any

import pytest

from contracts.languages import check
from contracts.languages.choosing import languages
from contracts.languages.saying import messages, sections


@pytest.mark.parametrize("tag", languages())
def test_a_language_has_every_message_with_its_places_and_forms(tag: str) -> None:
    assert check.faults(tag) == []


PLURAL = {"one": "{count} file", "other": "{count} files"}


@pytest.mark.parametrize(
    ("tag", "source", "own", "fault"),
    [
        ("de", "Hello {name}.", "Guten Tag.", "must fill in ['name'], not []"),
        ("de", "Hello.", "Guten Tag {name}.", "must fill in [], not ['name']"),
        ("de", "Hello.", "<b>Hallo</b>.", "holds HTML"),
        ("de", "Hello.", "Guten&nbsp;Tag.", "holds HTML"),
        ("de", "Hello.", " Hallo.", "blanks"),
        ("de", "Hello.", "", "is empty"),
        ("de", "Hello.", "Hal\u202elo.", "nobody sees"),
        ("de", "Hello.", "Guten  Tag.", "blanks"),
        ("de", "Hello.", "Hallo {.", "brace"),
        ("de", "Hello.", "Hallo }.", "brace"),
        ("de", "Hello.", "Hallo { }.", "brace"),
        ("de", "Hello.", "Hallo", "must end as English does"),
        ("de", "You sign this document.", "You sign this document.", "is not translated"),
        ("de", PLURAL, "{count} Dateien", "plural forms"),
        ("de", "Files", PLURAL, "plural forms"),
        ("pl", PLURAL, {"one": "{count} plik", "other": "{count} pliku"}, "['few', 'many', 'one', 'other']"),
        ("ja", PLURAL, {"one": "1", "other": "{count}"}, "must have the forms ['other']"),
        ("fr", PLURAL, {"one": "un fichier", "other": "{count} fichiers"}, "(one) must fill in"),  # also of none
        ("en", PLURAL, {"one": "a file", "other": "files"}, "(other) must fill in"),
    ],
)
def test_the_check_notices(tag: str, source: Any, own: Any, fault: str) -> None:
    assert any(fault in found for found in check._of_message(tag, source, own))


@pytest.mark.parametrize(
    ("tag", "source", "own"),
    [
        ("de", "Hello {name}.", "Guten Tag, {name}."),
        ("de", "OK", "OK"),
        ("de", "Ctrl S Enter", "Ctrl S Enter"),
        ("de", "Issue.", "Auf\u200clage."),
        ("de", PLURAL, {"one": "eine Datei", "other": "{count} Dateien"}),
        ("hi", "It is open.", "यह खुला है।"),
        ("ja", "It is open.", "開いています。"),
        (
            "ar",
            PLURAL,
            {
                "zero": "لا ملفات",
                "one": "ملف واحد",
                "two": "ملفان",
                "few": "{count} ملفات",
                "many": "{count} ملفًا",
                "other": "{count} ملف",
            },
        ),
    ],
)
def test_the_check_lets_pass(tag: str, source: Any, own: Any) -> None:
    assert list(check._of_message(tag, source, own)) == []


def test_a_language_that_is_not_there_lacks_everything() -> None:
    wanted = sum(len(messages("en", section)) for section in sections() if section not in check.ENGLISH_ONLY)
    assert len(check.faults("sv")) == wanted


def test_what_is_for_operators_is_in_english_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"en": {"note": "Look at the log."}, "de": {"note": "Ins Protokoll sehen."}}
    monkeypatch.setattr(check, "sections", lambda: ["operator"])
    monkeypatch.setattr(check, "messages", lambda tag, _section: there.get(tag, {}))
    assert [check.faults(tag) for tag in ("en", "de", "fr")] == [[], ["operator: is in English alone"], []]


@pytest.mark.parametrize(("wanted", "said"), [(["sv"], "sv: "), (["de"], ""), ([], ""), (["de", "sv"], "sv: ")])
def test_the_program_says_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wanted: list[str], said: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["check", *wanted])
    monkeypatch.setattr(check, "languages", lambda: ("en", "de"))
    assert check.main() == (1 if said else 0)
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith(said) for line in lines)
    assert bool(lines) is bool(said)


def test_the_program_looks_at_every_language_unless_some_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["check"])
    monkeypatch.setattr(check, "languages", lambda: ("sv",))
    assert check.main() == 1
    assert "sv: " in capsys.readouterr().out
