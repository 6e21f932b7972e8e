import os
import time
from datetime import timedelta

from services.specimen import commands
from services.specimen.harm import BadLoop, harm_soon
from services.specimen.models import Task
from services.specimen.settings import Settings
from sqlalchemy.orm import Session

from contracts.runtime.bus.outbox import emit
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done, DueWork, Loop, Outcome, Park, Retry
from contracts.runtime.data.files.blobstore import BlobStore
from tests.support.services.specimens import contract


def loops(settings: Settings, database: Database, blobs: BlobStore) -> list[Loop]:
    """Each attempt leaves a trace; then it does what ``todo`` says. A finished task states ``thing.noted``."""

    def attempt(task: Task) -> Outcome:
        times = database.write(commands.trace, task.key, "attempt", now())
        what, _, detail = task.todo.partition(" ")
        if what == "die" and times == 1:
            os._exit(9)
        if what == "sleep":
            time.sleep(float(detail))
            database.write(commands.trace, task.key, "end", now())
        if what == "fail":
            raise RuntimeError("as it was told")
        if what == "later":
            return Retry("not yet", after=timedelta(seconds=float(detail))) if times == 1 else Done(_told)
        if what == "park":
            return Park("hopeless", _told)
        return Done(_told)

    harm_soon(settings.harm)
    return [
        *([BadLoop(settings.harm)] if settings.harm.endswith(" loop") else []),
        DueWork(
            "tasks",
            database,
            Task,
            attempt,
            schedule=[timedelta(seconds=float(pause)) for pause in settings.schedule.split(",")],
            lease=timedelta(seconds=settings.lease),
            concurrency=4,
            on_park=_told,
        ),
    ]


def _told(session: Session, task: Task) -> None:
    emit(session, contract.NOTED, contract.Noted(key=f"{task.key} {task.state}"), subject=f"task:{task.id}")
