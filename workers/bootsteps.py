"""Boot steps that run the manager beside the worker's tasks.

A worker whose tasks run in its own process, in the pools `threads` and `solo`, is the manager as
well (design 0082). A worker with children has it as a child process (design 0031).

The worker's blueprint owns the manager's process. The consumer's blueprint sets the timer that
restarts the manager, because its steps start again at every reconnect, which clears the worker's
timers. So `celery worker` and `celery beat` alone are a working system. With
`KCM_WORKER_MANAGER=false` the worker starts no manager, for use with `kcm manager`. The manager
stops by itself when the worker is gone: it reads a pipe whose other end only the worker has.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import structlog
from celery import bootsteps, signals
from celery.concurrency.thread import TaskPool as ThreadPool

from kcm.settings import Settings
from workers.process import process_of

log = structlog.get_logger("kcm.worker")

CHECK_EVERY = 1.0  # seconds between checks of the manager's process
STOP_TIMEOUT = 3.0  # seconds for the manager to release its leases


class ManagerProcess:
    """The manager as a child process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def ensure_running(self) -> None:
        """Starts the manager if it has not been started, or has exited by itself."""
        if self._stopped:  # the consumer's timer may still fire while the worker shuts down
            return
        if self._process is not None:
            code = self._process.poll()
            if code is None:
                return
            log.warning("the manager has exited, starting it again", exit_code=code)
            self._close_pipe()
        self._process = subprocess.Popen(
            # Several workers on a host each have a manager: one serves the port, and the others
            # wait.
            [sys.executable, "-m", "kcm.manager", "--stop-with-stdin", "--secure-port-wait"],
            stdin=subprocess.PIPE,
            env={**os.environ, "KCM_PARENT": "celery-worker"},
        )

    def ask(self) -> None:
        """Asks the manager to stop."""
        self._stopped = True
        if self._process is not None:
            self._close_pipe()
            self._process.terminate()

    def stop(self) -> None:
        """Asks the manager to stop, and kills it if it has not within STOP_TIMEOUT seconds."""
        self.ask()
        if self._process is None:
            return
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _close_pipe(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()


def runs_in_own_process(worker: Any) -> bool:
    """Reports whether the worker runs its tasks in its own process, and not in its children."""
    return not getattr(worker.pool_cls, "uses_semaphore", False)


def count_threads(worker: Any) -> int:
    """Returns how many tasks the worker runs at a time. `solo` runs one, whatever its concurrency
    is.
    """
    return int(worker.concurrency) if issubclass(worker.pool_cls, ThreadPool) else 1


class ManagerStep(bootsteps.StartStopStep):  # type: ignore[misc] # celery has no types
    """Runs the manager as long as the worker runs."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, **kwargs: Any) -> None:
        worker.kcm_manager = None
        if Settings().worker_manager:
            if runs_in_own_process(worker):
                process_of(worker.app).manage(count_threads(worker))
            else:
                worker.kcm_manager = ManagerProcess()
        if worker.kcm_manager is not None:
            signals.worker_shutdown.connect(self._shut_down, weak=False)
        super().__init__(worker, **kwargs)

    def start(self, worker: Any) -> None:
        if worker.kcm_manager is not None:
            worker.kcm_manager.ensure_running()

    def close(self, worker: Any) -> None:
        # It is only asked here, so that manager and pool stop at the same time. The handler of
        # worker_shutdown waits for the manager.
        if worker.kcm_manager is not None:
            worker.kcm_manager.ask()

    stop = terminate = close

    def _shut_down(self, sender: Any, **_: Any) -> None:
        sender.kcm_manager.stop()


class WatchManagerStep(bootsteps.StartStopStep):  # type: ignore[misc] # celery has no types
    """Restarts the manager's process if it has exited, while the worker is connected."""

    requires = ("celery.worker.consumer.connection:Connection",)

    def start(self, consumer: Any) -> None:
        manager = getattr(consumer.controller, "kcm_manager", None)
        if manager is not None:
            consumer.timer.call_repeatedly(CHECK_EVERY, manager.ensure_running)
