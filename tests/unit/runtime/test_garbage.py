"""What a process that has started keeps: in a process of its own, as the collector is one for all."""

import subprocess
import sys

import pytest

STARTED = """
import weakref
from contracts.runtime import garbage

class Thing:
    pass

garbage.seldom()
garbage._began -= {seconds}
thing = Thing()
thing.itself = thing
seen = weakref.ref(thing)
del thing
garbage.keep_all()
print(seen() is None)
import gc
thing = Thing()
thing.itself = thing
seen = weakref.ref(thing)
del thing
gc.collect()
print(seen() is None, gc.get_freeze_count() > 0, gc.get_threshold() == garbage._USUAL)
"""


@pytest.mark.parametrize(("seconds", "looked_through"), [(3, "False"), (61, "True")], ids=["usual", "long"])
def test_what_a_start_left_is_looked_through_when_it_took_long(seconds: int, looked_through: str) -> None:
    command = [sys.executable, "-c", STARTED.format(seconds=seconds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == [looked_through, "True", "True", "True"]
