"""The variables of a message that an API user wrote (peer facts 6.6), replaced by our own hands.

User text is never given to a template engine. ``{{submitter.name}}`` with any number of braces, in any case, is replaced;
what is missing becomes nothing; whatever else stands in braces (``{{7*7}}``, ``{{config}}``) stays as it is.
"""

import re
from dataclasses import dataclass
from typing import Any

from babel import Locale

from contracts.events import MailContext, Recipient
from contracts.languages.choosing import known_locale
from contracts.languages.formatting import moment
from services.notifications.addresses import one_line

# Possessive and anchored at the first brace: a hundred thousand of them take no longer than they are long.
IN_BRACES = re.compile(r"(?<!\{)\{++\s*+([^{}\n]{1,300}?)\s*\}+")
_GAP = re.compile(r"(?<=\S) ++\{++\s*+([^{}\n]{1,300}?)\s*\}++(?=[,.;:!?])")
_PARTY = re.compile(r"(submitter|submitters\[(\d{1,3})\])\.(.+)", re.DOTALL)

_LINKS = frozenset({"submission.link", "documents.link", "documents.links"})


@dataclass(frozen=True)
class Value:
    """The value of a variable; ``link``: it is an address to click on."""

    text: str
    link: bool = False


class Variables:
    """The variables of one mail to ``recipient`` (None: to somebody who is no party)."""

    def __init__(self, context: MailContext, recipient: Recipient | None) -> None:
        self._context = context
        self._recipient = recipient
        self._plain = _plain(context)

    def find(self, name: str) -> Value | None:
        """The value of what stood between braces; None when it is no variable."""
        folded = name.casefold()
        if folded in self._plain:
            return Value(self._plain[folded], link=folded in _LINKS)
        if (matched := _PARTY.fullmatch(folded)) is None:
            return None
        attribute = name[matched.start(3) :].strip()
        if matched[2] is None:
            return _of_party(self._recipient, attribute, mine=True)
        number = int(matched[2])
        parties = self._context.parties
        return _of_party(parties[number - 1] if 1 <= number <= len(parties) else None, attribute, mine=False)

    def names_link(self, text: str) -> bool:
        """Does the text name the recipient's link? Else it has to be appended."""
        return any(match[1].casefold() == "submitter.link" for match in IN_BRACES.finditer(text))

    def without_gaps(self, text: str) -> str:
        """``Dear {{submitter.name}},`` to somebody without a name begins ``Dear,``."""

        def closed(match: re.Match[str]) -> str:
            value = self.find(match[1])
            return match[0] if value is None or value.text else ""

        return _GAP.sub(closed, text)

    def in_line(self, text: str) -> str:
        """The text with its variables replaced, on one line: for subjects."""

        def replaced(match: re.Match[str]) -> str:
            value = self.find(match[1])
            return match[0] if value is None else value.text

        return one_line(IN_BRACES.sub(replaced, self.without_gaps(text)))


def first_name(name: str | None) -> str:
    return next(iter((name or "").split()), "")


def _plain(context: MailContext) -> dict[str, str]:
    everybody = ", ".join(one_line(party.name or party.email or party.role) for party in context.parties)
    locale = known_locale(context.account.locale) or Locale("en")
    expires = moment(context.expire_at, locale, context.account.time_zone) if context.expire_at else ""
    return {
        "template.name": one_line(context.template_name),
        "template.id": str(context.template_id or ""),
        "submission.name": one_line(context.submission_name),
        "submission.id": str(context.submission_id),
        "submission.link": context.submission_link,
        "submission.expire_at": expires,
        "submission.submitters": everybody,
        "submitters": everybody,
        "account.name": one_line(context.account.name),
        "sender.name": one_line(context.sender_name),
        "sender.first_name": one_line(context.sender_first_name) or first_name(context.sender_name),
        "sender.email": one_line(context.sender_email),
        # An invitation goes out before there are any.
        "documents.link": "",
        "documents.links": "",
    }


def _of_party(party: Recipient | None, attribute: str, *, mine: bool) -> Value | None:
    folded = attribute.casefold()
    if mine and folded == "link":
        return Value(party.link if party else "", link=True)
    attributes: dict[str, Any] = {"name": None, "email": None, "first_name": None}
    if party is not None:
        attributes |= {"name": party.name, "email": party.email, "first_name": first_name(party.name)}
    if mine:
        attributes |= {"id": party.submitter_id if party else None, "slug": party.slug if party else None}
    if folded in attributes:
        return Value(one_line(_written(attributes[folded])))
    for name, value in (party.values if party else {}).items():
        if name.casefold() == folded:
            return Value(one_line(_written(value), 1000))
    return None


def _written(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_written(item) for item in value)
    return str(value)
