"""Links to files: signed, so that nobody can make one up, and either expiring or bound to an API key.

A token holds the blob's key, the file name and the expiry; it is signed with HMAC-SHA256 under the suite's
``LINK_SECRET``. A link without expiry (``expires_at`` is None) goes into events, which are immutable and may be
read days later: the gateway serves it only to a caller with an API key. For a webhook that wants its links open for a time
(``opened``), they are good by themselves until then, and with an API key afterwards (``key_after``). The links on a signing
page are signed for its slug as their ``holder``: they are good only while that slug is.

The links in API answers end together, not each so long after it was asked for (``expiry_of_answers``): what has not changed is
the same bytes when it is read again, which ``ETag`` lives on.
"""

import base64
import hashlib
import hmac
import json
import math
import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from contracts.rotation import each

_SIGNATURE_BYTES = 16

_URL = re.compile(r"(https?://[^\s?#]*/file/)([A-Za-z0-9_-]+)(/[^\s/]*)")


class BadLink(Exception):
    """The token was not made with this secret."""


class FieldsOf(NamedTuple):
    """The owner of the fields on a document: the template or the submission with this ``id``, as ``service`` says. Without
    ``document_uuid`` the one whose event has the link."""

    service: Literal["templates", "submissions"]
    id: int
    document_uuid: str


@dataclass(frozen=True)
class FileLink:
    """The content of a token: blob ``key``, ``media_type``, ``filename``; ``expires_at`` in Unix seconds or None; ``page`` set
    when the link is to pictures of the pages, this one (from 1) when no other is asked for, instead of to the file.
    ``fields_of``: the fields that such a picture can show; of a link in an event, whose event it is.
    ``key_after``: when its time is over, it is still good with an API key."""

    key: str
    media_type: str
    filename: str
    expires_at: int | None = None
    page: int | None = None
    fields_of: FieldsOf | None = None
    key_after: bool = False

    def expired(self, now: datetime) -> bool:
        """True once the link's time is over. A link without expiry never expires, but needs an API key."""
        return self.expires_at is not None and now.timestamp() >= self.expires_at


def expiry_of_answers(now: datetime, ttl: int) -> int:
    """Return when the links of an answer that is given ``now`` end, in Unix seconds: after ``ttl`` seconds, rounded up to a
    whole multiple of a quarter of them.

    So a link outlives what was promised by less than a quarter, and never ends earlier.
    """
    step = max(ttl // 4, 1)
    return -(-(math.ceil(now.timestamp()) + ttl) // step) * step


def url(base_url: str, secret: str, link: FileLink) -> str:
    """``{base_url}/file/<token>/<filename>``; the file name is in the path only for the reader and for saving."""
    return f"{base_url}/file/{sign(secret, link)}/{quote(link.filename, safe='')}"


def opened(data: Any, secret: str, subject: str, until: int) -> Any:
    """The ``data`` of an event with its links to files good by themselves ``until`` then (Unix seconds), and with an API key
    afterwards.

    Only links that were made for events of ``subject``, such as ``submission:31``: a signer can type the link of another event
    into a field, and nobody must have that opened by it.
    """
    match data:
        case dict():
            return {name: opened(value, secret, subject, until) for name, value in data.items()}
        case list():
            return [opened(value, secret, subject, until) for value in data]
        case str() if (match := _URL.fullmatch(data)) is not None:
            before, token, name = match.groups()
            try:
                link = read(secret, token)
            except BadLink:
                return data
            if link.expires_at is not None or link.fields_of is None or _subject(link.fields_of) != subject:
                return data
            return f"{before}{sign(secret, replace(link, expires_at=until, key_after=True))}{name}"
    return data


def _subject(owner: FieldsOf) -> str:
    return f"{owner.service.removesuffix('s')}:{owner.id}"


def sign(secret: str, link: FileLink, holder: str = "") -> str:
    """The URL-safe token of ``link``, for a ``holder`` if it is only theirs: when its time is over, it is then good with no key
    either."""
    contents = [link.key, link.media_type, link.filename, link.expires_at, link.page]
    payload = json.dumps(contents + ([link.fields_of] if link.fields_of else []), separators=(",", ":")).encode()
    return _encode(_mac(secret, _purpose(holder, key_after=link.key_after), payload) + payload)


def read(secret: str, token: str, holder: str = "") -> FileLink:
    """The link in ``token``; BadLink when it was not signed with ``secret``, or one that is accepted beside it, for ``holder``.
    Expiry is the caller's to check."""
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except ValueError as error:
        raise BadLink("not base64") from error
    mac, payload = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
    key_after = _signed_for_key_after(secret, payload, mac, holder)
    key, media_type, filename, expires_at, page, *more = json.loads(payload)
    return FileLink(key, media_type, filename, expires_at, page, FieldsOf(*more[0]) if more else None, key_after)


def _signed_for_key_after(secret: str, payload: bytes, mac: bytes, holder: str) -> bool:
    """Return whether the link is good with a key when its time is over: its signature says so, so that a version which does
    not know such links takes them for none. Raises BadLink when it was signed for neither."""
    for key_after in (False, True):
        purpose = _purpose(holder, key_after=key_after)
        if any(hmac.compare_digest(mac, _mac(accepted_secret, purpose, payload)) for accepted_secret in each(secret)):
            return key_after
    raise BadLink("wrong signature")


def _purpose(holder: str, *, key_after: bool) -> str:
    if holder:
        return f"file-link-of {holder}:"
    return "file-link-then-key:" if key_after else "file-link:"


def _mac(secret: str, purpose: str, payload: bytes) -> bytes:
    return hmac.new(secret.encode(), purpose.encode() + payload, hashlib.sha256).digest()[:_SIGNATURE_BYTES]


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
