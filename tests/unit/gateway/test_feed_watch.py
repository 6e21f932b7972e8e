"""Many who wait for the event log have it looked at once for all of them, and none of them misses an event."""

import asyncio

import pytest

from services.gateway.api.requests.feed_watch import FeedWatch

AMPLE = 600.0


class Log:
    """An event log that counts the looks at its end."""

    def __init__(self) -> None:
        self.end = 7
        self.looks = 0
        self.looked = asyncio.Event()
        self.fault: Exception | None = None

    async def look(self) -> int:
        self.looks += 1
        self.looked.set()
        if self.fault is not None:
            raise self.fault
        return self.end

    async def another_look(self) -> None:
        self.looked.clear()
        await self.looked.wait()


def test_a_hundred_who_wait_are_one_look() -> None:
    async def story() -> None:
        log, watch = Log(), FeedWatch(look_again=0.001)
        waiting = [asyncio.create_task(watch.moved(7, log.look, AMPLE)) for _ in range(100)]
        for _ in range(3):
            await log.another_look()
        assert not any(task.done() for task in waiting)
        assert log.looks < 100
        log.end = 8
        await asyncio.gather(*waiting)
        assert watch.seen == 8
        assert watch._looking is not None
        await asyncio.wait_for(watch._looking, AMPLE)  # nobody waits, nobody looks
        again = asyncio.create_task(watch.moved(8, log.look, AMPLE))
        await log.another_look()
        log.end = 9
        await again

    asyncio.run(story())


def test_who_knows_an_older_end_or_none_reads_at_the_next_look() -> None:
    async def story() -> None:
        log = Log()
        for known in (None, 6, 70):  # 70: the log of before a backup was restored
            watch = FeedWatch(look_again=0.001)
            await watch.moved(known, log.look, AMPLE)
            assert watch.seen == 7
        assert log.looks == 3

    asyncio.run(story())


def test_waiting_has_an_end_and_takes_nobody_else_s() -> None:
    async def story() -> None:
        log, watch = Log(), FeedWatch(look_again=0.001)
        patient = asyncio.create_task(watch.moved(7, log.look, AMPLE))
        await watch.moved(7, log.look, 0.01)
        gone = asyncio.create_task(watch.moved(7, log.look, AMPLE))
        await log.another_look()
        gone.cancel()
        await log.another_look()
        assert not patient.done()
        log.end = 8
        await patient

    asyncio.run(story())


def test_a_service_that_does_not_answer_is_told_to_all_and_asked_by_the_next() -> None:
    async def story() -> None:
        log, watch = Log(), FeedWatch(look_again=0.001)
        log.fault = ConnectionError("away")
        waiting = [asyncio.create_task(watch.moved(7, log.look, AMPLE)) for _ in range(3)]
        done = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in done] == [ConnectionError] * 3
        log.fault, log.end = None, 8
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await watch.moved(8, log.look, AMPLE)
        await watch.moved(7, log.look, AMPLE)

    asyncio.run(story())
