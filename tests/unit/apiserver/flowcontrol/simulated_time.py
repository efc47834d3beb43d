"""An event loop in which time passes only while nobody has anything to do, and then at once."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        self.now += timeout or 0.0
        return super().select(0)


class _SimulatedLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._simulated = _Selector()
        super().__init__(self._simulated)

    def time(self) -> float:
        return self._simulated.now


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end. Sleeping takes no time."""
    with asyncio.Runner(loop_factory=_SimulatedLoop) as runner:
        return runner.run(work)


async def run_for(seconds: float, clients: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Runs clients, which do not end by themselves, beside each other for so many seconds."""
    tasks = [asyncio.create_task(client) for client in clients]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(one, asyncio.CancelledError) for one in ended), ended
