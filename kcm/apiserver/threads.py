"""What may block, off the event loop: a few threads, and a short way there and back.

Guarantees: what was handed over and is awaited ends exactly once, with its result or its
error; what is no longer awaited when its turn comes is not begun. Does not guarantee that
what has begun is interrupted.

asyncio's own way, `run_in_executor`, takes two futures, a condition and three turns of the
loop for the same, more than a read from the store itself.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Task:
    """Work, and who waits for it."""

    work: Callable[[], Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop

    def run(self) -> None:
        if self.future.cancelled():
            return
        result = error = None
        try:
            result = self.work()
        except BaseException as raised:  # noqa: BLE001 - raised again where it is awaited
            error = raised
        try:
            with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits
                self.loop.call_soon_threadsafe(_settle, self.future, result, error)
        finally:
            del error, self  # by way of this frame, the error would keep itself


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


class Threads:
    """So many threads that work off one queue. `start` comes first."""

    def __init__(self, count: int, name: str) -> None:
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._threads = [
            Thread(target=self._run, name=f"{name}-{n}", daemon=True) for n in range(count)
        ]
        self.stopping = False

    def start(self) -> None:
        """Begin to work."""
        for thread in self._threads:
            thread.start()

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, called in a thread. Raises what it raises."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._tasks.put(_Task(work, future, loop))
        try:
            return await future
        finally:
            del future  # an error would lead back to itself

    def stop(self) -> None:
        """Drop what has not begun, wait for the rest."""
        self.stopping = True
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None and not self.stopping:
            task.run()
            del task  # what it holds may be large, and the next one long in coming
