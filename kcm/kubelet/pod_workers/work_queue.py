"""Which pods have to be synced when: the record of pod work, in the agent's memory.

Work goes on while Redis is away, so the record is here; a message on the node's
queue only says that a pod waits. Guarantees: a pod is taken by one thread at a
time; whoever comes first with `take` has it; one that nobody took within
`patience` seconds is run by a thread of the agent's own.

Source of the delays: pkg/kubelet/util/queue/work_queue.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import structlog

from kcm.clock import Clock

log = structlog.get_logger("kcm.kubelet")

Wake = Callable[[str], None]  # tells somebody that a pod (its uid) waits; must not block


class DelayQueue:
    """Uids that are due at some time; thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._due: dict[str, float] = {}

    def enqueue(self, uid: str, delay: float) -> None:
        """Due in `delay` seconds; the last call counts."""
        with self._lock:
            self._due[uid] = self._clock.monotonic() + delay

    def get_work(self) -> list[str]:
        """Take all that are due."""
        now = self._clock.monotonic()
        with self._lock:
            found = [uid for uid, at in self._due.items() if at <= now]
            for uid in found:
                del self._due[uid]
        return found


class WorkThreads:
    """Pods that wait for a thread, and the agent's own threads."""

    def __init__(
        self,
        run: Callable[[str], None],
        clock: Clock,
        *,
        wake: Wake | None = None,
        patience: float = 0.2,
        most: int = 256,
    ) -> None:
        """`run` does the work of a pod; without `wake` nobody else does, and nothing waits."""
        self._run = run
        self._clock = clock
        self._wake = wake
        self._patience = patience if wake is not None else 0.0
        self._changed = threading.Condition()
        self._waiting: dict[str, float] = {}  # since when
        self._running: set[str] = set()
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="kcm-pod")
        self._stopped = False

    def add(self, uid: str) -> None:
        """A pod has something to do; again, if it is being worked on."""
        with self._changed:
            if uid in self._waiting:
                return
            self._waiting[uid] = self._clock.monotonic()
            told = uid in self._running
            self._changed.notify_all()
        if self._wake is not None and not told:
            self._wake(uid)

    def run(self, uid: str) -> bool:
        """Do the pod's work in this thread; False if somebody else does or there is none."""
        with self._changed:
            if self._stopped or uid not in self._waiting or uid in self._running:
                return False
            del self._waiting[uid]
            self._running.add(uid)
        try:
            self._run(uid)
        finally:
            with self._changed:
                self._running.discard(uid)
                self._changed.notify_all()
        return True

    def run_own(self, stop: threading.Event) -> None:
        """Give pods that have waited too long to threads of our own, until `stop`."""
        while not stop.is_set():
            for uid in self._overdue():
                self._threads.submit(self._contained, uid)
        with self._changed:
            self._stopped = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _overdue(self) -> list[str]:
        """Wait for the first that is overdue, at most a moment."""
        with self._changed:
            now = self._clock.monotonic()
            free = {uid: at for uid, at in self._waiting.items() if uid not in self._running}
            found = [uid for uid, at in free.items() if now - at >= self._patience]
            for uid in found:
                self._waiting[uid] = now + 3600.0  # given away; `run` takes it out
            if not found:
                first = min(free.values(), default=now)
                self._changed.wait(
                    min(max(first + self._patience - now, 0.01), 0.5) if free else 0.5
                )
            return found

    def _contained(self, uid: str) -> None:
        try:
            self.run(uid)
        except Exception:  # its future is looked at by nobody, so that it would go unheard
            log.exception("pod work failed", uid=uid)
