"""The one door to nameko and eventlet: a service's calls and subscriptions, and the process that serves them.

    from contracts.runtime.worker import Context, handles, subscribes

Importing this package imports nothing else until a name is asked for, because the first thing that ``serve`` does is to
make the standard library cooperative (``patch``), and whatever was imported before keeps what it had. The decorators only
mark methods: a service class is a plain class, and its methods can be called in a test without any container.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contracts.runtime.bus.marks import handles, subscribes
    from contracts.runtime.worker.context import Context

__all__ = ["Context", "handles", "subscribes"]


def __getattr__(name: str) -> Any:
    if name == "Context":
        from contracts.runtime.worker.context import Context

        return Context
    if name in ("handles", "subscribes"):
        from contracts.runtime.bus import marks

        return getattr(marks, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
