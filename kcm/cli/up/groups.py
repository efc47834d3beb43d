"""Stops process groups: sends SIGTERM to their leaders, and kills what is left after a while.

Only the leader gets SIGTERM: a Celery worker stops its pool and its manager itself, after they have
finished their syncs. This module uses the standard library only, so that the watchdog starts
quickly.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

POLL = 0.02  # seconds between checks


def alive(group: int) -> bool:
    """Reports whether any process of the group is left, zombies included."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def ask(leader: int) -> None:
    """Sends SIGTERM to the leader of a group."""
    with suppress(ProcessLookupError):
        os.kill(leader, signal.SIGTERM)


def kill(group: int) -> None:
    """Kills all processes of a group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def stop(
    groups: Sequence[int],
    patience: float,
    reap: Callable[[], object] = lambda: None,
    hurry: Callable[[], bool] = lambda: False,
) -> list[int]:
    """Stops groups, and returns those that had to be killed.

    It sends SIGTERM to their leaders, waits up to `patience` seconds, and kills what is left.
    `reap` is called meanwhile, so that a parent can wait for its children. When `hurry` returns
    True, it kills at once.
    """
    for group in groups:
        ask(group)
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and not hurry():
        reap()
        if not any(alive(group) for group in groups):
            return []
        time.sleep(POLL)
    left = [group for group in groups if alive(group)]
    for group in left:
        kill(group)
    reap()
    return left
