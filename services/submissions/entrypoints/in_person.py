"""Calls of parties that sign in person on one device: of the page of who has completed, and of the screen between."""

from contracts.rpc.submissions.signing import handover as rpc
from contracts.runtime.clock import now
from contracts.runtime.worker import handles
from services.submissions.commands.signing import in_person
from services.submissions.entrypoints.base import Entrypoints


class InPerson(Entrypoints):
    """Calls about a device that is handed over."""

    @handles(rpc.HAND_DEVICE)
    def hand_device(self, command: rpc.HandDevice) -> rpc.Handed:
        return self._write(in_person.hand, command)

    @handles(rpc.HANDOVER)
    def handover(self, query: rpc.FindHandover) -> rpc.Handover:
        return self.context.database.look_up(in_person.look, query, now())

    @handles(rpc.REFUSE_DEVICE)
    def refuse_device(self, command: rpc.RefuseDevice) -> rpc.Handover:
        return self.context.database.write(in_person.refuse, command, now())

    @handles(rpc.TAKE_DEVICE)
    def take_device(self, command: rpc.TakeDevice) -> rpc.Handover:
        return self.context.database.write(in_person.take, command, now())
