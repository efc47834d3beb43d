"""Runs blocking code in an event loop: each call is a greenlet that yields while it waits.

The store's code is written for threads: it sends a command and returns with the reply. In a
greenlet the same code yields to the event loop until the reply has arrived, so one thread serves
many requests, without locks between them and without a switch of threads for each wait. SQLAlchemy
connects to asyncio in the same way.

Guarantees: `run` ends with the result or the error of its work, as a call would. Calls that must
not stop the event loop are made through `block`, which runs them in a thread. While a greenlet
computes, others do not run, so only short work should be run in this way.
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
    """Raised when the work turns out to be too long for the event loop and has changed nothing yet.

    It is not an Exception, so that no handler between the store and `run` takes it for a failure.
    """


class _Work(greenlet):
    """The greenlet of some work. `in_thread` calls a function in a thread."""

    def __init__(self, work: Callable[[], Any], in_thread: InThread) -> None:
        super().__init__(work)
        self.in_thread = in_thread
        self.has_written = False


class _Origin(threading.local):
    """The work for which this thread makes a call of `block`."""

    work: _Work | None = None


_origin = _Origin()


async def run(work: Callable[[], T], in_thread: InThread) -> T:
    """Returns the result of `work`, which may call `wait_for` and `block`. Raises what it raises.

    Raises: TooLong if the work raises it; the caller may then run it in a thread.
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
    """Reports whether the caller runs as work of `run`."""
    return isinstance(getcurrent(), _Work)


def wait_for(awaitable: Awaitable[T]) -> T:
    """Waits for an awaitable and returns its result, while the event loop runs. Only for work of
    `run`.
    """
    worker = getcurrent()
    assert worker.parent is not None
    return cast(T, worker.parent.switch(awaitable))


def block(call: Callable[[], T]) -> T:
    """Makes a call that may block: directly, or in a thread if the caller is work of `run`."""
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


def mark_written() -> None:
    """Marks the work as having changed data, so that it does not raise TooLong from now on.

    It may be called in the thread of `block` as well.
    """
    worker = getcurrent()
    work = worker if isinstance(worker, _Work) else _origin.work
    if work is not None:
        work.has_written = True


def raise_if_long(size: int, most: int) -> None:
    """Raises TooLong if `size` is above `most` bytes, unless the work has changed data."""
    worker = getcurrent()
    if size > most and isinstance(worker, _Work) and not worker.has_written:
        raise TooLong
