"""Code that blocks, run in an event loop: each call in a greenlet that yields while it waits.

The store's code is written for threads: it sends a command and returns with the reply. In a
greenlet the same code gives way to the event loop until the reply is there, so one thread serves
many requests, without locks between them and without a switch of threads for each wait. SQLAlchemy
bridges to asyncio in the same way.

Guarantees: `run` ends with the result or the error of its work, as a call would. What must not stop
the event loop is passed through `block`, which calls it in a thread. Does not guarantee that others
run while a greenlet computes: only short work belongs here.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar, cast

from greenlet import getcurrent, greenlet

T = TypeVar("T")

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]


class TooLong(BaseException):
    """The work turned out to be too long for the event loop, and has changed nothing yet.

    It is no Exception, so that no handler between the store and `run` takes it for a failure.
    """


class _Work(greenlet):
    """Work under way. `in_thread` calls a function in a thread."""

    def __init__(self, work: Callable[[], Any], in_thread: InThread) -> None:
        super().__init__(work)
        self.in_thread = in_thread
        self.has_written = False


class _Origin(threading.local):
    """The work on whose behalf this thread calls something."""

    work: _Work | None = None


_origin = _Origin()


async def run(work: Callable[[], T], in_thread: InThread) -> T:
    """Returns the result of `work`, which may call `wait_for` and `block`. Raises what it raises.

    Raises: TooLong, if the work says so; the caller may then run it elsewhere.
    """
    worker = _Work(work, in_thread)
    result = worker.switch()
    while not worker.dead:
        try:
            answer = await result
        except BaseException as error:  # noqa: BLE001 - raised where the work waits for it
            result = worker.throw(error)
        else:
            result = worker.switch(answer)
    return cast(T, result)


def is_running() -> bool:
    """Reports whether the caller is work of `run`."""
    return isinstance(getcurrent(), _Work)


def wait_for(awaitable: Awaitable[T]) -> T:
    """Returns what the awaitable gives, while the event loop goes on. Only for work of `run`."""
    worker = getcurrent()
    assert worker.parent is not None
    return cast(T, worker.parent.switch(awaitable))


def block(call: Callable[[], T]) -> T:
    """Calls what may block: here, or in a thread if the caller is work of `run`."""
    worker = getcurrent()
    if not isinstance(worker, _Work):
        return call()
    return cast(T, wait_for(worker.in_thread(partial(_call_for, worker, call))))


def _call_for(work: _Work, call: Callable[[], T]) -> T:
    _origin.work = work
    try:
        return call()
    finally:
        _origin.work = None


def note_write() -> None:
    """Notes that the work has changed something: from now on it must end where it is.

    It may be called in the thread of `block`, too.
    """
    worker = getcurrent()
    work = worker if isinstance(worker, _Work) else _origin.work
    if work is not None:
        work.has_written = True


def raise_if_long(size: int, most: int) -> None:
    """Raises TooLong for more than `most` bytes to work on, unless something was written."""
    worker = getcurrent()
    if size > most and isinstance(worker, _Work) and not worker.has_written:
        raise TooLong
