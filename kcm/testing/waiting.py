"""Waiting in real time for what other threads and processes do.

No test judges how long something takes: a busy machine takes many times as long as a quiet one.
What must not happen early is checked with recorded times and orders.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

PATIENCE = 60.0  # seconds until something counts as never
_BETWEEN_LOOKS = 0.02  # seconds from one look at the condition to the next


def until(
    holds: Callable[[], object],
    what: str = "it",
    within: float = PATIENCE,
    words: Callable[[], str] = str,
) -> None:
    """Waits until `holds` returns something true.

    Fails after `within` seconds, with `what` and what `words` returns, which may explain why it
    never did.
    """
    deadline = time.monotonic() + within
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come to pass within {within:g} s {words()}")
        threading.Event().wait(_BETWEEN_LOOKS)


def let_time_pass(seconds: float, why: str) -> None:
    """Waits for some seconds of real time, where the time itself is what a test is about.

    That is so when a fault has to last (a node is silent, a process stands still), or when what a
    system does by itself is watched. `why` says which; everything else waits with `until`.
    """
    assert why, "say what the time is for"
    threading.Event().wait(max(seconds, 0.0))


async def until_on_loop(
    holds: Callable[[], object], what: str = "it", within: float = PATIENCE
) -> None:
    """Waits until `holds` returns something true, while other tasks of the event loop run.

    Fails after `within` seconds, with `what`.
    """
    deadline = time.monotonic() + within
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come to pass within {within:g} s")
        await yield_to_loop()


async def yield_to_loop() -> None:
    """Lets each task of the event loop that is ready run once."""
    await asyncio.sleep(0)
