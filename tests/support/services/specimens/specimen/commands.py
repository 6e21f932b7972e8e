from datetime import datetime

import sqlalchemy as sa
from services.specimen.models import Counter, Note, Task, Trace
from sqlalchemy.orm import Session

from contracts.envelope import Envelope
from contracts.runtime.bus.outbox import first_time, once
from tests.support.services.specimens import contract


def count(session: Session, request: contract.Count) -> contract.Counted:
    def decide() -> contract.Counted:
        counter = session.get(Counter, request.key, with_for_update=True)
        if counter is None:
            counter = Counter(key=request.key, total=0)
            session.add(counter)
        counter.total += 1
        return contract.Counted(total=counter.total)

    return once(session, contract.COUNT, request.request_id, decide)


def note(session: Session, envelope: Envelope, data: contract.Noted) -> None:
    if first_time(session, "note", envelope.id):
        session.add(Note(key=data.key, request_id=envelope.request_id))


def add_task(session: Session, request: contract.Task, now: datetime) -> int:
    task = Task(key=request.key, todo=request.todo, lane=request.lane, next_attempt_at=now)
    session.add(task)
    session.flush()
    number: int = task.id
    return number


def trace(session: Session, key: str, what: str, now: datetime) -> int:
    """How often it was traced, this one included."""
    session.add(Trace(key=key, what=what, at=now))
    session.flush()
    return session.scalar(sa.select(sa.func.count()).where(Trace.key == key, Trace.what == what)) or 0
