"""Parties that sign in person on one device, handed from one to the next (docs/ways.md).

Whoever has completed gets a token for a screen between, good for minutes, in this browser, and once. The next party says there
that they have the device, and gets a link of their own to their form: for this device, and only while they have it. Their own
link, which their invitation has, is told to nobody, and what it asks of them (one-time codes, identity) is asked here, too.
"""

from contracts.rpc import Rpc
from contracts.rpc.submissions.visit import Visit
from contracts.types import Moment, Tolerant


class HandDevice(Visit):
    """A party that has completed hands the device over. ``token_digest`` is the SHA-256, in hex, of the screen's token,
    ``device_digest`` that of what their browser is known by; both stay with the gateway and the browser. An earlier token of
    this party is good for nothing any more."""

    request_id: str
    token_digest: str
    device_digest: str


class Handed(Tolerant):
    """``expires_at``: until when the next party may take the device."""

    expires_at: Moment


class FindHandover(Tolerant):
    """Somebody looks at the screen between."""

    token_digest: str
    device_digest: str | None = None


class Handover(Tolerant):
    """What the screen between says. ``name`` is that of the next party, else their role. When it is not ``is_open`` (time has
    run out, it was used or given up, it is another browser, the form is not open any more) nothing else is told.
    ``shown_until``: of who takes the device, until when it shows their form at the latest."""

    is_open: bool
    name: str = ""
    account_name: str = ""
    submission_name: str = ""
    lang: str | None = None
    shown_until: Moment | None = None


class RefuseDevice(FindHandover):
    """Whoever has the device now is somebody else. The token is good for nothing any more."""

    request_id: str


class TakeDevice(FindHandover):
    """The next party has the device. ``link_digest`` is the SHA-256, in hex, of the slug that opens their form on it, for
    visits with what the browser is known by among their ``proofs``. The party before loses the one that they had."""

    request_id: str
    device_digest: str
    link_digest: str
    ip: str | None = None
    user_agent: str | None = None


HAND_DEVICE = Rpc("submissions", "hand_device", HandDevice, Handed)
HANDOVER = Rpc("submissions", "handover", FindHandover, Handover)
REFUSE_DEVICE = Rpc("submissions", "refuse_device", RefuseDevice, Handover)
TAKE_DEVICE = Rpc("submissions", "take_device", TakeDevice, Handover)
