"""The context of one sync of a pod: whether it is still wanted, and how long things may take."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kcm import errors


class SyncCancelled(errors.KcmError):
    """the sync was cancelled, a newer one is on its way"""


class SyncContext:
    """Thread-safe. Cancelled when the pod is to end while it is being synced; while it ends,
    its grace period may get shorter (seconds)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.done = threading.Event()
        self._grace: int | None = None
        self._listeners: list[Callable[[int], None]] = []
        self._woken: list[threading.Event] = []

    def cancel(self) -> None:
        with self._lock:
            self.done.set()
            woken = list(self._woken)
        for event in woken:
            event.set()

    def wait(self, event: threading.Event) -> None:
        """Wait for the event, which is set by this, too. Raises SyncCancelled if so."""
        with self._lock:
            self._woken.append(event)
            if self.done.is_set():
                event.set()
        event.wait()
        with self._lock:
            self._woken.remove(event)
        self.check()

    def check(self) -> None:
        """Raises SyncCancelled."""
        if self.done.is_set():
            raise SyncCancelled()

    def shorten(self, grace: int) -> None:
        """Tell those who are waiting for the end of a container that it has less time."""
        with self._lock:
            self._grace = grace
            listeners = list(self._listeners)
        for listener in listeners:
            threading.Thread(target=listener, args=(grace,), daemon=True).start()

    @property
    def grace(self) -> int | None:
        """The shortened grace period, None while it is as it was."""
        return self._grace

    @contextmanager
    def shortened_by(self, listener: Callable[[int], None]) -> Iterator[None]:
        """Call the listener when the grace period is shortened meanwhile."""
        with self._lock:
            self._listeners.append(listener)
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)
