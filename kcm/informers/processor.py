"""Passes an informer's notifications to its event handlers.

Guarantees: each handler has one ordered queue and one thread, so a slow or crashing handler does
not delay the others. Distributing never blocks. A handler that raises is logged and counted, and
gets its next notification.

Does not guarantee bounded memory for a handler that never keeps up. Beyond its bounded queue
notifications wait in an unbounded overflow, in order; each time the overflow begins, that is logged
and counted. Notifications that wait at `stop` are dropped.

Source: client-go `tools/cache/shared_informer.go`, sharedProcessor and processorListener,
Kubernetes 1.33 (one thread here for upstream's two goroutines).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import structlog

from kcm.informers.delta_fifo import DeletedFinalStateUnknown
from kcm.informers.handlers import ResourceEventHandler
from kcm.informers.observer import Observer
from kcm.loops import start_thread

T = TypeVar("T")


# --- Notifications, and the base class of the listeners of an informer.
#
# Source: client-go `tools/cache/shared_informer.go`, processorListener, Kubernetes 1.33. Upstream
# has listeners with a queue only; a `DirectListener` has none.


class AddNotification(NamedTuple, Generic[T]):
    """Notifies a handler of an object that was added."""

    obj: T
    is_in_initial_list: bool

    def deliver(self, handler: ResourceEventHandler[T]) -> None:
        handler.on_add(self.obj, self.is_in_initial_list)


class UpdateNotification(NamedTuple, Generic[T]):
    """Notifies a handler of an object that changed, or of the same object twice in a resync."""

    old: T
    new: T

    def deliver(self, handler: ResourceEventHandler[T]) -> None:
        handler.on_update(self.old, self.new)


class DeleteNotification(NamedTuple, Generic[T]):
    """Notifies a handler of an object that was deleted."""

    obj: T | DeletedFinalStateUnknown[T]

    def deliver(self, handler: ResourceEventHandler[T]) -> None:
        handler.on_delete(self.obj)


Notification = AddNotification[T] | UpdateNotification[T] | DeleteNotification[T]


class Listener(Generic[T]):
    """One event handler of an informer, and the handle by which its caller can remove it.

    `resync_period` is in seconds, 0 for never.
    """

    def __init__(
        self,
        handler: ResourceEventHandler[T],
        *,
        kind: str,
        upstream_has_synced: Callable[[], bool],
        observer: Observer,
        requested_resync_period: float = 0.0,
    ) -> None:
        self.name = type(handler).__name__
        self.requested_resync_period = requested_resync_period
        self.resync_period = 0.0
        # Whether the present resync is for this handler; for a new handler it is.
        self.is_syncing = True
        self._next_resync = 0.0
        self._handler = handler
        self._kind = kind
        self._upstream_has_synced = upstream_has_synced
        self._observer = observer

    def has_synced(self) -> bool:
        """Reports whether the informer has synced and the handler has got all of its first list."""
        return self._upstream_has_synced()

    def set_resync_period(self, seconds: float, now: float) -> None:
        """Sets the resync period in seconds. It begins at `now`, in seconds of the monotonic
        clock.
        """
        self.resync_period = seconds
        self._next_resync = now + seconds

    def should_resync(self, now: float) -> bool:
        """Reports whether this handler's resync is due, and if so sets the time of the next one."""
        if self.resync_period == 0 or now < self._next_resync:
            return False
        self._next_resync = now + self.resync_period
        return True

    def add(self, notification: Notification[T]) -> None:
        """Takes a notification for the handler."""
        raise NotImplementedError

    def start(self) -> None:
        """Starts the thread of a listener that has one."""

    def stop(self) -> None:
        """Stops the thread of a listener that has one."""

    def join(self, timeout: float) -> None:
        """Waits up to `timeout` seconds for the thread of a listener that has one."""

    def _deliver(self, notification: Notification[T]) -> None:
        try:
            notification.deliver(self._handler)
        except Exception as error:  # a handler that fails on one change must get the next ones
            log.exception("Informer handler crashed", kind=self._kind, handler=self.name)
            self._observer.on_handler_crash(self._kind, self.name, error)


class DirectListener(Listener[T]):
    """Calls its handler in the informer's thread, before the informer continues.

    It is for handlers that only record a change: there is no queue and no thread to wake. Such a
    handler must return at once and may not call the informer.
    """

    def add(self, notification: Notification[T]) -> None:
        """Calls the handler."""
        self._deliver(notification)


log = structlog.get_logger(__name__)


class ProcessorListener(Listener[T]):
    """A listener with a queue and a thread."""

    def __init__(
        self,
        handler: ResourceEventHandler[T],
        *,
        kind: str,
        queue_size: int,
        upstream_has_synced: Callable[[], bool],
        observer: Observer,
        requested_resync_period: float = 0.0,
    ) -> None:
        super().__init__(
            handler,
            kind=kind,
            upstream_has_synced=upstream_has_synced,
            observer=observer,
            requested_resync_period=requested_resync_period,
        )
        self._queue_size = queue_size
        self._changed = threading.Condition(threading.Lock())
        # Everything in the queue is older than everything in the overflow.
        self._queue: deque[Notification[T]] = deque()
        self._overflow: deque[Notification[T]] = deque()
        self._initial_waiting = 0
        self._idle = False
        self._stopped = False
        self._thread: threading.Thread | None = None

    def has_synced(self) -> bool:
        return super().has_synced() and self._initial_waiting == 0

    def add(self, notification: Notification[T]) -> None:
        """Queues a notification. Never blocks."""
        with self._changed:
            if isinstance(notification, AddNotification) and notification.is_in_initial_list:
                self._initial_waiting += 1
            if len(self._queue) < self._queue_size and not self._overflow:
                self._queue.append(notification)
            else:
                self._report_overflow()
                self._overflow.append(notification)
            if self._idle:
                self._idle = False
                self._changed.notify()

    def count_waiting(self) -> int:
        """Returns the number of notifications that wait."""
        with self._changed:
            return len(self._queue) + len(self._overflow)

    def start(self) -> None:
        """Starts the thread."""
        name = f"informer-{self._kind}-{self.name}"
        self._thread = start_thread(name, self.run)

    def run(self) -> None:
        """Delivers notifications until stopped."""
        while True:
            batch = self._take()
            if not batch:
                return
            for notification in batch:
                if self._stopped:
                    return
                self._deliver(notification)

    def stop(self) -> None:
        """Stops the thread after the present notification. Those that wait are dropped."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def join(self, timeout: float) -> None:
        """Waits up to `timeout` seconds for the thread, except in a handler that removes itself."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _report_overflow(self) -> None:
        if not self._overflow:
            # Not a warning, since it is also the effect of a first list longer than the queue.
            log.info(
                "Informer handler's queue overflows",
                kind=self._kind,
                handler=self.name,
                queue_size=self._queue_size,
            )
            self._observer.on_handler_overflow(self._kind, self.name)

    def _take(self) -> deque[Notification[T]] | None:
        with self._changed:
            while not self._queue and not self._stopped:
                self._idle = True
                self._changed.wait()
            self._idle = False
            if self._stopped:
                return None
            batch, self._queue = self._queue, deque()
            while self._overflow and len(self._queue) < self._queue_size:
                self._queue.append(self._overflow.popleft())
            return batch

    def _deliver(self, notification: Notification[T]) -> None:
        super()._deliver(notification)
        if isinstance(notification, AddNotification) and notification.is_in_initial_list:
            with self._changed:
                self._initial_waiting -= 1


class SharedProcessor(Generic[T]):
    """The listeners of one informer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Replaced, never changed in place: distributing reads it without the lock.
        self._listeners: tuple[Listener[T], ...] = ()
        self._started = False

    def add_listener(self, listener: Listener[T]) -> None:
        """Adds a listener, and starts it if the others have started."""
        with self._lock:
            self._listeners = (*self._listeners, listener)
            if self._started:
                listener.start()

    def remove_listener(self, listener: Listener[T]) -> None:
        """Stops a listener and drops its waiting notifications. Removing it twice is harmless."""
        with self._lock:
            self._listeners = tuple(other for other in self._listeners if other is not listener)
        listener.stop()

    @property
    def listeners(self) -> tuple[Listener[T], ...]:
        """The listeners, in the order in which they were added."""
        return self._listeners

    def distribute(self, notification: Notification[T], *, sync: bool) -> None:
        """Passes the notification to every listener, or with `sync` to those whose resync is
        due.
        """
        for listener in self._listeners:
            if not sync or listener.is_syncing:
                listener.add(notification)

    def should_resync(self, now: float) -> bool:
        """Reports whether any listener's resync is due, and sets `is_syncing` of every listener."""
        for listener in self._listeners:
            listener.is_syncing = listener.should_resync(now)
        return any(listener.is_syncing for listener in self._listeners)

    def start(self) -> None:
        """Starts the listeners' threads."""
        with self._lock:
            self._started = True
            for listener in self._listeners:
                listener.start()

    def stop(self, timeout: float) -> None:
        """Stops all listeners, and waits up to `timeout` seconds for each thread."""
        with self._lock:
            listeners, self._listeners = self._listeners, ()
            self._started = False
        for listener in listeners:
            listener.stop()
        for listener in listeners:
            listener.join(timeout)
