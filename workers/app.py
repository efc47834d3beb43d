"""The Celery app: one task per controller, one per periodic loop, and the steps of the worker."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from celery import Celery, bootsteps

from kcm.manager.context.selection import create_enabled
from kcm.options.manager import ManagerOptions
from kcm.settings import Settings
from workers import remotecontrol, signals
from workers.bootsteps import ManagerStep, WatchManagerStep
from workers.config import configuration
from workers.failovers import FollowMasterStep
from workers.process import CurrentProcess
from workers.tasks import register_tasks
from workers.waking import WakeLoopStep


def create_app(settings: Settings | None = None, options: ManagerOptions | None = None) -> Celery:
    """Returns a Celery app for these settings.

    It opens no connection and starts no thread, since the worker's parent process forks its
    children.
    """
    settings = settings or Settings()
    options = options or ManagerOptions.load()
    controllers = create_enabled(options)
    app = Celery(signals.APP_NAME, set_as_current=False)
    app.kcm_process = CurrentProcess()
    app.conf.update(configuration(settings, controllers))
    app.steps["worker"].add(ManagerStep)
    app.steps["consumer"].add(WatchManagerStep)
    app.steps["consumer"].add(BatchEventsStep)
    app.steps["consumer"].add(FollowMasterStep)
    app.steps["consumer"].add(WakeLoopStep)
    register_tasks(app, controllers)
    signals.connect()
    remotecontrol.connect()
    return app


# --- A boot step that sends Celery's task events a few times a second.
#
# Celery sends the events of a task immediately: a message to the broker before the task reaches a
# child, and two more when it has ended. For Flower it is enough to get them a moment later. Events
# that wait when the worker dies are lost, as those of a lost connection.


SEND_EVERY = 0.25  # seconds
BUFFER_LIMIT = 500  # the most events that are collected before they are sent


class BatchEventsStep(bootsteps.StartStopStep):  # type: ignore[misc] # celery has no types
    """Makes the event dispatcher of a new connection collect task events."""

    requires = ("celery.worker.consumer.events:Events",)

    def start(self, consumer: Any) -> None:
        dispatcher = consumer.event_dispatcher
        if dispatcher is None:
            return
        dispatcher.send = partial(_send_once, dispatcher.send)
        if consumer.hub is None:  # other pools send each event at once
            return
        is_due = False

        def flush() -> None:
            nonlocal is_due
            is_due = False
            consumer.on_send_event_buffered()

        def flush_soon() -> None:
            nonlocal is_due
            if not is_due:
                is_due = True
                consumer.hub.call_later(SEND_EVERY, flush)

        dispatcher.buffer_limit = BUFFER_LIMIT
        dispatcher.on_send_buffered = flush_soon


def _send_once(send: Callable[..., Any], *args: Any, **fields: Any) -> Any:
    """Sends an event; if that fails, it is sent after the worker has connected again.

    Celery's heartbeats are tried again without end in the event loop, which sees no signal to stop
    meanwhile.
    """
    return send(*args, **{**fields, "retry": False})


app = create_app()
