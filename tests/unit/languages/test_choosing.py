"""Which language a reader gets."""

from pathlib import Path

import pytest
from babel import localedata

from contracts.languages import choosing

TAGS = (
    *["en", "ar", "cs", "de", "es", "fr", "he", "hi", "id", "it", "ja", "ko", "nl", "pl", "pt", "tr", "uk"],
    "zh-Hans",
    "zh-Hant",
)


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every language were there already."""
    monkeypatch.setattr(choosing, "languages", lambda: TAGS)
    choosing._language_for.cache_clear()
    monkeypatch.setattr(choosing, "_language_for", choosing._language_for.__wrapped__)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    ("wanted", "language"),
    [
        (["de"], "de"),
        (["DE_at"], "de"),
        (["pt-BR"], "pt"),
        (["pt-PT"], "pt"),
        (["es-419"], "es"),
        (["de-CH-1996"], "de"),
        (["de-u-co-phonebk"], "de"),
        (["de-XX"], "de"),
        (["iw"], "he"),  # as browsers called Hebrew once
        (["in-ID"], "id"),
        (["zh"], "zh-Hans"),
        (["zh-CN"], "zh-Hans"),
        (["zh-SG"], "zh-Hans"),
        (["zh-TW"], "zh-Hant"),
        (["zh-HK"], "zh-Hant"),
        (["zh-Hant-CN"], "zh-Hant"),
        (["zh-Hans-TW"], "zh-Hans"),
        (["nb"], None),
        (["nb-NO", "nb", "no", "nn", "en-US", "en"], "en"),  # what Chrome sends from Norway
        (["no-NO"], None),
        (["nb", "de"], "de"),
        ([None, "", "*", "x", "i-klingon", "ja"], "ja"),
        (["de" * 40], None),
        (["\x00", "../de", "de/../en"], None),
        (["qps"], "qps"),
        ([], None),
    ],
)
def test_the_first_wanted_tag_that_there_is_a_language_for(wanted: list[str | None], language: str | None) -> None:
    assert choosing.best_of(wanted) == language


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    ("language", "wanted", "locale"),
    [
        ("pt", ["pt-PT"], "pt_PT"),
        ("en", ["nb", "en-US"], "en_US"),
        ("en", ["nb"], "en_GB"),
        ("de", [], "de"),
        ("zh-Hant", ["zh-HK"], "zh_Hant_HK"),
        ("zh-Hant", [], "zh_Hant"),
        ("qps", ["qps"], "en_GB"),
    ],
)
def test_dates_are_in_the_readers_variety_of_the_language_of_the_words(
    language: str, wanted: list[str | None], locale: str
) -> None:
    assert str(choosing.locale_for(language, wanted)) == locale


def test_english_is_first_of_all() -> None:
    assert choosing.languages()[0] == "en"
    assert all((Path(choosing.MESSAGES) / tag).is_dir() for tag in choosing.languages())


def test_no_language_that_cldr_knows_is_too_much() -> None:
    tags = [identifier.replace("_", "-") for identifier in localedata.locale_identifiers()]
    assert {choosing.best_of([tag]) for tag in tags} >= {*choosing.languages(), None}


def test_the_longest_tag_that_is_read() -> None:
    longest = "de-" + "x" * 32
    assert str(choosing.known_locale(longest)) == "de"
    assert choosing.known_locale(longest + "x") is None


def test_languages_are_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("fr", "en", "de"):
        (tmp_path / name).mkdir()
    (tmp_path / "README.md").touch()
    monkeypatch.setattr(choosing, "MESSAGES", tmp_path)
    assert choosing.languages.__wrapped__() == ("en", "de", "fr")
