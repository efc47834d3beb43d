"""Waits in real time for other threads and processes.

No test asserts how long something takes, since a busy machine takes many times as long as an idle
one. That something does not happen too early is asserted by recorded times and orders.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

PATIENCE = 60.0  # seconds after which a wait fails
_BETWEEN_LOOKS = 0.02  # seconds between checks of the condition, at least
_LONGEST_PAUSE = 1.0


def until(
    holds: Callable[[], object],
    what: str = "it",
    within: float = PATIENCE,
    words: Callable[[], str] = str,
) -> None:
    """Waits until `holds` returns a true value.

    Fails after `within` seconds, with a message of `what` was awaited and the result of `words`,
    which can explain why it did not happen.
    """
    deadline = time.monotonic() + within
    looked = time.monotonic()
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not happen within {within:g} s {words()}")
        # A look that starts a program leaves most of the time to what it waits for.
        pause = min(3 * (time.monotonic() - looked), _LONGEST_PAUSE)
        threading.Event().wait(max(pause, _BETWEEN_LOOKS))
        looked = time.monotonic()


def let_time_pass(seconds: float, why: str) -> None:
    """Waits for some seconds of real time.

    Tests use it only while a fault has to last (a node is partitioned, a process is stopped), or to
    observe what a system does by itself; otherwise they use `until`. `why` states the reason.
    """
    assert why, "say what the time is for"
    threading.Event().wait(max(seconds, 0.0))


async def until_on_loop(
    holds: Callable[[], object], what: str = "it", within: float = PATIENCE
) -> None:
    """Waits until `holds` returns a true value, while other tasks of the event loop run.

    Fails after `within` seconds, with a message of `what` was awaited.
    """
    deadline = time.monotonic() + within
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not happen within {within:g} s")
        await yield_to_loop()


async def yield_to_loop() -> None:
    """Lets each ready task of the event loop run once."""
    await asyncio.sleep(0)
