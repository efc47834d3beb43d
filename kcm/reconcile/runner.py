"""The runner: from a wake-up to finished keys. The only code that touches the queue.

One function turns a sync's end into the queue's outcome, the log line and the
error that Flower shows. Guarantees: a key is finished exactly by the run that
holds it; a key whose worker dies, or whose lease is lost, comes back through
the reaper; a sync starts only when its caches hold every earlier write (D5).

Modelled after controller-runtime pkg/internal/controller/controller.go.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from typing import Protocol

import structlog

from kcm import errors
from kcm.api import scheme
from kcm.clock import Clock
from kcm.reconcile.caches import Caches, declared_models
from kcm.reconcile.contract import Controller
from kcm.reconcile.executor import PlanExecutor
from kcm.reconcile.metrics import SYNC, SyncMetrics
from kcm.reconcile.plan import Event, Plan
from kcm.reconcile.plan import Outcome as PlanOutcome
from kcm.store import Store
from kcm.workqueue import Lease, Outcome, Renewer, Result, WorkQueue

log = structlog.get_logger("kcm.reconcile")

# How controller-runtime's controller_runtime_reconcile_total names the ends of a sync.
_RESULTS = {Result.DONE: "success", Result.RETRY: "error", Result.REQUEUE: "requeue_after"}

FRESHNESS_TIMEOUT = 5.0  # seconds to wait for the caches before a sync is retried


class Recorder(Protocol):
    """Where Events go."""

    def record(self, event: Event, component: str) -> None:
        """Take an Event; it is written soon, or dropped when there are too many."""
        ...


class SyncFailed(errors.KcmError):
    """Some keys failed; the queue retries them. The message names them and says why."""


class Runner:
    """Runs one controller's keys."""

    def __init__(
        self,
        controller: Controller,
        *,
        store: Store,
        caches: Caches,
        queue: WorkQueue,
        renewer: Renewer,
        recorder: Recorder,
        clock: Clock,
        stop: threading.Event,
        metrics: SyncMetrics | None = None,
    ) -> None:
        self.controller = controller
        self._caches = caches
        self._barrier = caches.factory.freshness_barrier()
        self._resources = [scheme.resource_of(model) for model in declared_models(controller)]
        self._queue = queue
        self._renewer = renewer
        self._recorder = recorder
        self._executor = PlanExecutor(store)
        self._clock = clock
        self._stop = stop
        self._metrics = metrics

    def run(self, named: str, max_keys: int = 8) -> int:
        """Answer a wake-up: take keys, `named` first, and sync them; returns how many.

        Raises: SyncFailed when keys failed, StoreUnavailable when Redis is away.
        """
        leases = self._queue.take(named, max_keys)
        if not leases:
            return 0
        self._renewer.hold(*leases)
        try:
            failed = self._sync_all(leases)
        finally:
            self._renewer.release(*leases)
        if failed:
            raise SyncFailed("; ".join(f"{key}: {error}" for key, error in failed))
        return len(leases)

    def _sync_all(self, leases: Sequence[Lease]) -> list[tuple[str, Exception]]:
        failed = []
        for number, lease in enumerate(leases):
            if self._stop.is_set():
                self._queue.finish_all([(left, Outcome.abandon()) for left in leases[number:]])
                break
            error = self._sync(lease)
            if error is not None:
                failed.append((lease.key, error))
        return failed

    def _sync(self, lease: Lease) -> Exception | None:
        """Sync one key and finish it; returns what made it fail."""
        started = self._clock.monotonic()
        line = log.bind(
            controller=self.controller.name, key=lease.key, reconcile_id=uuid.uuid4().hex[:8]
        )
        try:
            outcome, error = self._reconcile(lease)
        except errors.Fenced as lost:
            line.warning("sync stopped: the key was taken away", error=str(lost))
            self._count("fenced", started)
            return lost
        except Exception as raised:  # noqa: BLE001 - a crash in a controller is that key's failure
            outcome, error = Outcome.retry(), raised
            if not isinstance(raised, errors.KcmError):
                line = line.bind(exc_info=raised)
        finished = self._queue.finish(lease, outcome)
        if finished.lost:
            line.warning("sync ended after its key was taken away")
        seconds = self._count(_RESULTS[outcome.result], started)
        if error is None:
            line.debug("synced", seconds=seconds, requeue_after=finished.delay)
        else:
            line.warning("sync failed", seconds=seconds, error=str(error), retry_in=finished.delay)
        return error

    def _count(self, result: str, started: float) -> float:
        seconds = round(self._clock.monotonic() - started, 6)
        if self._metrics is not None:
            self._metrics.observe(SYNC, self.controller.name, result, seconds)
        return seconds

    def _reconcile(self, lease: Lease) -> tuple[Outcome, Exception | None]:
        self._barrier.wait(self._resources, FRESHNESS_TIMEOUT, self._stop)
        view = self._caches.view(self.controller, self._clock.now())
        plan = self.controller.reconcile(lease.key, view)
        result = self._executor.execute(plan, lease.fence)
        self._record(plan, result)
        error = plan.error or result.error
        if error is not None:
            return Outcome.retry(), error
        if plan.requeue_after is not None:
            return Outcome.requeue_after(plan.requeue_after), None
        return Outcome.done(), None

    def _record(self, plan: Plan, result: PlanOutcome) -> None:
        derived = plan.report(result) if plan.report is not None else ()
        for event in (*plan.events, *derived):
            self._recorder.record(event, self.controller.name)
