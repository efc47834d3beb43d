"""Waiting in real time for what other threads and processes do.

No test judges how long something takes: a busy machine takes many times as long as a quiet one.
What must not happen early is checked with recorded times and orders.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

PATIENCE = 60.0  # seconds until something counts as never


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
        pause(0.02)


def pause(seconds: float) -> None:
    """Lets real threads and processes run for some seconds."""
    threading.Event().wait(seconds)
