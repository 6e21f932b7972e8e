"""Shared links: visitors start submissions of their own."""

from pydantic import Field

from contracts.rpc import Rpc
from contracts.rpc.submissions.api import CertsignWish
from contracts.rpc.submissions.signing.codes import CodeSent, PassedCode
from contracts.rpc.submissions.visit import Visit
from contracts.types import Account, Actor, Tolerant


class LinkVisit(Visit):
    """A visitor of a shared link: ``slug`` is the template's; ``email``, ``name`` and ``phone`` as far as asked for,
    ``lang`` the language that the page spoke to them."""

    account: Account
    email: str | None = None
    name: str | None = None
    phone: str | None = None
    lang: str | None = Field(default=None, max_length=35)


class StartFromLink(LinkVisit):
    """Start a submission for this visitor. ``sender`` is the template's author, while still a user. ``resume`` is what this
    browser was given when it started one before: the same visitor goes on with that. ``certsign``: as of any new submission."""

    request_id: str
    sender: Actor | None = None
    resume: str | None = None
    certsign: CertsignWish = Field(default_factory=CertsignWish)


class LinkStarted(Tolerant):
    """``submitter_slug`` opens the form. ``resume`` goes to the browser; ``passed``, too, when a code had to be passed: the
    form does not ask for another."""

    submitter_slug: str
    resume: str = ""
    passed: PassedCode | None = None


class SendLinkCode(LinkVisit):
    """Send a one-time code to ``email``."""

    request_id: str


class CheckLinkCode(LinkVisit):
    """As CheckCode; the proof is for this link and this address."""

    request_id: str
    code: str


START_FROM_LINK = Rpc("submissions", "start_from_link", StartFromLink, LinkStarted, timeout=30)
SEND_LINK_CODE = Rpc("submissions", "send_link_code", SendLinkCode, CodeSent)
CHECK_LINK_CODE = Rpc("submissions", "check_link_code", CheckLinkCode, PassedCode)
