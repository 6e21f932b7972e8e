"""The operating system's threads, locks and waits, also in a worker, where ``worker.patch`` replaces the standard library's.

``patch`` imports this first. In other processes these are simply the standard library's.
"""

from _thread import allocate_lock, get_ident, start_new_thread
from select import POLLOUT, poll
from time import monotonic, sleep

__all__ = ["POLLOUT", "allocate_lock", "get_ident", "monotonic", "poll", "sleep", "start_new_thread"]
