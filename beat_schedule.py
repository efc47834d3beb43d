"""The periodic loops, computed from what the enabled controllers declare.

Each entry sends a message to the ticks' queue that expires after one interval;
the tick itself decides, under its loop's lease, whether there is a pass to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kcm.manager.housekeeping import periods
from kcm.manager.loop_names import loop_name
from kcm.reconcile.contract import Controller

TICKS_QUEUE = "ticks"


def beat_schedule(controllers: Sequence[Controller]) -> dict[str, dict[str, Any]]:
    """Celery's `beat_schedule` for these controllers and kcm's own housekeeping."""
    loops = {
        loop_name(controller, tick): tick.every
        for controller in controllers
        for tick in controller.ticks()
    }
    return {name: _entry(name, every) for name, every in {**loops, **periods()}.items()}


def _entry(name: str, every: float) -> dict[str, Any]:
    return {
        "task": "kcm.tick",
        "schedule": every,
        "args": (name, 0.0),  # the scheduler puts the due time here
        "options": {"queue": TICKS_QUEUE, "expires": every},
    }
