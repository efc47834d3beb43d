"""The periodic loops, computed from what the enabled controllers declare.

Each entry sends a message to the ticks' queue that expires after one interval;
the tick itself decides, under its loop's lease, whether there is a pass to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kcm.component.housekeeping import periods
from kcm.component.loop_names import loop_name
from kcm.kubelet import HOUSEKEEPING_PERIOD as KUBELET_HOUSEKEEPING_PERIOD
from kcm.reconcile.contract import Controller
from workers.broker import KUBELET_HOUSEKEEPING, kubelet_fanout

TICKS_QUEUE = "ticks"


def beat_schedule(controllers: Sequence[Controller]) -> dict[str, dict[str, Any]]:
    """Celery's `beat_schedule` for these controllers and kcm's own housekeeping."""
    entries = {name: _entry(name, every) for name, every in loop_periods(controllers).items()}
    return {**entries, KUBELET_HOUSEKEEPING: _to_every_kubelet()}


def loop_periods(controllers: Sequence[Controller]) -> dict[str, float]:
    """Returns the periodic loops of these controllers and kcm's own, with periods in seconds."""
    loops = {
        loop_name(controller, tick): tick.every
        for controller in controllers
        for tick in controller.ticks()
    }
    return {**loops, **periods()}


def tick_task_name(loop: str) -> str:
    """Returns the Celery task of a periodic loop."""
    return f"kcm.{loop}"


def _to_every_kubelet() -> dict[str, Any]:
    """Reaches each node by a fanout exchange, and nobody when there is none. A kubelet that
    hears nothing keeps the time itself."""
    queue = kubelet_fanout()
    return {
        "task": KUBELET_HOUSEKEEPING,
        "schedule": KUBELET_HOUSEKEEPING_PERIOD,
        "args": (KUBELET_HOUSEKEEPING, 0.0),
        "options": {
            "queue": queue,
            "declare": [queue.exchange],
            "expires": KUBELET_HOUSEKEEPING_PERIOD,
        },
    }


def _entry(name: str, every: float) -> dict[str, Any]:
    return {
        "task": tick_task_name(name),
        "schedule": every,
        "args": (0.0,),  # the scheduler puts the due time here
        "options": {"queue": TICKS_QUEUE, "expires": every},
    }
