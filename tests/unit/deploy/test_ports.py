"""A port is given once while the process lives that it was given to, in whatever process somebody else asks."""

import multiprocessing

import pytest

from deploy import rabbitmq
from deploy.rabbitmq import BrokerFailed, free_port


def _asked(few: range) -> int | None:
    rabbitmq.PORTS = few
    try:
        return free_port()
    except BrokerFailed:
        return None


def test_nobody_is_given_the_same_port(monkeypatch: pytest.MonkeyPatch) -> None:
    start = free_port()
    few = range(start, start + 4)  # the first of which is reserved
    spawned = multiprocessing.get_context("spawn")
    with spawned.Pool(1) as pool:
        others = pool.apply(_asked, (few,))
        monkeypatch.setattr(rabbitmq, "PORTS", few)
        given = [others]
        while (port := _asked(few)) is not None:
            given.append(port)
        assert others is not None
        assert start not in given
        assert len(given) == len(set(given))
        assert pool.apply(_asked, (few,)) is None
    with spawned.Pool(1) as pool:
        assert pool.apply(_asked, (few,)) == others, "whoever was given it is gone"
