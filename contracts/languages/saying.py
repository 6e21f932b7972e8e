"""Say a message in a language: its sentence, with what is filled in.

A file ``messages/<language>/<section>.json`` holds the sentences of one place: ``page``, ``mail``, ``trail``, …, each under a
key. ``{name}`` is filled in. A sentence that depends on a number has a form for each plural category of CLDR; the value
``count`` chooses it.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from babel import Locale
from babel.numbers import format_decimal

from contracts.languages.choosing import MESSAGES, PSEUDO, SOURCE, best_of, locale_for

Message = str | dict[str, str]
"""A sentence, or its forms by plural category: at least ``other``."""

MARKS = ("⟦", "⟧")
"""What messages stand between in the pseudo-language."""

ISOLATES = _ISOLATE, _END_OF_ISOLATE = "\u2068", "\u2069"
"""What stands around a value that runs against its sentence; no part of a name or a subject."""

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_RIGHT_TO_LEFT = ("R", "AL")


@dataclass(frozen=True)
class Language:
    """A language for a reader. ``tag`` is that of its messages, ``locale`` the variety that dates and numbers are in."""

    tag: str
    locale: Locale

    @property
    def direction(self) -> str:
        """Return the value of the attribute ``dir``."""
        return "ltr" if self.tag == PSEUDO else str(self.locale.text_direction)

    def say(self, section: str, key: str, /, **values: object) -> str:
        """Return the message, with ``{name}`` filled in. Nothing is escaped: whoever writes HTML does that."""
        return self.section(section)(key, **values)

    def section(self, name: str) -> "Section":
        """Return the messages of one place."""
        return _section(self, name)


@dataclass(frozen=True)
class Section:
    """The messages of one place in one language, complete: what the language lacks is said in English."""

    spoken: Language
    words: Mapping[str, Message]

    @property
    def language(self) -> str:
        """Return the value of the attribute ``lang``."""
        return self.spoken.tag

    @property
    def direction(self) -> str:
        return self.spoken.direction

    def __call__(self, key: str, /, **values: object) -> str:
        """Return the message of ``key``. Raises KeyError when English has none."""
        return "".join(
            text if name is None else self._filled_in(value) for text, name, value in self.pieces(key, **values)
        )

    def pieces(self, key: str, /, **values: object) -> Iterator[tuple[str, str | None, object]]:
        """Return the message in pieces: a text, or the name of what is filled in with its value. For whoever writes HTML."""
        message = self.words[key]
        if isinstance(message, dict):
            count = values["count"]
            assert isinstance(count, int)
            message = message.get(self._category(count), message["other"])
            values = {**values, "count": format_decimal(count, locale=self.spoken.locale)}
        end = 0
        for match in _PLACEHOLDER.finditer(message):
            if match[1] in values:
                yield message[end : match.start()], None, None
                yield "", match[1], values[match[1]]
                end = match.end()
        yield message[end:], None, None

    def __contains__(self, key: str) -> bool:
        return key in self.words

    def of_kind(self, kind: str, number: int) -> str:
        """Name a field that has no name: ``Signature``, and the next one ``Signature 2``."""
        word = self(f"kind.{kind}") if f"kind.{kind}" in self else kind
        return word if number == 1 else f"{word} {number}"

    def _category(self, count: int) -> str:
        return str(self.spoken.locale.plural_form(count))

    def _filled_in(self, value: object) -> str:
        """Write a value that runs against the sentence's direction so that it keeps its own, and its place in the sentence.

        An address is left alone: programs that make links of it would take the mark along.
        """
        text = str(value)
        if "://" in text:
            return text
        return f"{_ISOLATE}{text}{_END_OF_ISOLATE}" if self._runs_against(text) else text

    def _runs_against(self, text: str) -> bool:
        against = ("L",) if self._is_right_to_left else _RIGHT_TO_LEFT
        return any(unicodedata.bidirectional(character) in against for character in text)

    @cached_property
    def _is_right_to_left(self) -> bool:
        return self.direction == "rtl"


def language_for(*preferred_tags: str | None) -> Language:
    """Return the language for the first of the ``preferred_tags`` tags that we speak, else English."""
    tag = best_of(preferred_tags) or SOURCE
    return _language(tag, str(locale_for(tag, preferred_tags)))


@cache
def _language(tag: str, locale: str) -> Language:
    return Language(tag, Locale.parse(locale))


@cache
def _section(language: Language, name: str) -> Section:
    source = messages(SOURCE, name)
    if language.tag == PSEUDO:
        return Section(language, {key: _marked(message) for key, message in source.items()})
    return Section(language, {**source, **messages(language.tag, name)})


@cache
def messages(tag: str, section: str) -> Mapping[str, Message]:
    """Return the messages of a section as the file of the language has them; none where it has no such file."""
    file = MESSAGES / tag / f"{section}.json"
    return dict(json.loads(file.read_text("utf-8"))) if file.is_file() else {}


@cache
def sections() -> tuple[str, ...]:
    """Return the names of the sections that there are."""
    return tuple(sorted(file.stem for file in (MESSAGES / SOURCE).glob("*.json")))


def placeholders(message: str) -> set[str]:
    return set(_PLACEHOLDER.findall(message))


def _marked(message: Message) -> Message:
    first, last = MARKS
    if isinstance(message, dict):
        return {category: f"{first}{form}{last}" for category, form in message.items()}
    return f"{first}{message}{last}"


def sentences(message: Message) -> Iterable[str]:
    """Return the forms of a message: one, or as many as it has plural categories."""
    return message.values() if isinstance(message, dict) else (message,)
