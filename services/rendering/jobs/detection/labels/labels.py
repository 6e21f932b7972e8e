"""What a label says of the field beside it: its type, whose it is, what it is called. Pure."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from contracts.types import FieldType
from services.rendering.jobs.detection.labels import label_words
from services.rendering.jobs.detection.labels.word_table import Match, WordTable, entries_of
from services.rendering.jobs.tags.values import clean

LONGEST_LABEL = 60

_WITHOUT_PARTS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "þ": "th"})
"""Letters that are no accented ones for Unicode."""
_VOICED = "\u3099\u309a"
"""Marks that make another letter of a Japanese one."""
_NO_WORD = re.compile(r"[^\w]+|_+")
_NUMBERED = re.compile(r"^\s*(?:\(?\d{1,3}\s?[a-z]?[.)]|\(?[a-z][.)]|\d{1,2}[a-z](?=\s))\s*(?=\S)", re.IGNORECASE)
_AT_END = " \t:：;,.·…_-–—*/\\|("
_AT_START = " \t:;,.·…_-–—*/\\|)▶►•‣"
_REMARK = re.compile(r"\s*[(（\[][^()（）\[\]]*[)）\]]\s*[:：*]*\s*$")
_X_MARK = re.compile(r"[x✗✘×]", re.IGNORECASE)
_OF_DATE = re.compile(r"[,/&+]|(?<!\w)(?:and|und|et|y|e|en|i|a|och|og|ja|ve|dan|та)(?!\w)")
"""Stands between a date and a signature where both go on one line."""
_PLACE = re.compile(r"(?<!\w)(?:place|ort|lieu|lugar|luogo|local|plaats|miejscowosc|misto|sted|paikka)(?!\w)")


class Meaning(NamedTuple):
    """What a label asks for: ``kind`` is signature, initials, date, phone, email, number or text, ``is_known`` whether one of
    the words of the table says so."""

    kind: str
    is_known: bool


class PartyName(NamedTuple):
    """One of two parties, and how the document calls them: ``side`` is 0 for who lets, sells or employs, else 1; ``key`` is the
    same for all forms of the word."""

    side: int
    key: str
    name: str


def normalised(text: str) -> str:
    """Return the words of a text in small letters and without accents, with one blank between them (NFKC, casefold)."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    plain = "".join(letter for letter in folded if not unicodedata.combining(letter) or letter in _VOICED)
    plain = plain.translate(_WITHOUT_PARTS)
    return " ".join(_NO_WORD.sub(" ", unicodedata.normalize("NFC", plain)).split())


def language_of(labels: Iterable[str]) -> str:
    """Return the language (ISO 639-1) of the table that knows most of these labels; empty when none knows any. A word of
    several languages counts as a part for each: “Firma” is a company in one and a signature in another."""
    scores: Counter[str] = Counter()
    for label in labels:
        knowing = {language for _, _, (_, language) in _KINDS.matches(normalised(label))}
        scores.update(dict.fromkeys(knowing, 60 // max(len(knowing), 1)))
    return min(scores, key=lambda language: (-scores[language], language), default="")


@cache
def meaning(label: str, language: str = "") -> Meaning:
    """Return what the label asks for, by the words of that language first; a text where it does not say."""
    words = normalised(label)
    if _X_MARK.fullmatch(label.strip()):
        return Meaning("signature", is_known=True)
    matches = _KINDS.matches(words)
    in_language = [match for match in matches if match.means[1] == language]
    first_by_kind: dict[str, Match[tuple[str, str]]] = {}
    for match in in_language or matches:
        first_by_kind.setdefault(match.means[0], match)
    return Meaning(_kind_of(label, words, first_by_kind) if first_by_kind else "text", is_known=bool(first_by_kind))


def _kind_of(label: str, words: str, first_by_kind: Mapping[str, Match[tuple[str, str]]]) -> str:
    if "initials" in first_by_kind and not first_by_kind.keys() & {"text", "signature"}:
        return "initials"
    if "signature" in first_by_kind and not _is_date_of_signing(label, first_by_kind):
        return "signature"
    if "date" in first_by_kind and not _PLACE.search(words):
        return "date"
    for kind in ("email", "phone", "number"):
        if kind in first_by_kind and not (
            "text" in first_by_kind and first_by_kind["text"].start < first_by_kind[kind].start
        ):
            return kind
    return "text"


def type_of(kind: str) -> FieldType:
    """Return the type of field that takes it; an e-mail address is a text."""
    return _TYPES.get(kind, FieldType.TEXT)


def is_answer(label: str) -> bool:
    """Return whether it is what stands beside a box to tick, such as “yes” or “I agree”."""
    return bool(_AGREEING.matches(normalised(label)))


def is_for_office(label: str) -> bool:
    """Return whether what stands under it is filled in by somebody else."""
    return bool(_OFFICE.matches(normalised(label)))


@cache
def party_of(text: str) -> PartyName | None:
    """Return which party of an agreement a short text names, by the first such word in it."""
    words = normalised(text)
    matches = _PARTIES.matches(words)
    if not matches:
        return None
    start, end, (side, key) = matches[0]
    return PartyName(side, key, _as_written(text, " ".join(words.split()[start:end])))


def name_of(label: str) -> str:
    """Return what a field is called after its label: without number, marks and remarks in brackets, 60 letters at most."""
    text = _NUMBERED.sub("", clean(label, 4 * LONGEST_LABEL))
    without = _REMARK.sub("", text)
    text = (without if without.strip(_AT_START) else text).rstrip(_AT_END).lstrip(_AT_START)
    text = " ".join(text.split())
    if text.count(")") > text.count("("):
        text = text.rstrip(") ")
    elif text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    if len(text) <= LONGEST_LABEL:
        return text
    cut = text[:LONGEST_LABEL]
    return (cut.rsplit(" ", 1)[0] if " " in cut else cut).rstrip(_AT_END)


def _is_date_of_signing(label: str, first_by_kind: Mapping[str, Match[tuple[str, str]]]) -> bool:
    """“Date of signature” and “Signature date” ask for a date, “Date, signature” for a signature."""
    date, signature = first_by_kind.get("date"), first_by_kind["signature"]
    if date is None or _OF_DATE.search(label.casefold()):
        return False
    return date.start < signature.start or date.end == len(normalised(label).split())


def _as_written(text: str, words: str) -> str:
    """The part of the text that these normalised words are."""
    count = len(words.split())
    written = text.split()
    for start in range(len(written)):
        part = " ".join(written[start : start + count])
        if normalised(part) == words:
            part = re.sub(r"^\W+|\W+$", "", part)
            return part.capitalize() if part.isupper() or part.islower() else part
    return words.capitalize()


_TABLES = {
    "signature": label_words.SIGNATURE,
    "initials": label_words.INITIALS,
    "date": label_words.DATE,
    "email": label_words.EMAIL,
    "phone": label_words.PHONE,
    "number": label_words.NUMBER,
    "text": label_words.TEXT,
}
_KINDS = WordTable(entries_of(_TABLES))
_TYPES = {
    "signature": FieldType.SIGNATURE,
    "initials": FieldType.INITIALS,
    "date": FieldType.DATE,
    "phone": FieldType.PHONE,
    "number": FieldType.NUMBER,
}
_AGREEING = WordTable(entries_of({"answer": label_words.AGREEING}))
_OFFICE = WordTable(entries_of({"office": label_words.OFFICE}))
_PARTIES = WordTable(
    (word.strip(), (side, f"{language}{number}.{side}"))
    for language, pairs in label_words.PARTIES.items()
    for number, names in enumerate(pairs)
    for side in (0, 1)
    for word in names[side].split(",")
)
