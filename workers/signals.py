"""Handlers of Celery's signals: they refuse processes that cannot work, set up logging, warm up
each process that runs tasks, and stop it cleanly.

Signals belong to the process, not to an app, so workers of other apps are left alone.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from types import FrameType
from typing import Any

import structlog
from billiard.process import active_children
from celery import current_app, signals

from kcm import errors
from kcm.api.scheme import build_schemas
from kcm.logs import configure
from kcm.loops import start_thread
from kcm.redisio import RedisIO
from kcm.redisio.broker_keys import delete_wrong_keys
from kcm.settings import Settings
from workers import refusals
from workers.bootsteps import runs_in_own_process
from workers.process import process_of

log = structlog.get_logger("kcm.worker")

APP_NAME = "kcm"
LONGEST_STOP = 7.0  # seconds; supervisors commonly kill after ten


def connect() -> None:
    """Connects the handlers. Further calls do nothing."""
    refusals.allow_root()
    signals.setup_logging.connect(_configure_logging, dispatch_uid="kcm-logging")
    signals.celeryd_init.connect(_refuse_worker, dispatch_uid="kcm-refuse-worker")
    signals.beat_init.connect(_refuse_beat, dispatch_uid="kcm-refuse-beat")
    signals.celeryd_after_setup.connect(_prepare, dispatch_uid="kcm-prepare")
    signals.worker_process_init.connect(_warm_up, dispatch_uid="kcm-child-init")
    signals.worker_process_shutdown.connect(_stop, dispatch_uid="kcm-child-stop")
    signals.worker_ready.connect(_worker_ready, dispatch_uid="kcm-ready")
    signals.worker_shutting_down.connect(_limit_stop, dispatch_uid="kcm-limit-stop")
    signals.worker_shutdown.connect(_stop, dispatch_uid="kcm-stop")


def _configure_logging(**_: Any) -> None:
    """Gives Celery's lines the form of kcm's."""
    settings = Settings()
    configure(settings.log_format, settings.log_level)


def _refuse_worker(instance: Any = None, options: Any = None, **_: Any) -> None:
    if instance.app.main == APP_NAME:
        refusals.refuse_worker(instance.app, options)


def _refuse_beat(sender: Any = None, **_: Any) -> None:
    if sender.app.main == APP_NAME:
        refusals.refuse_other_brokers()


def _prepare(sender: str = "", instance: Any = None, **_: Any) -> None:
    queues = sorted(instance.app.amqp.queues.consume_from)
    if instance.app.main == APP_NAME:
        process_of(instance.app).describe(sender, queues)
        build_schemas()
        _delete_wrong_keys(queues)


def _delete_wrong_keys(queues: Sequence[str]) -> None:
    """Deletes keys of the broker of a wrong type, which would stop a worker at each start."""
    io = RedisIO(Settings(), name="kcm/start", patient=False)
    try:
        delete_wrong_keys(io, queues)
    except errors.KcmError as error:
        log.warning("the broker's keys were not checked", error=str(error))
    finally:
        io.close()  # before the pool forks


def _warm_up(**_: Any) -> None:
    if current_app.main == APP_NAME:
        process_of(current_app).get()


def _worker_ready(sender: Any = None, **_: Any) -> None:
    if sender.app.main != APP_NAME:
        return
    # The prefork parent must have no threads of kcm's; other pools run tasks in this process.
    if runs_in_own_process(sender.controller):
        start_thread("kcm-warm-up", process_of(sender.app).get)


def _limit_stop(**_: Any) -> None:
    """Ends the worker after LONGEST_STOP seconds, if it has not ended by itself until then.

    Where Redis does not answer, Celery's farewells wait for it, one after the other, for a minute
    or without end. Nothing is lost: what the children were doing is done again by others.
    """
    if current_app.main != APP_NAME:
        return
    signal.signal(signal.SIGALRM, _end_now)  # it interrupts what waits, in the main thread
    signal.setitimer(signal.ITIMER_REAL, LONGEST_STOP)


def _end_now(number: int, frame: FrameType | None) -> None:
    log.warning("the worker could not stop in time, and ends now", seconds=LONGEST_STOP)
    for child in active_children():
        os.kill(child.pid, signal.SIGKILL)
    os._exit(0)


def _stop(sender: Any = None, **_: Any) -> None:
    app = getattr(sender, "app", current_app)  # a child's own signal has no sender
    if app.main == APP_NAME:
        process_of(app).shutdown()
