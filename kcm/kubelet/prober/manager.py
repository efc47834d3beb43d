"""The workers of all probes of this node: one per container and kind, on a few threads.

Guarantees: a worker never probes twice at a time; a slow probe delays only others of its
pod and, beyond half of all threads, of its namespace. What was found survives in `Results`
until the worker ends.

Source: pkg/kubelet/prober/prober_manager.go and the loop of worker.go, Kubernetes 1.33.
Departure: one scheduler and a pool in place of a goroutine per worker.
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
from kcm.kubelet.prober.metrics import ProbeMetrics
from kcm.kubelet.prober.outcomes import ProbeError, ProbeOutcome, ProbeResult
from kcm.kubelet.prober.probes import Prober
from kcm.kubelet.prober.results import Result, Results
from kcm.kubelet.prober.state import (
    DEFAULT_PERIOD,
    Kind,
    State,
    Step,
    Subject,
    bare,
    judge,
    look,
    probe_of,
)

log = structlog.get_logger("kcm.kubelet")

THREADS = 64  # probes at a time, of which a namespace may have half
OF_NAMESPACE, OF_POD = THREADS // 2, 4
Key = tuple[str, str, Kind]  # uid of the pod, name of the container, kind
Tell = Callable[[Pod, str, str, str], object]  # pod, reason, message, container: a Warning


@dataclass
class _Worker:
    subject: Subject
    state: State = field(default_factory=State)
    due: float = 0.0
    ticket: int = 0  # the only entry in the heap that counts
    busy: bool = False
    again: bool = False  # asked for while busy
    held: bool = False  # due, and waits for others of its pod
    stopped: bool = False

    @property
    def key(self) -> Key:
        return (self.subject.pod.uid or "", self.subject.container.name, self.subject.kind)

    @property
    def shares(self) -> dict[str, int]:
        """What it counts against while it probes, and how many may do so at a time."""
        namespace = self.subject.pod.namespace or ""
        return {namespace: OF_NAMESPACE, f"{namespace}/{self.key[0]}": OF_POD}

    @property
    def period(self) -> float:
        return float(self.subject.spec.period_seconds or DEFAULT_PERIOD)


class ProbeManager:
    """Probes pods from `add_pod` until `remove_pod`; thread-safe."""

    def __init__(
        self,
        prober: Prober,
        status_of: Callable[[str], PodStatus | None],
        results: dict[Kind, Results],
        clock: Clock,
        tell: Tell,
        *,
        metrics: ProbeMetrics | None = None,
        executor: Executor | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """`status_of`: a pod's status, by its uid. `executor`: the pool's place, for tests."""
        self._prober = prober
        self._status_of = status_of
        self.results = results
        self._clock = clock
        self._tell = tell
        self._metrics = metrics or ProbeMetrics()
        self._pool = executor or ThreadPoolExecutor(THREADS, thread_name_prefix="kcm-probe")
        self._rng = rng or random.Random()
        self._began = clock.monotonic()
        self._lock = threading.Condition()
        self._workers: dict[Key, _Worker] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._tickets = itertools.count(1)
        self._probing: Counter[str] = Counter()  # by what workers share
        self._held: deque[_Worker] = deque()  # due, and waiting for others of their pod
        self._thread: threading.Thread | None = None
        self._ending = False

    # --- who is probed

    def add_pod(self, pod: Pod) -> None:
        """Begin to probe a pod's containers; those that are probed already go on."""
        inits = [c for c in pod.spec.init_containers or () if c.restart_policy == "Always"]
        with self._lock:
            for container in (*pod.spec.containers, *inits):
                for kind in Kind:
                    spec = probe_of(container, kind)
                    worker = _Worker(Subject(kind, pod, container, spec)) if spec else None
                    if worker is not None and worker.key not in self._workers:
                        self._workers[worker.key] = worker
                        self._set_due(worker, self._first(worker))
            self._lock.notify_all()

    def _first(self, worker: _Worker) -> float:
        """At once; after the kubelet's start, spread over a period."""
        now = self._clock.monotonic()
        recent = worker.period > now - self._began
        return now + (self._rng.random() * worker.period if recent else 0.0)

    def stop_liveness_and_startup(self, pod: Pod) -> None:
        """A pod that ends is not restarted; its readiness still counts."""
        self._stop(key for key in self._of(pod.uid or "") if key[2] is not Kind.READINESS)

    def remove_pod(self, pod: Pod) -> None:
        self._stop(self._of(pod.uid or ""))

    def cleanup(self, running: Iterable[str]) -> None:
        """Forget all pods but those with these uids."""
        known = set(running)
        with self._lock:
            keys = [key for key in self._workers if key[0] not in known]
        self._stop(keys)

    def _of(self, uid: str) -> list[Key]:
        with self._lock:
            return [key for key in self._workers if key[0] == uid]

    def _stop(self, keys: Iterable[Key]) -> None:
        for key in keys:
            with self._lock:
                worker = self._workers.get(key)
                if worker is None:
                    continue
                worker.stopped = True
                if worker.busy:
                    continue  # whoever probes takes it away
            self._end(worker)

    def _end(self, worker: _Worker) -> None:
        with self._lock:
            self._workers.pop(worker.key, None)
        if worker.state.container_id:
            self.results[worker.subject.kind].remove(worker.state.container_id)
        self._metrics.forget(worker.subject)

    def __len__(self) -> int:
        return len(self._workers)

    # --- what follows from it

    def update_pod_status(self, pod: Pod, status: PodStatus) -> PodStatus:
        """The status with `started` and `ready` as probes have them."""
        mains = [self._judged(pod, one) for one in status.container_statuses or ()]
        inits = [self._init(pod, one) for one in status.init_container_statuses or ()]
        return status.replace(
            container_statuses=mains or status.container_statuses,
            init_container_statuses=inits or status.init_container_statuses,
        )

    def liveness(self, container_id: str) -> bool | None:
        """Whether a container lives; None while nobody knows."""
        return self.results[Kind.LIVENESS].passes(container_id)

    def startup(self, container_id: str) -> bool | None:
        """Whether a container has started; None while nobody knows."""
        return self.results[Kind.STARTUP].passes(container_id)

    def _init(self, pod: Pod, status: ContainerStatus) -> ContainerStatus:
        """Sidecars are as ordinary containers; others are ready once they have succeeded."""
        inits = pod.spec.init_containers or ()
        if any(one.name == status.name and one.restart_policy == "Always" for one in inits):
            return self._judged(pod, status)
        ended = status.state.terminated if status.state else None
        return status.replace(started=False, ready=ended is not None and ended.exit_code == 0)

    def _judged(self, pod: Pod, status: ContainerStatus) -> ContainerStatus:
        running = status.state is not None and status.state.running is not None
        started = running and self._passes(pod, status, Kind.STARTUP)
        ready = started and self._passes(pod, status, Kind.READINESS)
        return status.replace(started=started, ready=ready)

    def _passes(self, pod: Pod, status: ContainerStatus, kind: Kind) -> bool:
        """Whether a container passes; without a probe, it does."""
        found = self.results[kind].get(bare(status.container_id or ""))
        if found is Result.SUCCESS:
            return True
        if found is not None and kind is Kind.STARTUP:
            return False
        key = (pod.uid or "", status.name, kind)
        if key not in self._workers:
            return True
        if kind is Kind.READINESS:
            self._trigger(key)  # somebody waits for it
        return False

    def _trigger(self, key: Key) -> None:
        with self._lock:
            worker = self._workers.get(key)
            if worker is None or worker.stopped:
                return
            if worker.busy:
                worker.again = True
            elif not worker.held:
                self._set_due(worker, self._clock.monotonic())
                self._lock.notify_all()

    # --- when

    def start(self) -> None:
        """Begin to probe, in a thread."""
        self._thread = threading.Thread(target=self._run, name="kcm-prober", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End; probes under way are not waited for."""
        with self._lock:
            self._ending = True
            self._lock.notify_all()
        if self._thread is not None:
            self._thread.join(5)
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._prober.close()

    def _run(self) -> None:
        while not self._ending:
            wait = self.run_due()
            with self._lock:
                if not self._ending and not self._is_due():
                    self._lock.wait(wait)

    def _is_due(self) -> bool:
        return bool(self._heap) and self._heap[0][0] <= self._clock.monotonic()

    def run_due(self) -> float:
        """Hand over what is due; seconds until something is."""
        while True:
            with self._lock:
                if not self._heap:
                    return 60.0
                due, ticket, key = self._heap[0]
                now = self._clock.monotonic()
                if due > now:
                    return due - now
                heapq.heappop(self._heap)
                worker = self._workers.get(key)
                if worker is None or worker.ticket != ticket or worker.stopped:
                    continue
                if not self._may_probe(worker):
                    worker.held = True
                    self._held.append(worker)
                    continue
                worker.busy = True
                self._probing.update(worker.shares.keys())
            self._pool.submit(self._turn, worker)

    def _may_probe(self, worker: _Worker) -> bool:
        return all(self._probing[who] < most for who, most in worker.shares.items())

    def _give_back(self, worker: _Worker) -> None:
        """Make room for those that wait for it; they are due now, in their order."""
        self._probing.subtract(worker.shares.keys())
        self._probing += Counter()  # forgets who does not probe
        now = self._clock.monotonic()
        for held in [one for one in self._held if self._may_probe(one)]:
            self._held.remove(held)
            held.held = False
            if not held.stopped:
                self._set_due(held, min(held.due, now))
        self._lock.notify_all()

    def _set_due(self, worker: _Worker, due: float) -> None:
        worker.due, worker.ticket = due, next(self._tickets)
        heapq.heappush(self._heap, (due, worker.ticket, worker.key))

    def _turn(self, worker: _Worker) -> None:
        go_on = True
        try:
            go_on = self._do_probe(worker)
        except Exception:  # else the worker stays busy, and its container is never probed again
            log.exception("A probe failed unexpectedly", pod=worker.subject.pod.key)
        with self._lock:
            worker.busy = False
            self._give_back(worker)
            over = worker.stopped or not go_on
            if not over:
                now = self._clock.monotonic()
                next_ = now if worker.again else max(worker.due + worker.period, now)
                worker.again = False
                self._set_due(worker, next_)
                self._lock.notify_all()
        if over:
            self._end(worker)

    def _do_probe(self, worker: _Worker) -> bool:
        """Look, probe if it is time, note what was found; whether to go on."""
        subject = worker.subject
        status = self._status_of(subject.pod.uid or "")
        step = look(subject, worker.state, status, self._clock.now())
        self._take(worker, step)
        if not step.probe or status is None:
            return step.go_on
        began = self._clock.monotonic()
        result = self._probe(worker, status)
        if result is None or worker.stopped:
            return True
        self._metrics.count(subject, result, self._clock.monotonic() - began)
        self._take(worker, judge(subject, worker.state, result))
        return True

    def _take(self, worker: _Worker, step: Step) -> None:
        results = self.results[worker.subject.kind]
        worker.state = step.state
        if step.forget:
            results.remove(step.forget)
        if step.note is not None and step.state.container_id:
            results.set(step.state.container_id, step.note, worker.subject.pod)

    def _probe(self, worker: _Worker, status: PodStatus) -> Result | None:
        """None: the probe could not be made, and nothing follows from that."""
        subject = worker.subject
        try:
            found = self._prober.probe(subject, status, worker.state.container_id)
        except ProbeError as error:
            text = f"{subject.kind} probe errored and resulted in unknown state: {error.message}"
            self._warn(subject, "Unhealthy", text)
            return None
        return self._told(subject, found)

    def _told(self, subject: Subject, found: ProbeResult) -> Result:
        if found.outcome is ProbeOutcome.FAILURE:
            self._warn(subject, "Unhealthy", f"{subject.kind} probe failed: {found.output}")
            return Result.FAILURE
        if found.outcome is ProbeOutcome.WARNING:
            self._warn(subject, "ProbeWarning", f"{subject.kind} probe warning: {found.output}")
        return Result.SUCCESS

    def _warn(self, subject: Subject, reason: str, message: str) -> None:
        self._tell(subject.pod, reason, message, subject.container.name)
