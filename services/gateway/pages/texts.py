"""The messages of the pages, in the language of whoever reads them."""

from typing import Any

import flask

from contracts.languages import choosing
from contracts.languages.formatting import name_of
from contracts.languages.saying import Language, Section, language_for

SECTION = "page"
STATEMENT = "review.statement"
"""The statement above the Complete button. The audit trail states it."""

APPROVAL = "review.statement.approver"
"""The same for whoever approves and does not sign."""

CHOSEN = "lang"
"""The cookie that keeps the language which a reader chose on a page."""

_PARTY = "language_of_party"


def for_reader(section: str = SECTION) -> Section:
    """Return the messages in the language that the reader chose, else in the party's, else as the browser asks."""
    return _language().section(section)


def speak_to(party_language: str | None) -> Section:
    """Say what follows in this request in the language of the party whose page it is; return its messages."""
    setattr(flask.g, _PARTY, party_language)
    return for_reader()


def offered() -> list[tuple[str, str]]:
    """Return the languages that a reader can choose from: the tag and the name of each, which is said in itself."""
    return sorted(
        ((tag, name_of(tag)) for tag in choosing.languages()), key=lambda tag_and_name: tag_and_name[1].casefold()
    )


def statement_of(words: str) -> dict[str, Any] | None:
    """Return the statement above the button of the last step that has these ``words``, with its ``language``, and whether it
    ``approves``; None when none of ours has."""
    for tag in (*choosing.languages(), choosing.PSEUDO):
        for key in (STATEMENT, APPROVAL):
            if language_for(tag).say(SECTION, key) == words:
                return {"language": tag, "words": words, "approves": key == APPROVAL}
    return None


def _language() -> Language:
    request = flask.request
    accepted = [tag for tag, quality in request.accept_languages if quality > 0]
    return language_for(request.cookies.get(CHOSEN), flask.g.get(_PARTY), *accepted)
