"""Calls of the page of a submission ``/e/<slug>``."""

from contracts.rpc.submissions import progress as rpc
from contracts.rpc.submissions.signing import codes, form
from contracts.runtime.worker import handles
from services.submissions.commands import progress as commands
from services.submissions.entrypoints.base import Entrypoints
from services.submissions.reading import progress


class Progress(Entrypoints):
    """Calls of readers."""

    @handles(rpc.PROGRESS)
    def progress(self, visit: rpc.ProgressVisit) -> rpc.Progress:
        return self._look_up(progress.page, visit)

    @handles(rpc.SEND_PROGRESS_CODE)
    def send_progress_code(self, command: rpc.SendProgressCode) -> rpc.ProgressCodeAsked:
        return self._write(commands.send_code, command)

    @handles(rpc.CHECK_PROGRESS_CODE)
    def check_progress_code(self, command: rpc.CheckProgressCode) -> codes.PassedCode:
        judged, passed = self._write(commands.check_code, command)
        return judged.passed(passed)

    @handles(rpc.SEND_AGAIN)
    def send_again(self, command: rpc.SendAgain) -> form.Done:
        return self._write(commands.send_again, command)
