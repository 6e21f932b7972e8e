"""Say what is wrong with the messages of a language: ``python -m contracts.languages.check de``.

The judge of plural categories is CLDR's rules, as Babel has them.
"""

import re
import sys
import unicodedata
from collections.abc import Iterator

from babel import Locale

from contracts.languages.choosing import SOURCE, languages
from contracts.languages.saying import Message, messages, placeholders, sections, sentences

ENGLISH_ONLY = frozenset({"operator"})
"""Sections for whoever runs the installation, which are in English alone."""

_COUNTS = range(1000)
_MARKUP = re.compile(r"<\s*[A-Za-z/!]|&[A-Za-z#][A-Za-z0-9]*;")
_UNWRITTEN = ("Cc", "Cf", "Cs", "Co", "Cn")
_JOINERS = "\u200c\u200d"
_END = re.compile(r"[.!?:…。！？：।؟،]$")
_FEW_WORDS = 3


def faults(tag: str) -> list[str]:
    """Return a sentence for each thing that is wrong; none when the language is complete and sound."""
    return [fault for section in sections() for fault in _of_section(tag, section)]


def wanted_categories(tag: str) -> dict[str, set[int]]:
    """Return the plural categories that numbers of things have in the language, with the numbers of each; ``other`` always."""
    rule = Locale.parse(tag, sep="-").plural_form
    numbers: dict[str, set[int]] = {"other": set()}
    for count in _COUNTS:
        numbers.setdefault(str(rule(count)), set()).add(count)
    return numbers


def _of_section(tag: str, section: str) -> Iterator[str]:
    source, translated = messages(SOURCE, section), messages(tag, section)
    if section in ENGLISH_ONLY and tag != SOURCE:
        if translated:
            yield f"{section}: is in English alone"
        return
    for key in source.keys() - translated.keys():
        yield f"{section}: {key} is missing"
    for key in translated.keys() - source.keys():
        yield f"{section}: {key} is not in English"
    for key in translated.keys() & source.keys():
        for fault in _of_message(tag, source[key], translated[key]):
            yield f"{section}: {key} {fault}"


def _of_message(tag: str, source: Message, translated: Message) -> Iterator[str]:
    if isinstance(source, dict) != isinstance(translated, dict):
        yield "must have plural forms where English has them, and only there"
        return
    filled_in = {name for form in sentences(source) for name in placeholders(form)}
    if isinstance(translated, dict):
        yield from _of_plural(tag, translated, filled_in)
    elif placeholders(translated) != filled_in:
        yield f"must fill in {sorted(filled_in)}, not {sorted(placeholders(translated))}"
    for form in sentences(translated):
        yield from _of_text(form)
    if tag != SOURCE:
        yield from _against_english(source, translated)


def _of_plural(tag: str, forms: dict[str, str], filled_in: set[str]) -> Iterator[str]:
    expected = wanted_categories(tag)
    if forms.keys() != expected.keys():
        yield f"must have the forms {sorted(expected)}, not {sorted(forms)}"
    for category, form in forms.items():
        alone = len(expected.get(category, ())) == 1  # then the number may be a word, or be left out
        if placeholders(form) not in (filled_in, filled_in - {"count"} if alone else filled_in):
            yield f"({category}) must fill in {sorted(filled_in)}, not {sorted(placeholders(form))}"


def _of_text(form: str) -> Iterator[str]:
    if not form or form != form.strip() or "  " in form:
        yield "is empty, or has blanks where none belong"
    if _MARKUP.search(form):
        yield "holds HTML"
    if any(unicodedata.category(character) in _UNWRITTEN and character not in _JOINERS for character in form):
        yield "holds a character that nobody sees"
    if form.count("{") != form.count("}") or form.count("{") != len(re.findall(r"\{\w+\}", form)):
        yield "has a brace that is not one of a placeholder"


def _against_english(source: Message, translated: Message) -> Iterator[str]:
    english = [form for form in sentences(source) if len(form.split()) > _FEW_WORDS]
    if any(form in english for form in sentences(translated)):
        yield "is not translated"
    for form in sentences(translated):
        if all(_END.search(other) for other in sentences(source)) and not _END.search(form.rstrip("”»“\"'」』")):
            yield "must end as English does, with a full stop, colon or the like"


def main() -> int:
    is_faulty = False
    for tag in sys.argv[1:] or languages():
        for fault in faults(tag):
            print(f"{tag}: {fault}")  # noqa: T201 - for the person at the terminal
            is_faulty = True
    return 1 if is_faulty else 0


if __name__ == "__main__":
    sys.exit(main())
