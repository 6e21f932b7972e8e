"""Calls about test mode as a whole."""

from contracts.errors import ServiceError
from contracts.rpc.submissions import test_mode as rpc
from contracts.runtime.clock import now
from contracts.runtime.worker import handles
from contracts.types import Actor
from services.submissions.commands import followups, retention
from services.submissions.commands.test_mode import clock, wiping
from services.submissions.entrypoints.base import Entrypoints

_EXPIRED_AT_ONCE = 40
_DONE_AT_ONCE = 200
"""Of what became due so much is done before the answer; the sweeps do the rest."""


class TestMode(Entrypoints):
    """Calls of API users with a test key."""

    __test__ = False

    @handles(rpc.ADVANCE)
    def advance_test_clock(self, command: rpc.AdvanceTestClock) -> rpc.AdvancedTestClock:
        _require_admin(command.actor)
        advanced = self._write(clock.advance, command)
        self._do_what_is_due()
        return advanced

    @handles(rpc.IN_TEST_MODE)
    def in_test_mode(self, query: rpc.AskTestMode) -> rpc.InTestMode:
        _require_admin(query.actor)
        return self.context.database.read(wiping.inventory, now())

    @handles(rpc.WIPE)
    def wipe_test_mode(self, command: rpc.WipeTestMode) -> rpc.WipedTestMode:
        _require_admin(command.actor)
        return self._write(wiping.ask, command)

    def _do_what_is_due(self) -> None:
        """The sweeps come in their own time; a tester waits."""
        database, site = self.context.database, self._site
        expiring = database.read(lambda session: list(session.scalars(clock.due_to_expire(now()).limit(_DONE_AT_ONCE))))
        for start in range(0, len(expiring), _EXPIRED_AT_ONCE):
            database.write(followups.expire, expiring[start : start + _EXPIRED_AT_ONCE], site, now())
        erasing = database.read(lambda session: list(session.scalars(clock.due_to_erase(now()).limit(_DONE_AT_ONCE))))
        for number in erasing:
            database.write(retention.erase, number, site, now(), now())


def _require_admin(actor: Actor) -> None:
    """Raises ServiceError("forbidden") unless an admin asks, with a test key."""
    if not actor.sees_all or not actor.test:
        raise ServiceError("forbidden", "Not authorized")
