"""Runs that wait for the next key in the process that dispatches it (design 0084).

A run that has synced its last key keeps its thread for a moment. The dispatcher of the same process
offers the waiting runs to the script that adds keys, which takes keys for them in the same step. So
the second key of a burst is synced without a message and without a call to take it.

Guarantees: a key that was taken for a run is handed to it. At most half of the threads wait; a run
that has to wait beyond these ends the one that has waited longest, so messages find a thread.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Collection, Mapping, Sequence

from kcm.coordination.workqueue.types import KeyLease

PATIENCE = 0.25  # seconds that a run waits for its next key


class Standby:
    """The waiting runs of a process with a number of threads, at most one of each work queue."""

    def __init__(self, threads: int = 0) -> None:
        self._seats = threads // 2
        self._lock = threading.Lock()
        self._closed = False
        # By work queue, in the order in which they began to wait.
        self._waiting: dict[str, queue.SimpleQueue[Sequence[KeyLease]]] = {}

    def wait(self, name: str, patience: float = PATIENCE) -> Sequence[KeyLease]:
        """Waits for keys of a work queue, and returns those that were taken for the caller.

        Returns none if none came in time, or if the thread is needed for something else.
        """
        hand: queue.SimpleQueue[Sequence[KeyLease]] = queue.SimpleQueue()
        with self._lock:
            if self._closed or not self._seats or name in self._waiting:
                return []
            if len(self._waiting) == self._seats:
                self._waiting.pop(next(iter(self._waiting))).put([])
            self._waiting[name] = hand
        try:
            return hand.get(timeout=patience)
        except queue.Empty:
            with self._lock:
                if self._waiting.get(name) is hand:
                    del self._waiting[name]
                    return []
        return hand.get()  # somebody has the run in hand, and answers in any case

    def list_waiting(self) -> tuple[str, ...]:
        """Returns the work queues of which runs wait."""
        with self._lock:
            return tuple(self._waiting)

    def reserve(self, names: Collection[str]) -> Offer:
        """Reserves the waiting runs of some work queues, until the offer is closed."""
        with self._lock:
            waiting = {name: self._waiting.pop(name) for name in names if name in self._waiting}
        return Offer(waiting)

    def close(self) -> None:
        """Ends all waiting runs. None waits after that."""
        with self._lock:
            self._closed = True
            waiting, self._waiting = self._waiting, {}
        for hand in waiting.values():
            hand.put([])


class Offer:
    """Waiting runs that a dispatcher has reserved. Those that are given no keys end with it."""

    def __init__(self, waiting: dict[str, queue.SimpleQueue[Sequence[KeyLease]]]) -> None:
        self._waiting = waiting

    def __enter__(self) -> Offer:
        return self

    def __exit__(self, *_: object) -> None:
        for hand in self._waiting.values():
            hand.put([])

    @property
    def names(self) -> Collection[str]:
        """The work queues whose runs are offered."""
        return tuple(self._waiting)

    def hand_over(self, taken: Mapping[str, Sequence[KeyLease]]) -> None:
        """Gives the runs the keys that were taken for them."""
        for name, leases in taken.items():
            self._waiting.pop(name).put(leases)
