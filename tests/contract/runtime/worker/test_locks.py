"""Database code on SQLite runs in real threads of a worker, and shares locks there that belong to libraries: SQLAlchemy's, those
of the loggers it asks, Babel's, pydantic's. Green threads wait for the same ones. None of them may wait for ever."""

import subprocess
import sys

PATCHED = """
import sys
from contracts.runtime.worker.patch import patch
patch()
import eventlet
from eventlet import tpool
from contracts.runtime.worker import lock as locks
locks.LONGEST_WAIT_SECONDS = 3600.0  # whoever is not woken waits for too long here
"""
AT_ONCE = """
pool = eventlet.GreenPool()
print(sum(pool.imap(lambda _: tpool.execute(work), range(16))))
"""

SESSIONS = """
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, configure_mappers, mapped_column

class Base(DeclarativeBase):
    pass

class Thing(Base):
    __tablename__ = "things"
    id: Mapped[int] = mapped_column(primary_key=True)

configure_mappers()
sys.setswitchinterval(1e-6)

def work():
    engine = sa.create_engine("sqlite://")
    Base.metadata.create_all(engine)
    for _ in range(150):
        with Session(engine) as session:
            session.scalars(sa.select(Thing)).all()
    engine.dispose()
    return 1
"""


def test_sessions_in_many_threads_at_once_come_to_an_end() -> None:
    assert_it_ends(f"{PATCHED}{SESSIONS}{AT_ONCE}")


DATES = """
from babel import localedata
from babel.dates import get_month_names
sys.setswitchinterval(1e-4)

def work():
    for locale in ("de", "fr"):
        localedata._cache.clear()
        get_month_names("wide", locale=locale)
    return 1
"""


def test_dates_are_put_into_words_in_many_threads_at_once() -> None:
    assert_it_ends(f"{PATCHED}{DATES}{AT_ONCE}")


MODELS = """
from pydantic import BaseModel
sys.setswitchinterval(1e-4)

def incomplete():
    class Outer(BaseModel):
        inner: "Inner | None" = None

    class Inner(BaseModel):
        value: int = 0

    Outer._names = {"Inner": Inner}
    return Outer

outers = [incomplete() for _ in range(60)]

def work():
    for outer in outers:
        outer.model_rebuild(_types_namespace=outer._names)
        assert outer.model_validate({"inner": {"value": 1}}).inner.value == 1
    return 1
"""


def test_models_are_completed_in_many_threads_at_once() -> None:
    assert_it_ends(f"{PATCHED}{MODELS}{AT_ONCE}")


COUNTING = """
import threading
sys.setswitchinterval(1e-6)
lock, again, counted = threading.Lock(), threading.RLock(), [0]

def work():
    for _ in range(2000):
        with again, again, lock:
            seen = counted[0]
            counted[0] = seen + 1
    return 1

def work_in_the_event_loop():
    for _ in range(200):
        with again, lock:
            seen = counted[0]
            eventlet.sleep(0)
            counted[0] = seen + 1
    return 1

green = [eventlet.spawn(work_in_the_event_loop) for _ in range(10)]
"""
COUNTED = """
[one.wait() for one in green]
assert counted[0] == 16 * 2000 + 10 * 200, counted
"""


def test_green_and_real_threads_share_locks() -> None:
    assert_it_ends(f"{PATCHED}{COUNTING}{AT_ONCE}{COUNTED}")


WAKING = """
import threading
lock, order = threading.Lock(), []


def wait(number):
    with lock:
        order.append(number)
    return 1


def hold(held):
    held.append(lock.acquire())
    while len(lock._waiting) < 15:
        real_sleep(0.001)
    lock.release()
    return 1


real_sleep, held = eventlet.patcher.original("time").sleep, []
holding = eventlet.spawn(tpool.execute, hold, held)
while not held:
    eventlet.sleep(0.001)
waiting = [eventlet.spawn(wait, number) for number in range(15)]
print(sum(one.wait() for one in waiting) + holding.wait())
assert order == list(range(15))
"""


def test_whoever_waits_in_the_event_loop_is_woken_by_a_real_thread() -> None:
    assert_it_ends(f"{PATCHED}{WAKING}")


GIVING_UP = """
import threading, time
lock, began = threading.Lock(), time.monotonic()

def work():
    return int(lock.acquire(timeout=0.05))

with lock:
    assert not lock.acquire(False) and lock.locked()
    assert [eventlet.spawn(work).wait(), tpool.execute(work)] == [0, 0]
assert not lock.locked()


def wait(number):
    assert lock.acquire(timeout=120)
    order.append(number)


order = []
lock.acquire()
waiting = [eventlet.spawn(wait, number) for number in range(3)]
eventlet.sleep(0)
for number in range(3):
    lock.release()
    while len(order) <= number:
        eventlet.sleep(0)
assert order == [0, 1, 2]
assert lock.locked()
lock.release()
try:
    lock.release()
except RuntimeError:
    print(16)
"""


def test_waiting_ends_when_it_was_said_to() -> None:
    assert_it_ends(f"{PATCHED}{GIVING_UP}")


def assert_it_ends(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=90, check=False)
    assert "different thread" not in done.stderr
    assert done.stdout.strip() == "16", done.stderr[-2000:]
