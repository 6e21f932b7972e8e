"""What each code of an error means: for problem documents, for ``/docs/errors``, and in the words of ``docs/errors.md``."""

import html
import re
from typing import NamedTuple

PAGE = "/docs/errors"
"""The path of the page that the ``type`` of a problem document leads to."""

STYLE = b"""body {
  color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 44rem; padding: 0 1rem;
}
h2 { font-size: 1.1rem; margin: 2rem 0 0.5rem; }
p { margin: 0.25rem 0; }
:target { outline: 2px solid; outline-offset: 0.5rem; }"""


class Meaning(NamedTuple):
    """``title`` is the same for every error of the code. ``when`` and ``advice`` may have `code` in them."""

    title: str
    when: str
    advice: str


MEANINGS = {
    "bad_request": Meaning(
        "The request cannot be read",
        "The body is not JSON, or cannot be read",
        "Correct the request; repeating it does not help",
    ),
    "unauthenticated": Meaning(
        "The API key is missing or not valid",
        "`X-Auth-Token` is missing, not known, deleted, has expired, was replaced by a newer key, or its user is archived",
        "Get a key from an admin",
    ),
    "forbidden": Meaning(
        "Not allowed",
        "The role of the user may not do this, or the key does not have the scope that the sentence names",
        "Ask an admin, or use another key",
    ),
    "not_found": Meaning(
        "Not found",
        "There is no such record or path, or the caller may not see it; a signing link that was replaced, with `state` "
        "`replaced`, `wrong_recipient`, `delegated` or `handed_on` in `details`",
        "For a signing link: ask the sender for a new one",
    ),
    "method_not_allowed": Meaning(
        "Method not allowed",
        "The path does not have this method; the header `Allow` lists those that it has",
        "Use one of those",
    ),
    "timeout": Meaning("The request did not arrive in time", "The request did not arrive in time", "Send it again"),
    "conflict": Meaning(
        "The request conflicts with an earlier one",
        "The `Idempotency-Key` was used for another request, or the record was changed at the same time",
        "Use a new key for a new request; otherwise read the record and decide again",
    ),
    "changed_meanwhile": Meaning(
        "What is to be signed has changed",
        "What a signer is about to sign is no longer what they were shown; `details` name what has changed (signing page only)",
        "Open the form again and look",
    ),
    "precondition_failed": Meaning(
        "The record has changed since it was read",
        "The record is no longer the one that `If-Match` names; nothing was changed",
        "Read it again, decide again, and send the new `ETag`",
    ),
    "too_large": Meaning(
        "The request or a file is too large",
        "The request or a file exceeds a limit of the installation, which the sentence names",
        "Send less",
    ),
    "head_too_large": Meaning(
        "The head of the request is too large",
        "The head of the request (path and headers) is over 32 KB; the connection is closed",
        "Send a smaller head",
    ),
    "unsupported_media_type": Meaning(
        "Unsupported media type",
        "The operation does not accept a body of this type or encoding",
        "Send a type that the interface documents",
    ),
    "invalid": Meaning(
        "The request is not valid",
        "The request is not valid; nothing was changed",
        "`details` says what",
    ),
    "rate_limited": Meaning(
        "Too many requests",
        "Too many requests, or one too soon after the last",
        "Wait for the seconds in `Retry-After`",
    ),
    "internal": Meaning(
        "Internal error",
        "An error in Countersign; it is logged under `request_id`",
        "Tell the operator; repeat with the same `Idempotency-Key`",
    ),
    "unavailable": Meaning(
        "Not available at the moment",
        "A service of the installation does not answer in time",
        "Repeat after `Retry-After` seconds, with the same `Idempotency-Key`",
    ),
}


def page() -> bytes:
    """Return the page that says of each code what it means, as HTML with an anchor each."""
    sections = "".join(
        f'<section id="{code}"><h2><code>{code}</code> {_as_html(meaning.title)}</h2>'
        f"<p>{_as_html(meaning.when)}.</p><p>{_as_html(meaning.advice)}.</p></section>"
        for code, meaning in MEANINGS.items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<title>Errors of the Countersign API</title><link rel="stylesheet" href="errors.css"></head>'
        f"<body><main><h1>Errors</h1>{sections}</main></body></html>"
    ).encode()


def _as_html(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
