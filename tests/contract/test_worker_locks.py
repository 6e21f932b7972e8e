"""Database code on SQLite runs in real threads of a worker: no lock that two of them share may be a green one,
neither SQLAlchemy's own, nor that of the loggers it asks, nor Babel's."""

import subprocess
import sys

PATCHED = """
import sys
from contracts.runtime.worker.patch import patch
patch()
import eventlet
from eventlet import tpool
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


def assert_it_ends(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=90, check=False)
    assert "different thread" not in done.stderr
    assert done.stdout.strip() == "16", done.stderr[-2000:]
