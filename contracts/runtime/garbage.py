"""When Python looks for garbage: seldom while a process starts, and never again through what it made until then."""

import gc
import time

_USUAL = gc.get_threshold()
_WHILE_STARTING = 1_000_000
"""Objects made, less those that ended. A service imports some 400,000, and a quarter of its start went into looking through
them again and again. A process that waits long for its database or its schema still collects."""

_LONG_SECONDS = 60.0
_began = time.monotonic()
"""A process imports this module before anything else."""


def seldom() -> None:
    """Collect seldom from now on: before anything is imported."""
    gc.set_threshold(_WHILE_STARTING, *_USUAL[1:])


def begin_again() -> None:
    """Count from now on how long the process has waited: until now it was another one, of which it is a copy, or was busy."""
    global _began
    _began = time.monotonic()


def keep_all() -> None:
    """Collect as usual, but keep what there is: the collector need not look through it again.

    Not even now, for the one or two in a hundred objects that are garbage after a usual start: that takes a fifth of a second
    of a processor, a seventh of the start. A process that had to wait long has left more behind.
    """
    if time.monotonic() - _began > _LONG_SECONDS:
        gc.collect()
    gc.freeze()
    gc.set_threshold(*_USUAL)
