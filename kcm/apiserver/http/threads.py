"""Runs calls that may block in a few threads, for the event loop.

A call that is awaited ends exactly once, with its result or its error. A call that is no longer
awaited when its turn comes is not started. A started call is not interrupted.

asyncio's `run_in_executor` takes two futures, a condition and three iterations of the loop for the
same, which is more than a read from the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

from kcm.apiserver.auth.attributes import MASTERS, User

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _PendingCall:
    """A call that waits for a thread, and the future of its result."""

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
            with contextlib.suppress(RuntimeError):  # the loop is closed, so nothing awaits it
                self.loop.call_soon_threadsafe(_settle, self.future, result, error)
        finally:
            del error, self  # through this frame, the error would keep itself alive


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


class Threads:
    """A fixed number of threads that users share by taking turns. Call `start` first.

    The last `RESERVED` free threads take only calls of users who have none running, and of
    system:masters. So one user's calls cannot occupy every thread. While a call waits in
    `replaced`, an extra thread takes its place.
    """

    RESERVED = 2

    def __init__(self, count: int, name: str) -> None:
        self._lock = Lock()  # protects the fields below
        self._waiting: OrderedDict[str, deque[_PendingCall]] = (
            OrderedDict()
        )  # keyed by user, in turn
        self._running: Counter[str] = Counter()  # keyed by user
        self._free = count
        self._reserved = min(self.RESERVED, count - 1)
        # users in the order of their turns
        self._tasks: SimpleQueue[tuple[str, _PendingCall] | None] = SimpleQueue()
        self._name = name
        self._threads = [self._new_thread(n) for n in range(count)]
        self._extra = 0  # threads beyond those
        self._absent = 0  # calls in `replaced`
        self.stopping = False

    def _new_thread(self, number: int) -> Thread:
        return Thread(target=self._run, name=f"{self._name}-{number}", daemon=True)

    def start(self) -> None:
        """Starts the threads."""
        for thread in self._threads:
            thread.start()

    async def run(self, work: Callable[[], T], user: User) -> T:
        """Returns the result of `work`, which is called in a thread. Raises what it raises.

        `user` is the user on whose behalf it is called.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        whose = _MASTERS if MASTERS in user.groups else user.name
        with self._lock:
            self._waiting.setdefault(whose, deque()).append(_PendingCall(work, future, loop))
            self._begin()
        try:
            return await future
        finally:
            del future  # an error would lead back to itself

    @contextlib.contextmanager
    def replaced(self) -> Iterator[None]:
        """Lets another thread take the place of this one, whose call waits for something outside.

        So calls that wait hold up no others. Their number is bounded by the requests in flight.
        """
        with self._lock:
            self._absent += 1
            missing = self._absent - self._extra
            if missing > 0 and not self.stopping:
                self._extra += 1
                self._new_thread(len(self._threads) + self._extra - 1).start()
            self._free += 1
            self._begin()
        try:
            yield
        finally:
            with self._lock:
                self._absent -= 1
                self._free -= 1

    def stop(self) -> None:
        """Drops the calls that have not started, and waits for the others."""
        with self._lock:
            self.stopping = True
            for _ in range(len(self._threads) + self._extra):
                self._tasks.put(None)
        for thread in self._threads:
            thread.join()

    def _begin(self) -> None:
        """Assigns waiting calls to free threads. The lock must be held."""
        while self._free > 0 and (whose := self._next()) is not None:
            tasks = self._waiting[whose]
            task = tasks.popleft()
            if tasks:
                self._waiting.move_to_end(whose)
            else:
                del self._waiting[whose]
            self._free -= 1
            self._running[whose] += 1
            self._tasks.put((whose, task))

    def _next(self) -> str | None:
        """Returns the user whose call starts next, None if none may start.

        It passes over few users, since each of them already has a thread.
        """
        if self._free > self._reserved:
            return next(iter(self._waiting), None)
        if _MASTERS in self._waiting:
            return _MASTERS
        return next((whose for whose in self._waiting if not self._running.get(whose)), None)

    def _run(self) -> None:
        _here.threads = self
        while not self.stopping and (turn := self._tasks.get()) is not None:
            whose, task = turn
            del turn
            task.run()
            del task  # what it holds may be large, and the next one may be long in coming
            with self._lock:
                self._free += 1
                self._running[whose] -= 1
                if not self._running[whose]:
                    del self._running[whose]
                self._begin()
                if self._extra > self._absent:  # one that was replaced is back
                    self._extra -= 1
                    break


class _Here(threading.local):
    """The pool of the present thread."""

    threads: Threads | None = None


_here = _Here()


def replace_this_thread() -> contextlib.AbstractContextManager[None]:
    """Lets another thread of its pool take the place of this one, see `Threads.replaced`."""
    pool = _here.threads
    return contextlib.nullcontext() if pool is None else pool.replaced()


_MASTERS = ""  # no user has this name
