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
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar, cast

from greenlet import getcurrent, greenlet

T = TypeVar("T")

MOST_VALUES = 500  # in JSON that the event loop handles; each takes some 5 µs

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]
Aside = Callable[[Awaitable[Any]], Awaitable[Any]]


class TooLong(BaseException):
    """Raised when the work turns out to be too long for the event loop and has changed nothing yet.

    It is not an Exception, so that no handler between the store and `run` takes it for a failure.
    """


class _Work(greenlet):
    """The greenlet of some work. `in_thread` calls a function in a thread, `aside` waits for what
    may take long.
    """

    times = 1

    def __init__(self, work: Callable[[], Any], in_thread: InThread, aside: Aside) -> None:
        super().__init__(work)
        self.in_thread = in_thread
        self.aside = aside
        self.has_written = False


class _LightWork:
    """Work of a thread that may be `times` as long as that of the event loop."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.has_written = False


class _Origin(threading.local):
    """The work for which this thread makes a call of `block`, or its own light work."""

    work: _Work | None = None
    light: _LightWork | None = None


_origin = _Origin()


def _ignore(seconds: float) -> None:
    """Does nothing: nobody measures the steps."""


def _wait(awaitable: Awaitable[T]) -> Awaitable[T]:
    """Waits for what may take long as for anything else."""
    return awaitable


async def run(
    work: Callable[[], T],
    in_thread: InThread,
    took: Callable[[float], None] = _ignore,
    aside: Aside = _wait,
) -> T:
    """Returns the result of `work`, which may call `wait_for`, `wait_aside` and `block`. Raises
    what it raises.

    `took` is called with the seconds of each step of the work, for which the event loop did nothing
    else. `aside` waits for what `wait_aside` is given. Raises: TooLong if the work raises it; the
    caller may then run it in a thread.
    """
    worker = _Work(work, in_thread, aside)
    result = _measured(took, worker.switch)
    while not worker.dead:
        try:
            answer = await result
        except BaseException as error:  # noqa: BLE001 - raised where the work waits for it
            result = _measured(took, worker.throw, error)
        else:
            result = _measured(took, worker.switch, answer)
    return cast(T, result)


def _measured(took: Callable[[float], None], step: Callable[..., Any], *given: Any) -> Any:
    began = time.perf_counter()
    try:
        return step(*given)
    finally:
        took(time.perf_counter() - began)


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


def wait_aside(awaitable: Awaitable[T]) -> T:
    """Waits as `wait_for` for what may take long, such as the answer of another server."""
    worker = getcurrent()
    assert isinstance(worker, _Work)
    return cast(T, wait_for(worker.aside(awaitable)))


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
    work = _limited_work() or _origin.work
    if work is not None:
        work.has_written = True


def run_lightly(work: Callable[[], T], times: int = 1) -> T:
    """Returns the result of `work`, called in this thread, which may be `times` as long as work of
    the event loop. Raises TooLong if it is longer, and what it raises.
    """
    _origin.light = _LightWork(times)
    try:
        return work()
    finally:
        _origin.light = None


def raise_if_long(size: int, most: int) -> None:
    """Raises TooLong in work that must not be long if `size` is above `most`, the limit of work in
    the event loop, unless the work has changed data.
    """
    if size > most:
        work = _limited_work()
        if work is not None and size > most * work.times and not work.has_written:
            raise TooLong


def _limited_work() -> _Work | _LightWork | None:
    """Returns the caller's work if it must not take long."""
    worker = getcurrent()
    return worker if isinstance(worker, _Work) else _origin.light


def raise_if_many_values(text: bytes) -> None:
    """Raises TooLong for JSON that may have more than MOST_VALUES values, as `raise_if_long` does.

    Decoding, checking and encoding them takes some milliseconds.
    """
    if _limited_work() is not None:
        raise_if_long(text.count(b","), MOST_VALUES)
