"""Tests whose turn it is in the event loop, in simulated time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kcm.apiserver.flowcontrol.schemas import Flow
from kcm.apiserver.flowcontrol.turns import Turn, Turns
from tests.unit.apiserver.flowcontrol.simulated_time import run, run_for

WEIGHTS = {"node-high": 40, "global-default": 20, "exempt": 30}
STEP = 0.002  # seconds that each request computes


def turns(most: int = 1) -> Turns:
    return Turns(WEIGHTS.__getitem__, most)


def _flow(level: str, user: str) -> Flow:
    return Flow("schema", user, level, b"")


@asynccontextmanager
async def turn_of(given: Turns, flow: Flow) -> AsyncIterator[Turn]:
    """Has a turn while the context lasts."""
    turn = await given.take(flow)
    try:
        yield turn
    finally:
        given.end(turn)


async def _client(given: Turns, flow: Flow, served: Counter[Flow], takes: float) -> None:
    while True:
        async with turn_of(given, flow) as turn:
            await asyncio.sleep(takes)
            turn.seconds += takes
            served[flow] += 1


def _serve(clients: dict[Flow, tuple[int, float]], seconds: float) -> Counter[Flow]:
    """Returns how many turns each flow has in so many seconds."""
    served: Counter[Flow] = Counter()

    async def work() -> None:
        given = turns()
        await run_for(
            seconds,
            [
                _client(given, flow, served, takes)
                for flow, (count, takes) in clients.items()
                for _ in range(count)
            ],
        )
        assert sum(given.waiting.values()) == 0
        async with asyncio.timeout(0), turn_of(given, _flow("exempt", "last")):
            pass

    run(work())
    return served


def test_levels_get_turns_by_their_weights() -> None:
    node, user = _flow("node-high", "n1"), _flow("global-default", "jane")
    served = _serve({node: (16, STEP), user: (64, STEP)}, 20)
    assert served[node] == pytest.approx(2 * served[user], rel=0.02)


def test_nobody_who_is_exempt_takes_the_turns_of_others() -> None:
    node, admin = _flow("node-high", "n1"), _flow("exempt", "admin")
    served = _serve({node: (4, STEP), admin: (200, STEP)}, 20)
    assert served[node] == pytest.approx(40 / 30 * served[admin], rel=0.02)


def test_flows_of_a_level_get_the_same_time() -> None:
    heavy, light = _flow("global-default", "a"), _flow("global-default", "b")
    served = _serve({heavy: (64, 4 * STEP), light: (8, STEP)}, 40)
    assert served[light] == pytest.approx(4 * served[heavy], rel=0.05)


def test_a_flow_that_comes_seldom_waits_for_one_turn_at_most() -> None:
    async def work() -> None:
        given, served = turns(), Counter[Flow]()
        flood = [
            asyncio.create_task(_client(given, _flow("global-default", "a"), served, STEP))
            for _ in range(64)
        ]
        for _ in range(50):
            await asyncio.sleep(0.1)
            began = asyncio.get_running_loop().time()
            async with turn_of(given, _flow("global-default", "seldom")):
                assert asyncio.get_running_loop().time() - began <= STEP * 1.01
        for task in flood:
            task.cancel()
        await asyncio.gather(*flood, return_exceptions=True)

    run(work())


def test_others_have_the_turn_of_who_waits_outside_the_loop() -> None:
    async def work() -> list[str]:
        given, order = turns(), list[str]()

        async def long() -> None:
            async with turn_of(given, _flow("exempt", "long")) as turn:
                order.append("long begins")
                await turn.leave_for(asyncio.sleep(5.0))
                order.append("long ends")

        async def short() -> None:
            async with turn_of(given, _flow("exempt", "short")):
                order.append("short")

        await asyncio.gather(long(), short())
        async with asyncio.timeout(0), turn_of(given, _flow("exempt", "next")):
            order.append("next")
        return order

    assert run(work()) == ["long begins", "short", "long ends", "next"]


@pytest.mark.parametrize("served_first", [False, True])
def test_who_stops_waiting_leaves_the_turn_to_others(served_first: bool) -> None:
    async def work() -> None:
        given = turns()
        async with turn_of(given, _flow("exempt", "first")):
            gone = asyncio.create_task(_once(given, "gone"))
            last = asyncio.create_task(_once(given, "last"))
            await asyncio.sleep(0)
            if not served_first:
                gone.cancel()
        if served_first:
            gone.cancel()  # it has the turn, and was not told yet
        await last
        assert given.waiting == {"exempt": 0}
        async with asyncio.timeout(0), turn_of(given, _flow("exempt", "next")):
            pass

    run(work())


async def _once(given: Turns, name: str) -> None:
    async with turn_of(given, _flow("exempt", name)):
        await asyncio.sleep(0)
