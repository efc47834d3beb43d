"""The tasks: `kcm.<controller>.sync` for each controller, and `kcm.tick` for periodic loops.

A sync's argument is the key that its message was sent for. Under backlog the run takes more keys
(`default/web +7` in Flower). A failed sync raises, so that Flower shows it red; the queue, not
Celery, retries it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from celery import Celery

from kcm.reconcile.contract import Controller
from workers.process import current

TICK_TASK = "kcm.tick"


def register_tasks(app: Celery, controllers: Sequence[Controller]) -> None:
    """Gives the app a task per controller and the tick task. No other app gets them."""
    for controller in controllers:
        _register_sync(app, controller.short_name)
    app.task(name=TICK_TASK, shared=False)(run_tick)


def _register_sync(app: Celery, short_name: str) -> None:
    def sync(key: str, *more: Any) -> None:
        current().sync(short_name, key)

    sync.__doc__ = f"Sync waiting keys of {short_name}, the named one first."
    app.task(name=task_name(short_name), shared=False)(sync)


def task_name(short_name: str) -> str:
    """Returns the Celery task of a controller."""
    return f"kcm.{short_name}.sync"


def run_tick(loop: str, scheduled_at: float) -> None:
    """Runs one pass of the periodic loop that was due at `scheduled_at` (Unix seconds)."""
    current().tick(loop, scheduled_at)
