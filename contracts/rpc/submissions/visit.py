"""Visitors of the signing page or of a shared link."""

from pydantic import Field

from contracts.types import Tolerant


class Visit(Tolerant):
    """A visitor of the signing page. The slug is the secret that lets them in; it is never logged whole.

    ``proofs`` are what this browser was given for the one-time codes that it has passed (``PassedCode``), and what it is known
    by as the device that was handed to this party (``handover``). ``shown`` is what the page shows, as it got it with
    ``SigningForm.shown``; None of a page of an older version.
    """

    slug: str
    proofs: list[str] = Field(default_factory=list)
    ip: str | None = None
    user_agent: str | None = None
    time_zone: str | None = None
    shown: str | None = None
