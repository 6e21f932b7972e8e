"""A broker that is in an alarm, as when its memory is used up: it takes nothing that is published, and confirms nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

from deploy.rabbitmq import PrivateBroker


@contextmanager
def in_alarm(broker: PrivateBroker) -> Iterator[None]:
    """Have the alarm for the time of the block, or until ``end_alarm``."""
    _set_watermark(broker, "0.0")
    try:
        yield
    finally:
        end_alarm(broker)


def end_alarm(broker: PrivateBroker) -> None:
    _set_watermark(broker, "0.4")


def _set_watermark(broker: PrivateBroker, share: str) -> None:
    """As ``rabbitmqctl set_vm_memory_high_watermark``, which starts a node of its own to ask this one: a second of a processor."""
    broker.evaluate(f"vm_memory_monitor:set_vm_memory_high_watermark({share}).")
