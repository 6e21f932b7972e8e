"""The texts of the pages, by language: one JSON file each. ``{name}`` is filled in; ``key.one`` and ``key.other`` are the
forms of a count (CLDR plural categories)."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from werkzeug.datastructures import LanguageAccept

FALLBACK = "en"
STATEMENT = "review.statement"
"""The statement above the Complete button. The audit trail states it."""

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Texts:
    """``language`` is the value of the page's ``lang`` attribute, ``direction`` that of ``dir``."""

    language: str
    direction: str
    words: dict[str, str]

    def __call__(self, key: str, **values: object) -> str:
        """The text of ``key``; what is filled in is not escaped, Jinja does that."""
        text = self.words[key]
        for name, value in values.items():
            text = text.replace("{" + name + "}", str(value))
        return text

    def of_kind(self, kind: str, number: int) -> str:
        """Name a field that has no name: ``Signature``, and the next one ``Signature 2``."""
        word = self.words.get(f"kind.{kind}", kind)
        return word if number == 1 else f"{word} {number}"


@cache
def languages() -> tuple[str, ...]:
    """The languages there are, the fallback first."""
    return tuple(sorted((file.stem for file in _FOLDER.glob("*.json")), key=lambda name: (name != FALLBACK, name)))


@cache
def in_language(language: str) -> Texts:
    content = json.loads((_FOLDER / f"{language}.json").read_text("utf-8"))
    return Texts(language, content["direction"], content["words"])


def statement_of(words: str) -> dict[str, str] | None:
    """The statement above the Complete button that has these ``words``, with its ``language``; None when none of ours has."""
    matches = (texts.language for texts in map(in_language, languages()) if texts(STATEMENT) == words)
    language = next(matches, None)
    return {"language": language, "words": words} if language else None


def for_reader(accepted: LanguageAccept) -> Texts:
    """The texts in the language that the browser likes best of those there are."""
    return in_language(accepted.best_match(languages(), FALLBACK) or FALLBACK)
