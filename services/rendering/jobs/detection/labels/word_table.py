"""Words of a table (``label_words``) found in a text. Pure.

A table has some two thousand entries and is asked for each phrase of a page, so the first word of an entry is looked up.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

_UNPARTED = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_SHORT = 2


class Match(NamedTuple, Generic[T]):
    """An entry that was found: what it ``means``, and from which word of the text to which (exclusive)."""

    start: int
    end: int
    means: T


class _Entry(NamedTuple, Generic[T]):
    words: tuple[str, ...]
    is_last: bool
    means: T


class WordTable(Generic[T]):
    """Entries of a table with what each of them means."""

    def __init__(self, entries: Iterable[tuple[str, T]]) -> None:
        self._unparted: list[tuple[str, T]] = []
        self._whole: dict[str, list[_Entry[T]]] = defaultdict(list)
        self._beginning: dict[str, list[_Entry[T]]] = defaultdict(list)
        self._ending: dict[str, list[_Entry[T]]] = defaultdict(list)
        for text, means in entries:
            self._add(text, means)
        self._beginnings = sorted({len(word) for word in self._beginning})
        self._endings = sorted({len(word) for word in self._ending})

    def _add(self, text: str, means: T) -> None:
        if _UNPARTED.search(text):
            self._unparted.append((text, means))
            return
        words = tuple(text.removeprefix("=").split())
        entry = _Entry(words, text.startswith("=") or len(text) <= _SHORT, means)
        first = words[0]
        if first.endswith("*"):
            self._beginning[first[:-1]].append(entry)
        elif first.startswith("*"):
            self._ending[first[1:]].append(entry)
        else:
            self._whole[first].append(entry)

    def matches(self, text: str) -> list[Match[T]]:
        """All entries in a text that was normalised (``labels.normalised``), by where they begin."""
        words = text.split()
        matches = [
            Match(start, start + len(entry.words), entry.means)
            for start, word in enumerate(words)
            for entry in self._beginning_with(word)
            if _is_there(entry.words[1:], words[start + 1 :])
            and not (entry.is_last and start + len(entry.words) < len(words))
        ]
        if self._unparted and _UNPARTED.search(text):
            matches += [Match(text.index(part), len(words), means) for part, means in self._unparted if part in text]
        return sorted(matches, key=lambda match: (match.start, -match.end))

    def _beginning_with(self, word: str) -> list[_Entry[T]]:
        entries = list(self._whole.get(word, ()))
        for length in self._beginnings:
            entries += self._beginning.get(word[:length], ()) if length <= len(word) else ()
        for length in self._endings:
            entries += self._ending.get(word[-length:], ()) if length <= len(word) else ()
        return entries


def entries_of(tables: Mapping[str, Mapping[str, str]]) -> list[tuple[str, tuple[str, str]]]:
    """All words of tables by language, each with the table's name and its language."""
    return [
        (word.strip(), (name, language))
        for name, table in tables.items()
        for language, words in table.items()
        for word in words.split(",")
    ]


def _is_there(pattern: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether the words begin so."""
    return len(pattern) <= len(words) and all(
        word.startswith(part[:-1]) if part.endswith("*") else word == part
        for part, word in zip(pattern, words, strict=False)
    )
