"""The Celery app: one task per controller, one per periodic loop, and the steps of the worker."""

from __future__ import annotations

from celery import Celery

from kcm.manager.context.selection import create_enabled
from kcm.options.manager import ManagerOptions
from kcm.settings import Settings
from workers import logs, remotecontrol, signals
from workers.bootsteps import ManagerStep, WatchManagerStep
from workers.config import configuration
from workers.events import BatchEventsStep
from workers.process import CurrentProcess
from workers.tasks import register_tasks


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
    register_tasks(app, controllers)
    logs.connect()
    signals.connect()
    remotecontrol.connect()
    return app


app = create_app()
