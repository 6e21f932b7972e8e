"""The picture of the first page that invitations and reminders show, drawn before the submission is written.

Mails never wait for it: whoever creates the submission does, for PATIENCE at most, and what is late or cannot be drawn is left
out. A template's document is drawn once. The picture is of the document as it was sent, so nobody's values are on it; who
may be shown it is asked when a mail is due (``outgoing.mails``).
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.rpc import rendering
from contracts.runtime.monitoring import observe
from contracts.types import Account
from services.submissions.outgoing import mails
from services.submissions.planning.plan import Basis, Plan
from services.submissions.planning.preparing import Bus

log = observe.logger(__name__)

PATIENCE = 2.0
"""Seconds from which on a request that creates submissions asks for no more pictures."""

REMEMBERED, LATE_AGAIN = 600.0, 60.0
"""Seconds that a picture is remembered (rendering may remove it earlier, then mails go without), and that nobody waits again
for one that was late."""

MOST = 1_000
"""Pictures that are remembered."""


class FirstPages:
    """Has first pages drawn, and remembers by the SHA-256 of the document what came of it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, BlobRef | None]] = OrderedDict()

    def note(self, bus: Bus, plans: Iterable[tuple[Plan, Basis]], account: Account) -> None:
        """Note in each plan the picture of what it is made from, where a mail may show it and it can be had in time."""
        if not account.first_page_in_mails:
            return
        until = self._clock() + PATIENCE
        for plan, basis in plans:
            if _is_wanted(plan, basis) and (picture := self._drawn(bus, basis.documents[0].file, until)) is not None:
                plan.details[mails.FIRST_PAGE] = {
                    "document": basis.documents[0].file.sha256,
                    "picture": picture.model_dump(mode="json"),
                }

    def _drawn(self, bus: Bus, document: BlobRef, until: float) -> BlobRef | None:
        at = self._clock()
        known_until, known_picture = self._known.get(document.sha256, (at, None))
        if known_until > at:
            return known_picture
        if at >= until:
            return None
        picture: BlobRef | None = None
        remembered_for = REMEMBERED
        try:
            picture = bus.call(rendering.DRAW_THUMBNAIL, rendering.DrawThumbnail(file=document))
        except ServiceError as error:
            log.info("first_page.not_drawn", document=document.sha256, code=error.code, reason=error.message)
            remembered_for = REMEMBERED if error.status < 500 else LATE_AGAIN
        self._known[document.sha256] = (self._clock() + remembered_for, picture)
        self._known.move_to_end(document.sha256)
        if len(self._known) > MOST:
            self._known.popitem(last=False)
        return picture


def _is_wanted(plan: Plan, basis: Basis) -> bool:
    """Tell whether somebody gets mails that may show it. A document that depends on what is filled in may never be shown."""
    if not basis.documents or basis.documents[0].conditions:
        return False
    return any(
        submitter.preferences.get("send_email")
        and mails.opens_at_once(
            submitter.preferences,
            (field for field in plan.fields if field.submitter_uuid == submitter.party.uuid),
        )
        for submitter in plan.submitters
    )
