"""The kubelet as a Celery worker: `celery -A workers.kubelet worker -P threads`.

The kubelet does not need Celery: it keeps its pod work in its own memory, and runs the work of a
pod itself if no task has taken it for 200 ms, also while Redis is unavailable. A message on the
node's own queue says that a pod waits; the task that it starts does the pod's work, so that Flower
shows what a node does. Beat's housekeeping message reaches every node by a fanout exchange.

`kcm kubelet` passes its flags on in the environment variable KCM_KUBELET_FLAGS (JSON).
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable
from typing import Any

import structlog
from celery import Celery, bootsteps, signals
from kombu import Queue

from kcm import errors
from kcm.kubelet.assembly.process import KubeletProcess
from kcm.kubelet.flags import FLAGS_VARIABLE, parse_flags
from kcm.kubelet.options import SIMULATED
from kcm.kubelet.types import full_name
from kcm.logs import configure
from kcm.loops import Loop, ThreadHost, Turn
from kcm.settings import Settings
from kcm.simulation.runtime.services import new_simulated_services
from workers import refusals, remotecontrol
from workers.broker import KUBELET_HOUSEKEEPING as HOUSEKEEPING
from workers.broker import broker_tls, broker_url, kubelet_fanout, transport_options

log = structlog.get_logger("kcm.kubelet")

APP_NAME = "kcm-kubelet"
SYNC_TASK = "kcm.kubelet.sync_pod"
MOST_WAITING = 1000  # messages; for the others the kubelet's own threads do the work
EXPIRES = 30.0  # seconds, after which the kubelet has done the work itself


def queue_of(node: str) -> str:
    """Returns the name of a node's queue."""
    return f"kcm.kubelet.{node}"


class Waker(Loop):
    """Sends a message for each pod that waits."""

    def __init__(self, app: Celery, queue: str, name_pod: Callable[[str], str] = str) -> None:
        """`name_pod` returns the name under which Flower shows the pod with a uid."""
        super().__init__("kcm-waker")
        self._app = app
        self._queue = queue
        self._name_pod = name_pod
        self._waiting: deque[str] = deque(maxlen=MOST_WAITING)

    def notify(self, uid: str) -> None:
        """Sends a message soon for the pod with this uid. Never blocks."""
        self._waiting.append(uid)
        self.wake()

    def turn(self, patience: float) -> Turn:
        """Sends messages. When one cannot be sent, the others are dropped: the pods' workers have
        threads of their own as well.
        """
        try:
            while self._waiting:
                self._send(self._waiting.popleft())
        finally:
            self._waiting.clear()
        return Turn()

    def _send(self, uid: str) -> None:
        self._app.send_task(
            SYNC_TASK,
            args=(uid,),
            argsrepr=self._name_pod(uid),
            queue=self._queue,
            expires=EXPIRES,
            retry=False,
        )


class KubeletStep(bootsteps.StartStopStep):  # type: ignore[misc] # celery has no types
    """Runs the kubelet as long as the worker runs. It starts before the worker connects to the
    broker.
    """

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, **kwargs: Any) -> None:
        self._host = ThreadHost()
        super().__init__(worker, **kwargs)

    def start(self, worker: Any) -> None:
        app = worker.app
        waker = Waker(app, queue_of(app.kcm_options.node_name), lambda uid: _name_pod(app, uid))
        process = KubeletProcess(
            app.kcm_settings,
            app.kcm_options,
            runtimes={SIMULATED: new_simulated_services},
            notify_work=waker.notify,
        )
        app.kcm_kubelet = process
        process.start()
        self._host.run(waker)

    def stop(self, worker: Any) -> None:
        self._host.stop()
        process = worker.app.kcm_kubelet
        if process is not None:
            worker.app.kcm_kubelet = None
            process.stop()

    close = terminate = stop


def _name_pod(app: Any, uid: str) -> str:
    process = app.kcm_kubelet
    pod = process.kubelet.get_pod(uid) if process is not None else None
    return full_name(pod) if pod is not None else uid


def create_app(settings: Settings | None = None, flags: dict[str, Any] | None = None) -> Celery:
    """Returns the Celery app of one node's kubelet. Raises ConfigurationError."""
    settings = settings or Settings()
    flags = flags if flags is not None else json.loads(os.environ.get(FLAGS_VARIABLE) or "{}")
    if "node_name" not in flags:
        raise errors.ConfigurationError(
            f"{FLAGS_VARIABLE} is not set: start this with `kcm kubelet`"
        )
    options = parse_flags(flags)
    app = Celery(APP_NAME, set_as_current=False)
    queue = queue_of(options.node_name)
    app.conf.update(
        broker_url=broker_url(settings),
        broker_use_ssl=broker_tls(settings),
        broker_transport_options=transport_options(settings, (SYNC_TASK, HOUSEKEEPING)),
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_channel_error_retry=True,
        task_ignore_result=True,
        task_queues=[Queue(queue, routing_key=queue), kubelet_fanout(options.node_name)],
        task_default_queue=queue,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        timezone="UTC",
    )
    app.kcm_settings, app.kcm_options, app.kcm_kubelet = settings, options, None
    app.steps["worker"].add(KubeletStep)
    _register(app)
    remotecontrol.connect()
    refusals.allow_root()
    signals.setup_logging.connect(
        lambda **_: configure(settings.log_format, settings.log_level), weak=False
    )
    return app


def _register(app: Celery) -> None:
    def sync_pod(uid: str) -> None:
        """Does the waiting work of a pod, unless it has been done already."""
        if app.kcm_kubelet is not None:
            app.kcm_kubelet.kubelet.sync_waiting_pod(uid)

    def housekeeping(_: str, scheduled_at: float) -> None:
        """Requests a clean-up of this node."""
        if app.kcm_kubelet is not None:
            app.kcm_kubelet.kubelet.request_housekeeping()

    app.task(name=SYNC_TASK, shared=False)(sync_pod)
    # Without events: they would come thirty times a minute, and hide other tasks in Flower.
    app.task(name=HOUSEKEEPING, shared=False, send_events=False)(housekeeping)


def __getattr__(name: str) -> Celery:
    """Returns the app, which is created when Celery accesses it: its flags are in the
    environment.
    """
    if name == "app":
        globals()["app"] = create_app()
        return globals()["app"]
    raise AttributeError(name)
