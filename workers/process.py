"""The state of one worker process: connections, caches and lease renewals.

In the prefork pool each child has its own, created after the fork. The parent has no connection,
cache or thread of kcm, since a child that inherits a held lock may wait for it forever. A child
must be up within seconds, so the caches fill in a thread and the first task waits for them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import structlog
from celery import Celery

from kcm import errors
from kcm.loops import start_thread
from kcm.manager.context.context import ControllerContext, build_context
from kcm.manager.ticks.runner import TickRunner
from kcm.reconcile.metrics import PASS
from kcm.reconcile.runner import Runner

log = structlog.get_logger("kcm.worker")

# seconds that the first task waits for the caches; the reaper frees its keys earlier
SYNC_TIMEOUT = 30.0


@dataclass(frozen=True)
class _Started:
    """What a process has once its caches are full."""

    context: ControllerContext
    ticks: TickRunner
    runners: Mapping[str, Runner]


class WorkerProcess:
    """The state of one process that runs tasks."""

    def __init__(self, build: Callable[[], ControllerContext]) -> None:
        """`build` may ask another API server which kinds it serves, so it is called in a thread."""
        self._build = build
        self._context: ControllerContext | None = None
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._failure: Exception | None = None
        self._started: _Started | None = None
        self._thread = start_thread("kcm-start", self._start)

    def _start(self) -> None:
        """Fills the caches, however long Redis or another API server is unavailable."""
        while not self._stopping.is_set():
            try:
                self._start_context()
                break
            except errors.Temporary as error:
                log.warning("the store is not ready, trying again", error=str(error))
                self._stopping.wait(0.5)
            except Exception as error:  # noqa: BLE001 - reported by the first task, which needs it
                self._failure = error
                break
        self._ready.set()

    def _start_context(self) -> None:
        context = self._context = self._context or self._build()
        if self._stopping.is_set():
            context.shutdown()
            return
        context.start()
        runners = {c.short_name: context.runner(c) for c in context.controllers}
        self._started = _Started(context, TickRunner(context), runners)

    def _wait_ready(self) -> _Started:
        if not self._ready.wait(SYNC_TIMEOUT):
            raise errors.CacheNotSynced(f"caches did not fill within {SYNC_TIMEOUT:g} s")
        if self._failure is not None:
            raise self._failure
        if self._started is None:
            raise errors.CacheNotSynced("the process was stopped before its caches were full")
        return self._started

    def sync(self, short_name: str, key: str) -> int:
        """Handles a wake-up for a controller, see `Runner.run`."""
        ready = self._wait_ready()
        return ready.runners[short_name].run(key) if ready.context.may_work() else 0

    def tick(self, loop: str, scheduled_at: float) -> bool:
        """Runs one pass of a loop, see `TickRunner.run`."""
        ready = self._wait_ready()
        clock, result = ready.context.clock, "error"
        started = clock.monotonic()
        try:
            may_run = ready.context.may_work()
            ran = may_run and ready.ticks.run(loop, scheduled_at) is not None
            result = "success" if ran else "skipped"
        finally:
            seconds = clock.monotonic() - started
            ready.context.metrics.observe(PASS, loop, result, seconds)
        return ran

    def stop(self) -> None:
        """Abandons keys that have not started, stops the threads, and closes the connections."""
        self._stopping.set()
        if self._context is not None:
            self._context.shutdown()


class CurrentProcess:
    """Has the state of the process that asks, for the tasks of one app.

    It is created at the first call, and again after a fork.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: tuple[int, WorkerProcess] | None = None
        self._node: tuple[str, tuple[str, ...]] = ("", ())

    def describe(self, name: str, queues: Sequence[str]) -> None:
        """Records the Celery node's name and the queues that it consumes, for `kcm status`.

        It is called before the fork, so that children have it.
        """
        self._node = (name, tuple(queues))

    def get(self) -> WorkerProcess:
        """Returns this process's state."""
        with self._lock:
            if self._process is None or self._process[0] != os.getpid():
                name, queues = self._node
                build = partial(build_context, name=name, queues=queues)
                self._process = (os.getpid(), WorkerProcess(build))
            return self._process[1]

    def shutdown(self) -> None:
        """Stops this process's state, if it has one."""
        with self._lock:
            if self._process is not None and self._process[0] == os.getpid():
                self._process[1].stop()
            self._process = None


def process_of(app: Celery) -> CurrentProcess:
    """Returns the process of a kcm app, which `create_app` gives it."""
    process: CurrentProcess = app.kcm_process
    return process
