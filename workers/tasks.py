"""The tasks: `kcm.<controller>.sync` for each controller, and one for each periodic loop.

The latter have names such as `kcm.nodelifecycle.monitorNodeStatus`. The argument of a sync is the
key for which its message was sent; Flower shows `default/web +7` if seven more keys waited then.
The run takes more keys as long as any wait, for up to 0.25 s, and may wait for others (design
0084). A failed sync raises, so that Flower shows it as failed; the queue, not Celery, retries it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from celery import Celery

from beat_schedule import tick_task_name
from kcm.manager.ticks.housekeeping import loop_periods
from kcm.reconcile.contract import Controller
from workers.process import process_of


def register_tasks(app: Celery, controllers: Sequence[Controller]) -> None:
    """Adds a task per controller and one per periodic loop to the app, and to no other app."""
    for controller in controllers:
        _register_sync(app, controller.short_name)
    for loop in loop_periods(controllers):
        _register_tick(app, loop)


def list_task_names(controllers: Sequence[Controller]) -> list[str]:
    """Returns the names of all tasks."""
    syncs = [task_name(controller.short_name) for controller in controllers]
    return [*syncs, *map(tick_task_name, loop_periods(controllers))]


def _register_sync(app: Celery, short_name: str) -> None:
    def sync(key: str, *more: Any) -> None:
        process_of(app).get().sync(short_name, key)

    sync.__doc__ = f"Syncs waiting keys of {short_name}, the named one first."
    app.task(name=task_name(short_name), shared=False)(sync)


def task_name(short_name: str) -> str:
    """Returns the name of a controller's Celery task."""
    return f"kcm.{short_name}.sync"


def _register_tick(app: Celery, loop: str) -> None:
    def run_pass(scheduled_at: float) -> None:
        process_of(app).get().tick(loop, scheduled_at)

    run_pass.__doc__ = f"Runs the pass of {loop} that was due at this time (Unix seconds)."
    app.task(name=tick_task_name(loop), shared=False)(run_pass)
