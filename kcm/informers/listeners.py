"""Notifications, and the base class of the listeners of an informer.

Source: client-go `tools/cache/shared_informer.go`, processorListener, Kubernetes 1.33. Upstream has
listeners with a queue only (`kcm.informers.processor`); a `DirectListener` has none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import structlog

from kcm.informers.delta_fifo import DeletedFinalStateUnknown
from kcm.informers.handlers import ResourceEventHandler
from kcm.informers.observer import Observer

T = TypeVar("T")
log = structlog.get_logger(__name__)


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
