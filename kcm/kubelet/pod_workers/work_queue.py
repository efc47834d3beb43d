"""The queue of pod work: which pods have to be synced, and when. It is kept in memory.

Pods are synced also while Redis is unavailable, so the queue is not in Redis; a message on the
node's Celery queue only wakes up a process. Guarantees: one thread at a time works on a pod. A pod
that no other process takes within 0.2 s is worked on by one of the kubelet's own threads.

Source of the delays: pkg/kubelet/util/queue/work_queue.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import structlog

from kcm.clock import Clock

log = structlog.get_logger("kcm.kubelet")

NotifyWork = Callable[[str], None]
"""Notifies another process that the pod with this uid waits for a thread. Must not block."""

_PATIENCE = 0.2  # seconds for another process to take a pod
_MOST_THREADS = 256  # in the kubelet's own pool
_HANDED_OVER = 3600.0  # seconds in which a pod that was given to the pool is not overdue
_LONGEST_WAIT = 0.5  # seconds, and so how long stopping may take
_SHORTEST_WAIT = 0.01  # seconds


class DelayQueue:
    """The uids of pods that are due to be synced again at some time. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._due: dict[str, float] = {}

    def enqueue(self, uid: str, delay: float) -> None:
        """Makes the pod due in `delay` seconds, replacing an earlier time."""
        with self._lock:
            self._due[uid] = self._clock.monotonic() + delay

    def get_work(self) -> list[str]:
        """Removes all pods that are due, and returns their uids."""
        now = self._clock.monotonic()
        with self._lock:
            uids = [uid for uid, due in self._due.items() if due <= now]
            for uid in uids:
                del self._due[uid]
        return uids


class WorkThreads:
    """The pods that wait for a thread, and the kubelet's own threads. Thread-safe."""

    def __init__(
        self,
        work: Callable[[str], None],
        clock: Clock,
        *,
        notify_work: NotifyWork | None = None,
    ) -> None:
        """`work` does the work of the pod with the given uid.

        Without `notify_work`, no other process takes pods, so the kubelet's own threads take them
        at once.
        """
        self._work = work
        self._clock = clock
        self._notify_work = notify_work
        self._patience = _PATIENCE if notify_work is not None else 0.0
        self._changed = threading.Condition()
        self._waiting: dict[str, float] = {}  # since when each uid has waited
        self._running: set[str] = set()
        self._threads = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="kcm-pod")
        self._stopped = False

    def add(self, uid: str) -> None:
        """Records that a pod has work to do, even if a thread is working on it now."""
        with self._changed:
            if uid in self._waiting:
                return
            self._waiting[uid] = self._clock.monotonic()
            running = uid in self._running
            self._changed.notify_all()
        if self._notify_work is not None and not running:
            self._notify_work(uid)

    def run(self, uid: str) -> bool:
        """Does the pod's work in this thread.

        Returns False if there is none, or if another thread works on the pod.
        """
        with self._changed:
            if self._stopped or uid not in self._waiting or uid in self._running:
                return False
            del self._waiting[uid]
            self._running.add(uid)
        try:
            self._work(uid)
        finally:
            with self._changed:
                self._running.discard(uid)
                self._changed.notify_all()
        return True

    def run_overdue(self, stop: threading.Event) -> None:
        """Gives pods that have waited too long to the kubelet's own threads until `stop` is set."""
        while not stop.is_set():
            for uid in self._take_overdue():
                self._threads.submit(self._run_and_log, uid)
        with self._changed:
            self._stopped = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _take_overdue(self) -> list[str]:
        """Returns the uids of the overdue pods.

        Waits up to _LONGEST_WAIT seconds if there are none.
        """
        with self._changed:
            now = self._clock.monotonic()
            idle = {uid: since for uid, since in self._waiting.items() if uid not in self._running}
            overdue = [uid for uid, since in idle.items() if now - since >= self._patience]
            for uid in overdue:
                self._waiting[uid] = now + _HANDED_OVER
            if not overdue:
                first = min(idle.values(), default=now + _LONGEST_WAIT)
                wait = min(max(first + self._patience - now, _SHORTEST_WAIT), _LONGEST_WAIT)
                self._changed.wait(wait)
            return overdue

    def _run_and_log(self, uid: str) -> None:
        try:
            self.run(uid)
        except Exception:  # nobody reads the future's result, so the error would be lost
            log.exception("pod work failed", uid=uid)
