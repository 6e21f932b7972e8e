"""What is said, with what is filled in."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.languages import choosing, saying
from contracts.languages.saying import language_for

ENGLISH = {
    "hello": "Hello {name},",
    "bye": "Good-bye.",
    "files": {"one": "{count} file of {name}", "other": "{count} files of {name}"},
}
OTHERS = {
    "de": {"hello": "Guten Tag, {name},"},
    "pl": {
        "files": {"one": "{count} plik", "few": "{count} pliki", "many": "{count} plików", "other": "{count} pliku"}
    },
    "ar": {"hello": "مرحبًا {name}،"},
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for tag, words in {"en": ENGLISH, **OTHERS}.items():
        (tmp_path / tag).mkdir()
        (tmp_path / tag / "page.json").write_text(json.dumps(words))
    for module in (choosing, saying):
        monkeypatch.setattr(module, "MESSAGES", tmp_path)
    _forget()
    yield
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    for remembered in (choosing.languages, choosing._language_for, saying.messages, saying.sections, saying._section):
        remembered.cache_clear()


def said(tag: str, key: str, **values: object) -> str:
    return language_for(tag).say("page", key, **values)


def test_what_a_language_lacks_is_said_in_english() -> None:
    assert said("de", "hello", name="Ann") == "Guten Tag, Ann,"
    assert said("de", "bye") == "Good-bye."
    assert said("de", "files", count=2, name="Ann") == "2 files of Ann"
    assert said("sv", "bye") == "Good-bye."
    with pytest.raises(KeyError):
        said("de", "nothing")


@pytest.mark.parametrize(
    ("tag", "count", "text"),
    [
        ("en", 1, "1 file of Ann"),
        ("en", 0, "0 files of Ann"),
        ("en", 1234, "1,234 files of Ann"),
        ("pl", 1, "1 plik"),
        ("pl", 2, "2 pliki"),
        ("pl", 5, "5 plików"),
        ("pl", 22, "22 pliki"),
    ],
)
def test_a_number_chooses_the_form_and_is_written_as_the_language_does(tag: str, count: int, text: str) -> None:
    assert said(tag, "files", count=count, name="Ann") == text


def test_what_is_filled_in_is_not_looked_at_again() -> None:
    assert said("en", "files", count=2, name="{count}{name}") == "2 files of {count}{name}"
    assert said("en", "hello") == "Hello {name},"


def test_a_value_that_runs_against_the_sentence_keeps_its_place() -> None:
    assert said("ar", "hello", name="Ann") == "مرحبًا \u2068Ann\u2069،"
    assert said("ar", "hello", name="ليلى") == "مرحبًا ليلى،"
    assert said("en", "hello", name="ليلى") == "Hello \u2068ليلى\u2069,"
    assert said("en", "hello", name="Ann") == "Hello Ann,"


def test_direction() -> None:
    assert [language_for(tag).direction for tag in ("ar", "pl", "qps")] == ["rtl", "ltr", "ltr"]


def test_the_pseudo_language_marks_every_message() -> None:
    assert said("qps", "hello", name="Ann") == "⟦Hello Ann,⟧"
    assert said("qps", "files", count=1, name="Ann") == "⟦1 file of Ann⟧"
