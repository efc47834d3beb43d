"""The probe manager: runs one worker per container and kind of probe, on a few threads.

Guarantees: a worker runs one probe at a time. A slow probe only delays other probes of its pod; if
half of all threads are busy with its namespace, also those of its namespace. Verdicts stay in
`ProbeResults` until the worker stops.

Source: pkg/kubelet/prober/prober_manager.go and the loop of worker.go, Kubernetes 1.33. Departure:
one scheduler and a thread pool instead of a goroutine per worker.
"""

from __future__ import annotations

import heapq
import itertools
import random
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field

import structlog

from kcm.api.core_v1 import Pod, PodStatus
from kcm.api.core_v1.container_statuses import ContainerStatus
from kcm.clock import Clock
from kcm.helpers.pods import is_sidecar
from kcm.kubelet.prober.metrics import ProbeMetrics
from kcm.kubelet.prober.state import (
    DEFAULT_PERIOD,
    ProbedContainer,
    ProbeError,
    ProbeKind,
    ProbeOutcome,
    ProbeResult,
    ProbeResults,
    ProbeRunner,
    ProbeStep,
    ProbeVerdict,
    ProbeWorkerState,
    apply_result,
    plan_probe,
    probe_of,
)
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.kubelet.types import strip_runtime_name
from kcm.loops import start_thread

log = structlog.get_logger("kcm.kubelet")

MAX_PROBES = 64  # at a time
MAX_PROBES_OF_NAMESPACE, MAX_PROBES_OF_POD = MAX_PROBES // 2, 4
_IDLE_WAIT = 60.0  # seconds, while no probe is planned
_STOP_TIMEOUT = 5.0  # seconds

WorkerKey = tuple[str, str, ProbeKind]  # the pod's uid, the container's name, the kind


@dataclass
class _Worker:
    probed: ProbedContainer
    state: ProbeWorkerState = field(default_factory=ProbeWorkerState)
    due: float = 0.0
    ticket: int = 0  # identifies the worker's valid entry in the heap
    busy: bool = False
    again: bool = False  # it was triggered while busy, and is due again at once
    held: bool = False  # it is due, and waits for other probes of its pod or namespace
    stopped: bool = False

    @property
    def key(self) -> WorkerKey:
        return (self.probed.pod.uid or "", self.probed.container.name, self.probed.kind)

    @property
    def limits(self) -> dict[str, int]:
        """The limits of probes at a time for the worker's namespace and its pod, by their keys."""
        namespace = self.probed.pod.namespace or ""
        pod = f"{namespace}/{self.key[0]}"
        return {namespace: MAX_PROBES_OF_NAMESPACE, pod: MAX_PROBES_OF_POD}

    @property
    def period(self) -> float:
        return float(self.probed.spec.period_seconds or DEFAULT_PERIOD)


class ProbeManager:
    """Probes pods from `add_pod` until `remove_pod`. Thread-safe."""

    def __init__(
        self,
        runner: ProbeRunner,
        status_of: Callable[[str], PodStatus | None],
        results: dict[ProbeKind, ProbeResults],
        *,
        clock: Clock,
        recorder: KubeletEventRecorder,
        metrics: ProbeMetrics,
        executor: Executor | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """`status_of` returns the status of the pod with a uid.

        `executor` replaces the thread pool.
        """
        self._runner = runner
        self._status_of = status_of
        self._results = results
        self._clock = clock
        self._recorder = recorder
        self._metrics = metrics
        self._pool = executor or ThreadPoolExecutor(MAX_PROBES, thread_name_prefix="kcm-probe")
        self._rng = rng or random.Random()
        self._began = clock.monotonic()
        self._lock = threading.Condition()
        self._workers: dict[WorkerKey, _Worker] = {}
        self._heap: list[tuple[float, int, WorkerKey]] = []
        self._tickets = itertools.count(1)
        self._probing: Counter[str] = Counter()  # by the keys of workers' limits
        self._held: deque[_Worker] = deque()
        self._thread: threading.Thread | None = None
        self._stopping = False

    # --- adding and removing pods

    def add_pod(self, pod: Pod) -> None:
        """Starts probing the pod's containers, except those that are probed already."""
        sidecars = [c for c in pod.spec.init_containers or () if is_sidecar(c)]
        with self._lock:
            for container in (*pod.spec.containers, *sidecars):
                for kind in ProbeKind:
                    spec = probe_of(container, kind)
                    if spec is None:
                        continue
                    worker = _Worker(ProbedContainer(kind, pod, container, spec))
                    if worker.key not in self._workers:
                        self._workers[worker.key] = worker
                        self._schedule(worker, self._first_due(worker))
            self._lock.notify_all()

    def _first_due(self, worker: _Worker) -> float:
        """Returns when to probe first: now, or at a random time if the kubelet has just started."""
        now = self._clock.monotonic()
        just_started = worker.period > now - self._began
        return now + (self._rng.random() * worker.period if just_started else 0.0)

    def stop_liveness_and_startup(self, pod: Pod) -> None:
        """Stops the pod's liveness and startup probes, because the pod is terminating."""
        self._stop(key for key in self._keys_of(pod.uid or "") if key[2] is not ProbeKind.READINESS)

    def remove_pod(self, pod: Pod) -> None:
        """Stops all probes of the pod."""
        self._stop(self._keys_of(pod.uid or ""))

    def cleanup(self, running: Iterable[str]) -> None:
        """Stops the probes of all pods except those with the given uids."""
        kept = set(running)
        with self._lock:
            keys = [key for key in self._workers if key[0] not in kept]
        self._stop(keys)

    def _keys_of(self, uid: str) -> list[WorkerKey]:
        with self._lock:
            return [key for key in self._workers if key[0] == uid]

    def _stop(self, keys: Iterable[WorkerKey]) -> None:
        for key in keys:
            with self._lock:
                worker = self._workers.get(key)
                if worker is None:
                    continue
                worker.stopped = True
                if worker.busy:
                    continue  # the thread that runs its probe removes it
            self._remove(worker)

    def _remove(self, worker: _Worker) -> None:
        with self._lock:
            self._workers.pop(worker.key, None)
        if worker.state.container_id:
            self._results[worker.probed.kind].remove(worker.state.container_id)
        self._metrics.forget(worker.probed)

    def __len__(self) -> int:
        return len(self._workers)

    # --- using the results

    def update_pod_status(self, pod: Pod, status: PodStatus) -> PodStatus:
        """Returns the pod status with `started` and `ready` set for every container."""
        mains = [self._set_main(pod, container) for container in status.container_statuses or ()]
        inits = [
            self._set_init(pod, container) for container in status.init_container_statuses or ()
        ]
        return status.replace(
            container_statuses=mains or status.container_statuses,
            init_container_statuses=inits or status.init_container_statuses,
        )

    def liveness(self, container_id: str) -> bool | None:
        """Returns whether the container passes its liveness probe, or None if that is unknown."""
        return self._results[ProbeKind.LIVENESS].passes(container_id)

    def startup(self, container_id: str) -> bool | None:
        """Returns whether the container passes its startup probe, or None if that is unknown."""
        return self._results[ProbeKind.STARTUP].passes(container_id)

    def _set_init(self, pod: Pod, status: ContainerStatus) -> ContainerStatus:
        """Returns the status with `started` and `ready` set, for an init container.

        A sidecar's are set as a main container's. Others are ready once they have exited with 0.
        """
        inits = pod.spec.init_containers or ()
        if any(c.name == status.name and is_sidecar(c) for c in inits):
            return self._set_main(pod, status)
        ended = status.state.terminated if status.state else None
        return status.replace(started=False, ready=ended is not None and ended.exit_code == 0)

    def _set_main(self, pod: Pod, status: ContainerStatus) -> ContainerStatus:
        running = status.state is not None and status.state.running is not None
        started = running and self._passes(pod, status, ProbeKind.STARTUP)
        ready = started and self._passes(pod, status, ProbeKind.READINESS)
        if started and not ready:
            self._trigger((pod.uid or "", status.name, ProbeKind.READINESS))
        return status.replace(started=started, ready=ready)

    def _passes(self, pod: Pod, status: ContainerStatus, kind: ProbeKind) -> bool:
        """Reports whether a running container passes its probe of that kind, or has none."""
        verdict = self._results[kind].get(strip_runtime_name(status.container_id or ""))
        if verdict is ProbeVerdict.SUCCESS:
            return True
        if verdict is not None and kind is ProbeKind.STARTUP:
            return False
        return (pod.uid or "", status.name, kind) not in self._workers

    def _trigger(self, key: WorkerKey) -> None:
        """Makes a worker's next probe due at once."""
        with self._lock:
            worker = self._workers.get(key)
            if worker is None or worker.stopped:
                return
            if worker.busy:
                worker.again = True
            elif not worker.held:
                self._schedule(worker, self._clock.monotonic())
                self._lock.notify_all()

    # --- running probes

    def start(self) -> None:
        """Starts the thread that runs probes."""
        self._thread = start_thread("kcm-prober", self._run)

    def stop(self) -> None:
        """Stops probing. Does not wait for probes that are running."""
        with self._lock:
            self._stopping = True
            self._lock.notify_all()
        if self._thread is not None:
            self._thread.join(_STOP_TIMEOUT)
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._runner.close()

    def _run(self) -> None:
        while not self._stopping:
            wait = self.run_due()
            with self._lock:
                if not self._stopping and not self._is_any_due():
                    self._lock.wait(wait)

    def _is_any_due(self) -> bool:
        return bool(self._heap) and self._heap[0][0] <= self._clock.monotonic()

    def run_due(self) -> float:
        """Submits all due probes to the thread pool; returns the seconds until the next is due."""
        while True:
            with self._lock:
                if not self._heap:
                    return _IDLE_WAIT
                due, ticket, key = self._heap[0]
                now = self._clock.monotonic()
                if due > now:
                    return due - now
                heapq.heappop(self._heap)
                worker = self._workers.get(key)
                if worker is None or worker.ticket != ticket or worker.stopped:
                    continue
                if not self._is_within_limits(worker):
                    worker.held = True
                    self._held.append(worker)
                    continue
                worker.busy = True
                self._probing.update(worker.limits.keys())
            self._pool.submit(self._take_turn, worker)

    def _is_within_limits(self, worker: _Worker) -> bool:
        return all(self._probing[key] < limit for key, limit in worker.limits.items())

    def _release(self, worker: _Worker) -> None:
        """Makes held workers due for which there is room now that this worker is done."""
        self._probing.subtract(worker.limits.keys())
        self._probing += Counter()  # removes counts of 0
        now = self._clock.monotonic()
        for held in [held for held in self._held if self._is_within_limits(held)]:
            self._held.remove(held)
            held.held = False
            if not held.stopped:
                self._schedule(held, min(held.due, now))
        self._lock.notify_all()

    def _schedule(self, worker: _Worker, due: float) -> None:
        worker.due, worker.ticket = due, next(self._tickets)
        heapq.heappush(self._heap, (due, worker.ticket, worker.key))

    def _take_turn(self, worker: _Worker) -> None:
        go_on = True
        try:
            go_on = self._step(worker)
        except Exception:  # otherwise the worker would stay busy, and never probe again
            log.exception("A probe failed unexpectedly", pod=worker.probed.pod.key)
        with self._lock:
            worker.busy = False
            self._release(worker)
            ended = worker.stopped or not go_on
            if not ended:
                now = self._clock.monotonic()
                due = now if worker.again else max(worker.due + worker.period, now)
                worker.again = False
                self._schedule(worker, due)
                self._lock.notify_all()
        if ended:
            self._remove(worker)

    def _step(self, worker: _Worker) -> bool:
        """Runs a probe if it is time for one. Returns False if the worker should stop."""
        probed = worker.probed
        status = self._status_of(probed.pod.uid or "")
        step = plan_probe(probed, worker.state, status, self._clock.now())
        self._apply(worker, step)
        if not step.probe or status is None:
            return step.go_on
        began = self._clock.monotonic()
        result = self._probe(worker, status)
        if result is None or worker.stopped:
            return True
        self._metrics.observe(probed, result, self._clock.monotonic() - began)
        self._apply(worker, apply_result(probed, worker.state, result))
        return True

    def _apply(self, worker: _Worker, step: ProbeStep) -> None:
        results = self._results[worker.probed.kind]
        worker.state = step.state
        if step.forget:
            results.remove(step.forget)
        if step.verdict is not None and step.state.container_id:
            results.set(step.state.container_id, step.verdict, worker.probed.pod)

    def _probe(self, worker: _Worker, status: PodStatus) -> ProbeVerdict | None:
        """Returns the verdict of one probe, or None if the probe could not be run."""
        probed = worker.probed
        try:
            result = self._runner.probe(probed, status, worker.state.container_id)
        except ProbeError as error:
            text = f"{probed.kind} probe errored and resulted in unknown state: {error.message}"
            self._record_warning(probed, "Unhealthy", text)
            return None
        return self._record_result(probed, result)

    def _record_result(self, probed: ProbedContainer, result: ProbeResult) -> ProbeVerdict:
        """Returns the verdict of a probe's result. A warning counts as success.

        Records an Event about a failure or a warning.
        """
        if result.outcome is ProbeOutcome.FAILURE:
            text = f"{probed.kind} probe failed: {result.output}"
            self._record_warning(probed, "Unhealthy", text)
            return ProbeVerdict.FAILURE
        if result.outcome is ProbeOutcome.WARNING:
            text = f"{probed.kind} probe warning: {result.output}"
            self._record_warning(probed, "ProbeWarning", text)
        return ProbeVerdict.SUCCESS

    def _record_warning(self, probed: ProbedContainer, reason: str, message: str) -> None:
        self._recorder.record_pod_event(
            probed.pod, "Warning", reason, message, probed.container.name
        )
