"""The runner: after a wake-up it takes keys, syncs them and finishes them, until none are left.

No other code takes or finishes keys. One function turns the end of a sync into the queue's outcome,
the log line and the error that Flower shows. A key is finished only by the run that holds it. The
reaper requeues a key whose worker dies or whose lease is lost. A sync starts only when its caches
hold every earlier write (design 0011). A sync that calls a cloud goes on in a thread of its own, so
that a slow call delays no other key (design 0037).

Modelled after controller-runtime pkg/internal/controller/controller.go.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

import structlog

from kcm import errors
from kcm.clock import Clock
from kcm.coordination.workqueue import (
    Finished,
    KeyLease,
    Renewer,
    Standby,
    SyncResult,
    SyncStatus,
    WorkQueue,
)
from kcm.loops import Host
from kcm.reconcile.caches import Caches
from kcm.reconcile.carrying import CarriedPlan, PlanCarrier
from kcm.reconcile.consistency import Consistency, SyncExpectations
from kcm.reconcile.contract import Controller
from kcm.reconcile.memory import Memory
from kcm.reconcile.metrics import SYNC, SyncMetrics
from kcm.reconcile.plan import Plan
from kcm.store.writes import observing
from kcm.store.writes.observing import Author, Observer, SyncEnd

log = structlog.get_logger("kcm.reconcile")

# The results of a sync, as controller-runtime's controller_runtime_reconcile_total names them.
_RESULTS = {
    SyncStatus.DONE: "success",
    SyncStatus.RETRY: "error",
    SyncStatus.REQUEUE: "requeue_after",
}

FRESHNESS_TIMEOUT = 5.0  # seconds to wait for the caches before a sync is retried
MAX_KEYS = 8  # the most keys that a run takes at a time
RUN_BUDGET = 0.25  # seconds after which a run takes no more keys
RUN_LIMIT = 2.0  # seconds after which a run that has waited for keys waits no more
_SHOWN_FAILURES = 8


class SyncFailed(errors.KcmError):
    """Raised when syncs failed, whose keys the queue retries. The message has keys and errors."""


@dataclass(frozen=True)
class _Ended:
    """A sync of one key that has ended."""

    lease: KeyLease
    outcome: SyncResult
    error: Exception | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class _CloudStep:
    """A sync that goes on when the cloud has answered the calls of its plan."""

    carried: CarriedPlan
    memory: dict[str, str]  # of the key, as it was saved last
    expectations: SyncExpectations


def _fail(lease: KeyLease, error: Exception) -> _Ended:
    return _Ended(lease, SyncResult.retry(), error)


def _join_failures(failed: Sequence[tuple[str, Exception]]) -> str:
    shown = [f"{key}: {error}" for key, error in failed[:_SHOWN_FAILURES]]
    rest = len(failed) - len(shown)
    return "; ".join([*shown, f"and {rest} more" if rest else ""]).removesuffix("; ")


@dataclass(frozen=True)
class RunnerProcess:
    """What all runners of a process share.

    The host makes the calls to clouds, and the observer is told of all syncs. After `stop`, keys
    are abandoned. Runs without keys wait in `standby`.
    """

    renewer: Renewer
    clock: Clock
    stop: threading.Event
    host: Host
    metrics: SyncMetrics | None = None
    observer: Observer | None = None
    standby: Standby = field(default_factory=Standby)


class Runner:
    """Runs the syncs of one controller."""

    def __init__(
        self,
        controller: Controller,
        *,
        carrier: PlanCarrier,
        caches: Caches,
        consistency: Consistency,
        queue: WorkQueue,
        process: RunnerProcess,
    ) -> None:
        self.controller = controller
        self._carrier = carrier
        self._caches = caches
        self._consistency = consistency
        self._queue = queue
        self._memory = Memory(queue.io, queue.name)
        self._host = process.host
        self._renewer = process.renewer
        self._clock = process.clock
        self._stop = process.stop
        self._metrics = process.metrics
        self._observer = process.observer
        self._standby = process.standby
        self._calling: set[str] = set()  # the tokens of the keys whose threads call the cloud

    def run(self, named: str, max_keys: int = MAX_KEYS, budget: float = RUN_BUDGET) -> int:
        """Takes keys, `named` first, syncs them, takes more, and returns how many there were.

        It takes up to `max_keys` at a time, and none after `budget` seconds, so that the messages
        of other controllers get their turn. When none are left, it waits for more in a process that
        dispatches keys (design 0084). Raises SyncFailed when keys failed, and StoreUnavailable when
        Redis is unavailable.
        """
        waits_until = self._clock.monotonic() + RUN_LIMIT
        synced = 0
        leases: Sequence[KeyLease] = self._queue.take(named, max_keys)
        while leases:
            burst, is_empty = self._sync_burst(leases, max_keys, budget)
            failed = [(end.lease.key, end.error) for end in burst if end.error is not None]
            if failed:
                raise SyncFailed(_join_failures(failed))
            synced += len(burst)
            waits = is_empty and self._clock.monotonic() < waits_until
            leases = self._standby.wait(self._queue.name) if waits else []
        return synced

    def _sync_burst(
        self, leases: Sequence[KeyLease], max_keys: int, budget: float
    ) -> tuple[list[_Ended], bool]:
        """Syncs keys, takes more and syncs them, for `budget` seconds.

        Returns the results, and whether no key was left.
        """
        deadline = self._clock.monotonic() + budget
        ended: list[_Ended] = []
        goes_on = True
        while leases:
            self._renewer.hold(*leases)
            try:
                synced = self._sync_all(leases)
                ended += synced
                goes_on = self._clock.monotonic() < deadline and not self._stop.is_set()
                taken = self._finish_and_take(synced, max_keys if goes_on else 0)
            finally:
                self._renewer.release(*(key for key in leases if key.token not in self._calling))
            leases = taken
        return ended, goes_on

    def _sync_all(self, leases: Sequence[KeyLease]) -> list[_Ended]:
        """Syncs the keys one after the other, and returns the results of those that have ended.

        After `stop`, keys are abandoned.
        """
        stale = self._wait_until_fresh()
        ended: list[_Ended] = []
        for number, lease in enumerate(leases):
            if self._stop.is_set():
                ended += [_Ended(left, SyncResult.abandon()) for left in leases[number:]]
                break
            end = self._sync(lease) if stale is None else _fail(lease, stale)
            if end is not None:
                ended.append(end)
        return ended

    def _wait_until_fresh(self) -> Exception | None:
        try:
            self._consistency.wait_until_fresh(FRESHNESS_TIMEOUT, self._stop)
        except errors.KcmError as late:
            return late
        return None

    def _sync(self, lease: KeyLease) -> _Ended | None:
        """Syncs a key. Returns None if a thread goes on with it and finishes it."""
        return self._run_to_end(lease, self._clock.monotonic(), lambda: self._reconcile(lease))

    def _run_to_end(
        self, lease: KeyLease, started: float, step: Callable[[], SyncResult | _CloudStep]
    ) -> _Ended | None:
        """Returns how the sync ended with `step`. Returns None if the step calls the cloud, which
        a new thread does.
        """
        try:
            with self._named_author(lease):
                result = step()
            if isinstance(result, _CloudStep):
                self._start_calls(lease, started, result)
                return None
            end = _Ended(lease, result)
        except Exception as raised:  # noqa: BLE001 - a crash in a controller is that key's failure
            end = _fail(lease, raised)
        seconds = round(self._clock.monotonic() - started, 6)
        fenced = isinstance(end.error, errors.Fenced)
        result_name = "fenced" if fenced else _RESULTS[end.outcome.result]
        if self._metrics is not None:
            self._metrics.observe(SYNC, self.controller.name, result_name, seconds)
        if fenced:
            self._logger_of(lease).warning(
                "sync stopped: the key was taken away", error=str(end.error)
            )
        return replace(end, seconds=seconds)

    def _named_author(self, lease: KeyLease) -> AbstractContextManager[None]:
        if self._observer is None:
            return nullcontext()
        return observing.acting(Author("controller", self.controller.name, key=lease.key))

    # --- calls to the cloud

    def _start_calls(self, lease: KeyLease, started: float, step: _CloudStep) -> None:
        self._calling.add(lease.token)
        # A process that stops does not wait for clouds; the reaper frees the key.
        self._host.spawn(
            f"kcm-cloud-{self.controller.short_name}",
            partial(self._finish_with_answers, lease, started, step),
        )

    def _finish_with_answers(self, lease: KeyLease, started: float, step: _CloudStep) -> None:
        """Makes the calls, carries out what follows, and finishes the key."""
        try:
            end = self._run_to_end(lease, started, lambda: self._continue(lease, step))
            assert end is not None  # `_continue` makes all calls itself
            self._finish([end], 0)
        except errors.KcmError as error:
            self._logger_of(lease).warning("a sync could not be finished", error=str(error))
        finally:
            self._calling.discard(lease.token)
            self._renewer.release(lease)

    def _continue(self, lease: KeyLease, step: _CloudStep) -> SyncResult:
        """Makes the calls of the plan and of those that follow it."""
        while True:
            plan = self._carrier.call_cloud(step.carried)
            result = self._carry_out(plan, lease, step.memory, step.expectations)
            if isinstance(result, SyncResult):
                return result
            step = result

    # --- the ends of syncs

    def _finish_and_take(self, synced: Sequence[_Ended], max_keys: int) -> list[KeyLease]:
        """Reports the ends of syncs, and takes up to `max_keys` keys to sync next."""
        if synced or not max_keys:
            return self._finish(synced, max_keys)
        # All keys of the last take are in the hands of threads.
        return self._queue.take(None, max_keys, answers_message=False)

    def _finish(self, synced: Sequence[_Ended], max_keys: int) -> list[KeyLease]:
        """Reports the end of each sync to the queue and to the log.

        Returns the keys to sync next, at most `max_keys`. Fenced syncs are not reported to the
        queue.
        """
        ended = [end for end in synced if not isinstance(end.error, errors.Fenced)]
        if not ended:
            return []
        self._renewer.expect_end(*(end.lease for end in ended))
        finishes, taken = self._queue.finish_and_take(
            [(end.lease, end.outcome) for end in ended], max_keys
        )
        for end, finished in zip(ended, finishes, strict=True):
            self._show_end(end, finished)
            line, error = self._logger_of(end.lease), end.error
            if finished.lost:
                line.warning("sync ended after its key was taken away")
            if error is None:
                line.debug("synced", seconds=end.seconds, requeue_after=finished.delay)
                continue
            if not isinstance(error, errors.KcmError):
                line = line.bind(exc_info=error)
            line.warning(
                "sync failed", seconds=end.seconds, error=str(error), retry_in=finished.delay
            )
        return taken

    def _show_end(self, end: _Ended, finished: Finished) -> None:
        if self._observer is None:
            return
        self._observer.synced(
            SyncEnd(
                self.controller.name,
                end.lease.key,
                _RESULTS.get(end.outcome.result, "abandoned"),
                end.seconds,
                end.lease.failures,
                finished.delay,
                str(end.error) if end.error is not None else "",
            )
        )

    def _logger_of(self, lease: KeyLease) -> structlog.stdlib.BoundLogger:
        """Returns a logger with the fields for all lines about this sync. `reconcile_id` is unique
        to it.
        """
        bound: structlog.stdlib.BoundLogger = log.bind(
            controller=self.controller.name, key=lease.key, reconcile_id=lease.token
        )
        return bound

    def _reconcile(self, lease: KeyLease) -> SyncResult | _CloudStep:
        """Carries out the plans for one key, up to the first that calls the cloud.

        Any exception makes the key retried.
        """
        self._consistency.wait(lease.key, FRESHNESS_TIMEOUT, self._stop)
        memory = self._memory.load(lease.key) if self.controller.remembers else {}
        view = self._caches.view(self.controller, self._clock.now(), memory)
        plan = self.controller.reconcile(lease.key, view)
        expectations = self._consistency.expectations(lease.key, lease.fence)
        return self._carry_out(plan, lease, memory, expectations)

    def _carry_out(
        self,
        plan: Plan,
        lease: KeyLease,
        memory: dict[str, str],
        expectations: SyncExpectations,
    ) -> SyncResult | _CloudStep:
        def remember(carried: CarriedPlan) -> None:
            nonlocal memory
            state = carried.plan.state
            if self.controller.remembers and state is not None:
                self._memory.save(lease.key, memory, state, lease.fence)
                memory = dict(state)

        carried = self._carrier.carry_out(plan, lease.fence, expectations, remember=remember)
        if carried.error is not None:
            raise carried.error
        if carried.calls_cloud:
            return _CloudStep(carried, memory, expectations)
        if carried.plan.requeue_after is not None:
            return SyncResult.requeue_after(carried.plan.requeue_after)
        return SyncResult.done()
