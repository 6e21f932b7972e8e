import os
import time
from typing import Any, ClassVar

from services.specimen import commands
from services.specimen.harm import harm
from services.specimen.settings import Settings

from contracts.envelope import Envelope
from contracts.runtime.clock import now
from contracts.runtime.monitoring import observe
from contracts.runtime.worker import Context, handles, subscribes
from tests.support.services.specimens import contract

log = observe.logger(__name__)


class SpecimenService:
    name = "specimen"
    context = Context(Settings)
    meeting: ClassVar[list[contract.Meet]] = []

    @handles(contract.ECHO)
    def echo(self, request: contract.Echo) -> contract.Echo:
        return contract.Echo(payload=request.payload)

    @handles(contract.WAIT)
    def wait(self, request: contract.Wait) -> contract.Echo:
        time.sleep(request.seconds)
        return contract.Echo(payload={"waited": request.seconds})

    @handles(contract.MEET)
    def meet(self, request: contract.Meet) -> contract.Echo:
        self.meeting.append(request)
        while len(self.meeting) < request.number:
            time.sleep(0.01)
        return contract.Echo(payload={})

    @handles(contract.BREAK)
    def break_down(self, request: contract.Echo) -> contract.Echo:
        raise RuntimeError(f"a secret of the implementation: {request.payload}")

    @handles(contract.COUNT)
    def count(self, request: contract.Count) -> contract.Counted:
        counted: contract.Counted = self.context.database.write(commands.count, request)
        return counted

    @handles(contract.RELAY)
    def relay(self, request: contract.Relayed) -> Any:
        return self.context.bus.call(contract.WAIT, contract.Wait(seconds=request.seconds))

    @handles(contract.ADD_TASK)
    def add_task(self, request: contract.Task) -> contract.Echo:
        return contract.Echo(payload={"id": self.context.database.write(commands.add_task, request, now())})

    @handles(contract.BURST_OF_LINES)
    def log_much(self, request: contract.Echo) -> contract.Echo:
        for number in range(contract.BURST):
            log.info("burst", number=number)
        return request

    @handles(contract.HARM)
    def do_harm(self, request: contract.Harm) -> contract.Echo:
        harm(request.way)
        return contract.Echo(payload={})

    @subscribes(contract.NOTED)
    def on_noted(self, envelope: Envelope, data: contract.Noted) -> None:
        if data.todo == "fail":
            raise RuntimeError("as it was told")
        if data.todo == "die" or (
            data.todo == "die once" and self.context.database.write(commands.trace, data.key, "death", now()) == 1
        ):
            os._exit(9)
        while data.todo == "linger" and not (self.context.settings.var_dir / "go on").exists():
            time.sleep(0.1)
        self.context.database.write(commands.note, envelope, data)
