"""What an API key may do, and until when. Pure rules: which keys there are is in the database.

Which operation needs which scope is in the OpenAPI document (``x-scope``), and nowhere else.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from contracts.errors import ServiceError, invalid
from contracts.formats.folders import is_within
from contracts.types import iso


class Scope(StrEnum):
    """What a key may be good for. An operation needs one of them, or any."""

    READ = "read"
    SEND = "send"
    TEMPLATES = "templates"
    WEBHOOKS = "webhooks"
    ADMIN = "admin"
    AGENT_SEND = "agent:send"


EVERY_SCOPE = frozenset(Scope)
OF_THE_ACCOUNT = frozenset({Scope.WEBHOOKS, Scope.ADMIN})
"""Scopes that reach what is in no folder: a key that is limited to folders has none of them."""
_TEST, _FOLDERS = "test:", "folders:"


class Mode(StrEnum):
    """The keys that an operation is for, where it is not for all (``x-mode``)."""

    LIVE = "live"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Rights:
    """The scopes of a key, and from when on it is refused (None: never). By default all there is. ``test``: they hold in test
    mode only. ``folders``: they hold for templates in these folders, and what is made from them (None: for everything)."""

    scopes: frozenset[Scope] = EVERY_SCOPE
    expires_at: datetime | None = None
    test: bool = False
    folders: tuple[str, ...] | None = None

    @property
    def lasts_as_admin(self) -> bool:
        """Tell whether keys can be managed with it, now and later."""
        return Scope.ADMIN in self.scopes and self.expires_at is None and not self.test and self.folders is None

    def expired(self, now: datetime) -> bool:
        """Tell whether the key is refused at ``now``."""
        return self.expires_at is not None and self.expires_at <= now

    def outlasts(self, other: "Rights") -> bool:
        """Tell whether it is valid for longer than ``other``."""
        return other.expires_at is not None and (self.expires_at is None or self.expires_at > other.expires_at)

    def reaches_beyond(self, other: "Rights") -> bool:
        """Tell whether it reaches a folder, or what is in none, that ``other`` does not reach."""
        if other.folders is None:
            return False
        return self.folders is None or not all(is_within(folder, other.folders) for folder in self.folders)


WHOLE = Rights()
"""The rights of first keys."""


@dataclass(frozen=True, slots=True)
class CallersKey:
    """The key that a request came with, without the key itself. ``first``: the one that its user was given with the account."""

    id: str
    hash: str = field(repr=False)
    rights: Rights = WHOLE
    first: bool = True


def in_words(scopes: Iterable[Scope]) -> list[str]:
    """The scopes in the order in which they are shown."""
    scope_set = set(scopes)
    return [scope.value for scope in Scope if scope in scope_set]


def read_scopes(words: Iterable[str]) -> frozenset[Scope]:
    """Those of the words that are scopes. What a later version has stored besides is left out: a key never has more rights
    for it."""
    scope_words = {scope.value for scope in Scope}
    return frozenset(Scope(word) for word in words if word in scope_words)


def stored(rights: Rights) -> str:
    """Scopes and mode as one text. The scopes of a test key, and of one that is limited to folders, are words that a version
    which knows nothing of these does not know: there the key may do nothing."""
    limits = (_FOLDERS if rights.folders is not None else "") + (_TEST if rights.test else "")
    return " ".join(limits + word for word in in_words(rights.scopes))


def read_stored(text: str, expires_at: datetime | None, folders: Sequence[str] | None = None) -> Rights:
    """Read what ``stored`` has written; ``folders`` stand beside it. A text that speaks of folders of which none are known is
    that of a key that reaches nothing."""
    words = text.split()
    limited, words = _under(_FOLDERS, words)
    test, words = _under(_TEST, words)
    return Rights(
        read_scopes(words), expires_at, test, tuple(folders or ()) if limited or folders is not None else None
    )


def _under(limit: str, words: list[str]) -> tuple[bool, list[str]]:
    """Tell whether any of the words has the limit before it; return those that have, or all where none has."""
    limited = [word.removeprefix(limit) for word in words if word.startswith(limit)]
    return bool(limited), limited or words


def check_mode(rights: Rights, mode: Mode | None) -> None:
    """Raises ServiceError("forbidden") when an operation is for keys of the other mode; None: it is for both."""
    if mode is Mode.LIVE and rights.test:
        raise ServiceError("forbidden", "This takes a live API key: a test key changes nothing that live mode uses.")
    if mode is Mode.TEST and not rights.test:
        raise ServiceError("forbidden", "This takes a test API key: it is about test mode only.")


def check_scope(rights: Rights, one_of: frozenset[Scope]) -> None:
    """Raises ServiceError("forbidden") unless the key has one of the scopes; without any nobody has."""
    if not rights.scopes & one_of:
        raise ServiceError("forbidden", f"This API key does not have the scope {_or(one_of)}.")


def check_folders(rights: Rights, *, allowed: bool) -> None:
    """Raises ServiceError("forbidden") when an operation is not one of those that are ``allowed`` to keys of folders."""
    if rights.folders is not None and not allowed:
        raise ServiceError("forbidden", "This API key is limited to folders, and this is about more than is in them.")


def check_scopes_of_folders(rights: Rights) -> None:
    """Raises ServiceError("invalid") for a key that is limited to folders and is to have scopes that reach beyond them."""
    if rights.folders is not None and (more := rights.scopes & OF_THE_ACCOUNT):
        reason = f"cannot have {_and(more)} for a key that is limited to folders"
        raise invalid(f"scopes {reason}", "scopes", reason)


def check_giving(own_rights: Rights, given_rights: Rights) -> None:
    """Raises ServiceError("forbidden") when somebody whose key has the rights ``own_rights`` gives out a key with more."""
    if own_rights.test and not given_rights.test:
        raise ServiceError("forbidden", "A test key cannot give a live key.")
    if lacking := given_rights.scopes - own_rights.scopes:
        which = "the scopes" if len(lacking) > 1 else "the scope"
        raise ServiceError(
            "forbidden", f"This API key cannot give a key {which} {_and(lacking)}: it does not have {which} itself."
        )
    if given_rights.reaches_beyond(own_rights):
        raise ServiceError("forbidden", "This API key cannot give a key more folders than it has itself.")
    if given_rights.outlasts(own_rights):
        assert own_rights.expires_at is not None
        raise ServiceError(
            "forbidden",
            f"This API key expires at {iso(own_rights.expires_at)} and cannot create a key that is valid for longer.",
        )


def check_expiry(expires_at: datetime | None, now: datetime) -> None:
    """Raises ServiceError("invalid") for an end that is over."""
    if expires_at is not None and expires_at <= now:
        raise invalid("expires_at must be in the future", "expires_at", "must be in the future")


def check_limiting(before: Rights, after: Rights, *, first: bool) -> None:
    """Raises ServiceError("invalid") unless the change takes rights away, or none; a first key keeps all."""
    if more := after.scopes - before.scopes:
        reason = f"cannot get {_and(more)}: a key cannot get more scopes than it was made with. Make another key"
        raise invalid(f"scopes {reason}", "scopes", reason)
    if after.outlasts(before):
        reason = "must not be later than it is now. Make another key"
        raise invalid(f"expires_at {reason}", "expires_at", reason)
    if after.reaches_beyond(before):
        reason = "must be within those that the key is limited to. Make another key"
        raise invalid(f"folders {reason}", "folders", reason)
    if first and after != before:
        changed = ("scopes", "expires_at", "folders")
        place = next(name for name in changed if getattr(after, name) != getattr(before, name))
        reason = "of a first key cannot be changed. Make another key with fewer rights, and delete the first one"
        raise invalid(f"{place} {reason}", place, reason)


def check_one_is_left(before: Rights, after: Rights | None, other_keys: int) -> None:
    """Raises ServiceError("invalid") when an admin's key loses what only it could: to manage keys, now and later. ``after`` is
    None when it is deleted; ``other_keys`` are the admins' other keys that can."""
    if before.lasts_as_admin and not (after is not None and after.lasts_as_admin) and not other_keys:
        raise invalid(
            "This is the last key with the scope admin that does not expire. Without it, nobody could manage users and keys. "
            "Make another such key first."
        )


def _and(scopes: Iterable[Scope]) -> str:
    return _listed(in_words(scopes), "and")


def _or(scopes: Iterable[Scope]) -> str:
    return _listed(in_words(scopes), "or")


def _listed(words: list[str], last: str) -> str:
    return f" {last} ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
