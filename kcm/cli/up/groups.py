"""Ends process groups: the leader is asked first, then the group is killed.

Only a group's leader gets SIGTERM: a Celery worker ends its pool children and its manager itself,
after they have finished what they run. Standard library only, since the watchdog must be up in no
time.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

POLL = 0.02  # seconds between looks


def alive(group: int) -> bool:
    """Reports whether any process of the group is left, one that nobody has waited for
    included.
    """
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def ask(leader: int) -> None:
    """Asks a group's leader to end."""
    with suppress(ProcessLookupError):
        os.kill(leader, signal.SIGTERM)


def kill(group: int) -> None:
    """Kills whatever is left of a group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def end(
    groups: Sequence[int],
    patience: float,
    reap: Callable[[], object] = lambda: None,
    hurry: Callable[[], bool] = lambda: False,
) -> list[int]:
    """Ends groups, and returns those that had to be killed.

    It asks their leaders, waits up to `patience` seconds, and kills what is left. `reap` is called
    between looks, so that a parent can wait for its children. `hurry` ends the waiting at once.
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
