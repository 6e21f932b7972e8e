"""The page of a submission (``/e/<slug>``): how far it is, told to whoever proves by a one-time code who they are.

The slug travels with the sealed file, so that it proves nothing. Who reads more than the state has passed a code that was sent
to their own mailbox, and it is the mailbox that says what they may: the account's user with that address as by the API, a party
or one who gets copies what they have anyway.
"""

from pydantic import Field

from contracts.blobs import BlobRef
from contracts.rpc import Rpc
from contracts.rpc.submissions.signing.codes import PassedCode
from contracts.rpc.submissions.signing.form import Done
from contracts.rpc.submissions.visit import Visit
from contracts.types import Actor, Moment, Tolerant


class ProgressVisit(Visit):
    """A visitor of the page: ``slug`` is the submission's. ``email`` is the address that they say is theirs, or that they have
    proved (``proofs``); ``user`` the account's active user with that address, None where there is none."""

    email: str | None = None
    user: Actor | None = None


class PartyProgress(Tolerant):
    """How far one party is. ``state`` is one of ``rules.progress.PartyState`` of submissions, ``at`` since when; ``reason`` why
    they declined, or what a mail server said. ``waits_for`` are the names of those whose turn is now. ``email`` and ``phone``
    are for the account's users only. ``may_send_again``: the reader may have the invitation sent again."""

    submitter_id: int
    name: str | None = None
    role: str
    email: str | None = None
    phone: str | None = None
    acts_as: str
    state: str
    at: Moment | None = None
    reason: str = ""
    waits_for: list[str] = Field(default_factory=list)
    may_send_again: bool = False


class ProgressFile(Tolerant):
    """A file that the reader may have: a ``document``, sealed or (``sent``) as it was sent, or the ``audit_trail``."""

    kind: str
    name: str
    file: BlobRef


class ProgressLine(Tolerant):
    """A line of the trail: what happened (``event_type``), when, with whom, and who acted."""

    event_type: str
    at: Moment
    party: str = ""
    by: str = ""


class Progress(Tolerant):
    """``state``: ``pending``, ``sealing``, ``sealing_failed``, ``completed``, ``declined``, ``expired``, ``archived`` or
    ``returned``.
    ``done`` of ``count`` parties have done what is waited for. ``reader`` says as whom the visitor reads: ``sender`` (who
    handles it), ``user``, ``party``, ``copy``; None: they have proved nothing, and get nothing of what follows."""

    state: str
    name: str
    account_name: str
    time_zone: str
    done: int
    count: int
    reader: str | None = None
    sender_name: str | None = None
    created_at: Moment | None = None
    completed_at: Moment | None = None
    expire_at: Moment | None = None
    parties: list[PartyProgress] = Field(default_factory=list)
    files: list[ProgressFile] = Field(default_factory=list)
    lines: list[ProgressLine] = Field(default_factory=list)


class SendProgressCode(ProgressVisit):
    """Send a code to ``email`` if its owner may read more; the answer is the same if not. ``browser`` is what the visitor's
    browser keeps: the code lets in there alone. ``lang`` is the language of the page."""

    request_id: str
    browser: str
    lang: str | None = None


class ProgressCodeAsked(Tolerant):
    """The same for everybody: ``retry_after`` seconds another one may be asked for."""

    retry_after: int
    expires_at: Moment


class CheckProgressCode(ProgressVisit):
    """Check the code that somebody typed, as ``CheckCode``."""

    request_id: str
    browser: str
    code: str


class SendAgain(ProgressVisit):
    """Send the invitation of this party again, as the sender who reads the page wants it."""

    request_id: str
    submitter_id: int


PROGRESS = Rpc("submissions", "progress", ProgressVisit, Progress)
SEND_PROGRESS_CODE = Rpc("submissions", "send_progress_code", SendProgressCode, ProgressCodeAsked)
CHECK_PROGRESS_CODE = Rpc("submissions", "check_progress_code", CheckProgressCode, PassedCode)
SEND_AGAIN = Rpc("submissions", "send_again", SendAgain, Done)
