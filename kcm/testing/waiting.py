"""Waiting in real time for what other threads and processes do.

How long things take on a quiet machine is no test's business: a busy one may take many times
as long. What must not happen early is a matter of stamps and orders, not of patience.
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
    """Wait until `holds`. `words` add what may explain why it never did."""
    deadline = time.monotonic() + within
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come to pass within {within:g} s {words()}")
        pause(0.02)


def pause(seconds: float) -> None:
    """Let real threads and processes go on."""
    threading.Event().wait(seconds)
