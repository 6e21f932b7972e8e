"""Places for calls that work on documents: so many for each user, the others wait and are told when it takes too long."""

import asyncio

import pytest

from contracts.errors import ServiceError
from services.gateway.http.shares import Shares


def test_each_user_has_places_of_their_own() -> None:
    async def story() -> None:
        shares = Shares(2, wait=0.05)
        async with shares.place("a"), shares.place("a"):
            with pytest.raises(ServiceError) as refused:
                async with shares.place("a"):
                    pytest.fail("a third place")
            assert refused.value.code == "unavailable"
            async with shares.place("b"):
                pass
        async with shares.place("a"):
            pass

    asyncio.run(story())


def test_who_waits_comes_next_in_their_order_and_nobody_is_remembered() -> None:
    async def story() -> None:
        shares, came, most, inside = Shares(2, wait=20), list[int](), 0, 0

        async def call(number: int) -> None:
            nonlocal most, inside
            async with shares.place("a"):
                came.append(number)
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1

        await asyncio.gather(*(call(number) for number in range(10)))
        assert came == list(range(10))
        assert most == 2
        assert shares._shares == {}

    asyncio.run(story())


def test_a_call_that_is_given_up_takes_no_place() -> None:
    async def story() -> None:
        shares = Shares(1, wait=20)
        async with shares.place("a"):
            waiting = asyncio.create_task(shares.place("a").__aenter__())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        async with shares.place("a"):
            pass
        assert shares._shares == {}

    asyncio.run(story())
