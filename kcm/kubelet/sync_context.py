"""The context of one sync of a pod: whether it was cancelled or its grace period shortened."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from kcm import errors
from kcm.loops import start_thread


class SyncCancelled(errors.KcmError):
    """the sync was cancelled because a newer one is on its way"""


class SyncContext:
    """Tells a sync that it is cancelled, or that its grace period is shorter. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.cancelled = threading.Event()
        self._grace: int | None = None
        self._grace_listeners: list[Callable[[int], None]] = []
        self._waiting: list[threading.Event] = []

    def cancel(self) -> None:
        """Cancels the sync, and wakes what waits in `wait`."""
        with self._lock:
            self.cancelled.set()
            waiting = list(self._waiting)
        for event in waiting:
            event.set()

    def wait(self, event: threading.Event) -> None:
        """Waits until the event is set. Raises SyncCancelled if the sync is cancelled first.

        Cancelling the sync sets the event as well.
        """
        with self._lock:
            self._waiting.append(event)
            if self.cancelled.is_set():
                event.set()
        event.wait()
        with self._lock:
            self._waiting.remove(event)
        self.check()

    def check(self) -> None:
        """Raises SyncCancelled if the sync was cancelled."""
        if self.cancelled.is_set():
            raise SyncCancelled()

    def shorten_grace(self, seconds: int) -> None:
        """Shortens the grace period of a terminating pod. Calls each listener in its own thread."""
        with self._lock:
            self._grace = seconds
            listeners = list(self._grace_listeners)
        for listener in listeners:
            start_thread("kcm-grace", partial(listener, seconds))

    @property
    def grace(self) -> int | None:
        """The shortened grace period in seconds; None if it was not shortened."""
        return self._grace

    @contextmanager
    def on_shorter_grace(self, listener: Callable[[int], None]) -> Iterator[None]:
        """Calls the listener, in another thread, if the grace period is shortened meanwhile."""
        with self._lock:
            self._grace_listeners.append(listener)
        try:
            yield
        finally:
            with self._lock:
                self._grace_listeners.remove(listener)
