"""The state of one worker process: connections, caches and lease renewals.

In the prefork pool each child has its own, created after the fork. The parent has no connection,
cache or thread of kcm, since a child that inherits a held lock may wait for it forever. A child
must be up within seconds, so the caches fill in a thread and the first task waits for them.

Where syncs run in threads of this process, the manager is part of it and shares its caches (design
0082). It leads or waits to lead; the syncs run in either case.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import structlog
from celery import Celery

from kcm import errors
from kcm.coordination.workqueue import Standby
from kcm.loops import start_thread
from kcm.manager.context.context import ControllerContext, build_context
from kcm.manager.ticks.runner import TickRunner
from kcm.options.manager import ManagerOptions
from kcm.reconcile.metrics import PASS
from kcm.reconcile.runner import Runner

if TYPE_CHECKING:
    from kcm.manager.run import ManagerRun

log = structlog.get_logger("kcm.worker")

# seconds that the first task waits for the caches; the reaper frees its keys earlier
SYNC_TIMEOUT = 30.0
RETRY_EVERY = 0.5  # seconds between attempts to start
STOP_TIMEOUT = 3.0  # seconds for a manager to release its leases


@dataclass(frozen=True)
class _Started:
    """What a process has once its caches are full."""

    context: ControllerContext
    ticks: TickRunner
    runners: Mapping[str, Runner]


class WorkerProcess:
    """The state of one process that runs tasks, and with `manages` of the manager beside them."""

    def __init__(self, build: Callable[[], ControllerContext], *, manages: bool = False) -> None:
        """`build` may ask another API server which kinds it serves, so it is called in a thread."""
        self._build = build
        self._manages = manages
        self._context: ControllerContext | None = None
        self._manager: ManagerRun | None = None
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._failure: Exception | None = None
        self._started: _Started | None = None
        self._thread = start_thread("kcm-start", self._start)

    def _start(self) -> None:
        """Fills the caches, however long Redis or another API server is unavailable, and runs the
        manager. A manager that ends, for example since it leads no more, is built anew.
        """
        while not self._stopping.is_set():
            try:
                self._start_context()
                self._ready.set()
                if self._manager is None or self._stopping.is_set():
                    return
                self._run_manager(self._manager)
            except errors.Temporary as error:
                log.warning("the store is not ready, trying again", error=str(error))
                self._stopping.wait(RETRY_EVERY)
            except Exception as error:  # the first task that needs it reports it, too
                log.error("the worker's process cannot start", exc_info=error)
                self._failure = error
                break
        self._ready.set()

    def _start_context(self) -> None:
        if self._context is None:
            self._context = self._build()
            self._manager = _build_manager(self._context) if self._manages else None
        context = self._context
        if self._stopping.is_set():
            context.shutdown()
            return
        context.start()
        runners = {c.short_name: context.runner(c) for c in context.controllers}
        self._started = _Started(context, TickRunner(context), runners)

    def _run_manager(self, manager: ManagerRun) -> None:
        """Runs the manager until it ends, and with it the context. Raises StoreUnavailable."""
        try:
            manager.run()
        finally:
            self._ready.clear()
            self._started = self._context = self._manager = None
        if not self._stopping.is_set():
            log.warning("the manager has ended, starting it again")
            self._stopping.wait(RETRY_EVERY)

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
        manager = self._manager
        if manager is not None:
            manager.ask_to_stop()  # it shuts the context down
            self._thread.join(STOP_TIMEOUT)
        context = self._context
        if context is not None:
            context.shutdown()


def _build_context(name: str, queues: Sequence[str], threads: int | None) -> ControllerContext:
    """`threads` is the number of threads that run tasks beside the manager, None without one."""
    if threads is None:
        return build_context(name=name, queues=queues)
    # Of several workers on a host, one serves the port, and the others wait.
    options = ManagerOptions.load({"secure-port-wait": "true"})
    context = build_context(options=options, kind="manager", name=name, queues=queues)
    context.standby = Standby(threads)
    return context


def _build_manager(context: ControllerContext) -> ManagerRun:
    # Imported only when needed, as importing the HTTP server takes a tenth of a second.
    from kcm.manager.run import ManagerRun  # noqa: PLC0415

    return ManagerRun(context)


class CurrentProcess:
    """Has the state of the process that asks, for the tasks of one app.

    It is created at the first call, and again after a fork.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: tuple[int, WorkerProcess] | None = None
        self._node: tuple[str, tuple[str, ...]] = ("", ())
        self._threads: int | None = None

    def describe(self, name: str, queues: Sequence[str]) -> None:
        """Records the Celery node's name and the queues that it consumes, for `kcm status`.

        It is called before the fork, so that children have it.
        """
        self._node = (name, tuple(queues))

    def manage(self, threads: int) -> None:
        """Makes the manager part of the process that runs the tasks in a number of threads. It is
        called before that.
        """
        self._threads = threads

    def get(self) -> WorkerProcess:
        """Returns this process's state."""
        with self._lock:
            if self._process is None or self._process[0] != os.getpid():
                name, queues = self._node
                build = partial(_build_context, name, queues, self._threads)
                manages = self._threads is not None
                self._process = (os.getpid(), WorkerProcess(build, manages=manages))
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
