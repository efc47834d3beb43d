"""The schedule of beat: the periodic loops of the enabled controllers, and housekeeping.

Each entry sends a message to the queue for ticks, which expires after one interval. The worker
decides, under the loop's lease, whether to run a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kcm.kubelet import HOUSEKEEPING_PERIOD as KUBELET_HOUSEKEEPING_PERIOD
from kcm.manager.ticks.housekeeping import loop_periods
from kcm.reconcile.contract import Controller
from workers.broker import KUBELET_HOUSEKEEPING, kubelet_fanout

TICKS_QUEUE = "ticks"


def beat_schedule(controllers: Sequence[Controller]) -> dict[str, dict[str, Any]]:
    """Returns Celery's `beat_schedule` for these controllers and kcm's own housekeeping."""
    entries = {name: _entry(name, every) for name, every in loop_periods(controllers).items()}
    return {**entries, KUBELET_HOUSEKEEPING: _to_every_kubelet()}


def tick_task_name(loop: str) -> str:
    """Returns the name of a periodic loop's Celery task."""
    return f"kcm.{loop}"


def _to_every_kubelet() -> dict[str, Any]:
    """Returns the entry whose message reaches every node by a fanout exchange.

    A kubelet that gets no messages does its housekeeping by its own clock.
    """
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
