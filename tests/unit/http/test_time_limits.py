"""Limits of time for tasks, of which one timer serves all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kcm.http.time_limits import TimeLimits
from tests.unit.http.servers import turn

Step = Callable[[float], Awaitable[None]]


def run(test: Callable[[TimeLimits, Step], Awaitable[None]]) -> None:
    """Runs a test in an event loop whose time it steps."""
    now = 0.0

    async def step(seconds: float) -> None:
        nonlocal now
        now += seconds
        await turn()

    async def stepped() -> None:
        asyncio.get_running_loop().time = lambda: now  # type: ignore[method-assign] # stepped
        await test(TimeLimits(), step)

    asyncio.run(stepped())


async def wait(limits: TimeLimits, seconds: float) -> None:
    """Waits for nothing within a limit."""
    with limits.within(seconds):
        await asyncio.Event().wait()


def test_each_task_ends_at_its_own_limit() -> None:
    async def test(limits: TimeLimits, step: Step) -> None:
        tasks = {each: asyncio.ensure_future(wait(limits, each)) for each in (9, 3, 1, 2)}
        await step(0)
        for done in (set(), {1}, {1, 2}, {1, 2, 3}):
            assert {limit for limit, task in tasks.items() if task.done()} == done
            await step(1)
        await step(9)
        assert all(isinstance(task.exception(), TimeoutError) for task in tasks.values())

    run(test)


def test_what_ended_in_time_is_not_cancelled_later() -> None:
    async def test(limits: TimeLimits, step: Step) -> None:
        with limits.within(1):
            pass
        task = asyncio.ensure_future(wait(limits, 3))
        await step(0)
        await step(2)  # beyond the limit of this task, which goes on
        assert not task.done()
        await step(2)
        assert isinstance(task.exception(), TimeoutError)

    run(test)


@pytest.mark.parametrize("seconds", [9, 1], ids=["in time", "as its time runs out"])
def test_a_task_that_others_cancel_is_cancelled(seconds: float) -> None:
    async def test(limits: TimeLimits, step: Step) -> None:
        task = asyncio.ensure_future(wait(limits, seconds))
        await step(0)
        asyncio.get_running_loop().call_at(1, task.cancel)
        await step(1)
        assert task.cancelled()

    run(test)
