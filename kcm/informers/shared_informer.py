"""One cache of one kind for all code of the process, with notifications for event handlers.

Guarantees: each handler sees add before update before delete for every object, in order. A handler
that is added late first gets all cached objects, as if in its initial list. The cache is changed
before the notification is sent.

Does not guarantee any order between handlers, nor that cache and notification agree (the cache may
be ahead). Without handlers there are no notifications and no threads, only the cache.

Source: client-go `tools/cache/shared_informer.go`, Kubernetes 1.33.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import structlog

from kcm.api import codec
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.clock import Clock
from kcm.informers.backoff import BackoffManager
from kcm.informers.controller import Config, Controller, process_deltas
from kcm.informers.delta_fifo import DeletedFinalStateUnknown, DeltaFIFO, Deltas
from kcm.informers.freshness import CacheProgress
from kcm.informers.handlers import ResourceEventHandler
from kcm.informers.indexer import Indexer, meta_namespace_key
from kcm.informers.multiplexer import WatchMultiplexer
from kcm.informers.mutation_detector import CacheMutationDetector
from kcm.informers.observer import Observer
from kcm.informers.options import InformerOptions
from kcm.informers.processor import (
    AddNotification,
    DeleteNotification,
    DirectListener,
    Listener,
    ProcessorListener,
    SharedProcessor,
    UpdateNotification,
)
from kcm.informers.reflector import Reflector, TransformFunc
from kcm.informers.source import ListerWatcher
from kcm.informers.store import IndexFunc
from kcm.informers.views import ObjectView

T = TypeVar("T", bound=KubeObject)
log = structlog.get_logger(__name__)

MINIMUM_RESYNC_PERIOD = 1.0  # seconds; shorter periods are raised to it, as upstream


@dataclass(frozen=True, slots=True, kw_only=True)
class InformerContext:
    """The settings and parts that the informers of one process share."""

    source: ListerWatcher
    clock: Clock
    options: InformerOptions
    observer: Observer
    progress: CacheProgress
    rng: random.Random

    def new_multiplexer(self) -> WatchMultiplexer:
        """Returns a multiplexer for informers of this context."""
        return WatchMultiplexer(
            self.source,
            self.progress,
            options=self.options,
            clock=self.clock,
            observer=self.observer,
        )

    def new_list_backoff(self) -> BackoffManager:
        """Returns the back-off of one reflector's lists."""
        return BackoffManager(
            self.clock,
            self.rng,
            initial=self.options.list_backoff_initial,
            maximum=self.options.list_backoff_max,
            reset_after=self.options.list_backoff_reset,
            jitter=self.options.list_backoff_jitter,
        )


class SharedIndexInformer(Generic[T]):
    """The informer of one kind. Periods are in seconds, 0 for never."""

    def __init__(
        self,
        resource: Resource,
        view: ObjectView[T],
        context: InformerContext,
        *,
        default_resync: float | None = None,
        retry_on_error: bool = False,
    ) -> None:
        self.resource = resource
        self._view = view
        self._context = context
        self._retry_on_error = retry_on_error
        options = context.options
        self._default_resync = options.default_resync if default_resync is None else default_resync
        # The seconds between the reflector's checks whether a handler's resync is due.
        self._resync_check_period = self._default_resync
        self._indexer: Indexer[T] = Indexer()
        self._processor: SharedProcessor[T] = SharedProcessor()
        self._transform: TransformFunc[T] | None = None
        self._relist_handlers: list[Callable[[int], None]] = []
        self._controller: Controller[T] | None = None
        self._stopped = False
        self._started_lock = threading.Lock()
        # Held while deltas are processed, so that a late handler is added between two of them.
        self._block_deltas = threading.Lock()
        self.mutation_detector = (
            CacheMutationDetector(view.name, codec.encode, context.clock)
            if options.detect_mutations
            else None
        )

    def add_event_handler(self, handler: ResourceEventHandler[T]) -> Listener[T]:
        """Adds an event handler with the informer's own resync period.

        See `add_event_handler_with_resync_period`.
        """
        return self.add_event_handler_with_resync_period(handler, self._default_resync)

    def add_event_handler_with_resync_period(
        self, handler: ResourceEventHandler[T], resync_period: float, *, direct: bool = False
    ) -> Listener[T]:
        """Adds an event handler that is resynced every `resync_period` seconds (0: never).

        A handler has a thread of its own, unless it is `direct` (see `DirectListener`).

        The returned registration reports when the handler has synced. Once the informer has
        started, periods shorter than the shortest so far are raised to that. Raises: RuntimeError
        if the informer has stopped.
        """
        with self._started_lock:
            if self._stopped:
                raise RuntimeError("handler was not added: the informer has stopped already")
            requested = self._settle_resync_period(resync_period)
            listener = self._new_listener(handler, requested, direct=direct)
            with self._block_deltas:
                for obj in self._indexer.list():
                    listener.add(AddNotification(obj, True))
                self._processor.add_listener(listener)
            return listener

    def remove_event_handler(self, registration: Listener[T]) -> None:
        """Removes this event handler. Notifications that wait for it are dropped."""
        with self._block_deltas:
            self._processor.remove_listener(registration)

    def add_relist_handler(self, handler: Callable[[int], None]) -> None:
        """Adds a function to call after every list but the first, with the list's resourceVersion.

        Such a list follows lost entries, of which the event handlers see only the result: nothing
        of an object that was created and deleted meanwhile. The informer's thread makes the call,
        so `handler` must return at once and must not raise. Upstream has no such handler.
        """
        self._relist_handlers.append(handler)

    def set_transform(self, transform: TransformFunc[T]) -> None:
        """Sets a function that changes objects before they are cached; it may change its argument.

        Raises: RuntimeError once the informer has started.
        """
        with self._started_lock:
            if self._controller is not None:
                raise RuntimeError("informer has already started")
            self._transform = transform

    def add_indexers(self, indexers: Mapping[str, IndexFunc[T]]) -> None:
        """Adds named indexes. Raises: ValueError for a name that has another function."""
        self._indexer.add_indexers(indexers)

    def get_store(self) -> Indexer[T]:
        """Returns the cache, for reading only."""
        return self._indexer

    get_indexer = get_store

    @property
    def has_started(self) -> bool:
        """Whether a multiplexer drives this informer."""
        return self._controller is not None

    def has_synced(self) -> bool:
        """Reports whether the cache has the whole first list."""
        return self._controller is not None and self._controller.has_synced()

    @property
    def refusal(self) -> str:
        """Why the server refuses to list the kind, "" if it does not."""
        return "" if self._controller is None else self._controller.reflector.refusal

    @property
    def last_sync_resource_version(self) -> str:
        """The resourceVersion up to which the cache has every write, "" while a list is due."""
        controller = self._controller
        return "" if controller is None else controller.last_sync_resource_version

    def start(self, multiplexer: WatchMultiplexer) -> None:
        """Makes the multiplexer drive this informer. Does nothing if it has started already."""
        with self._started_lock:
            if self._controller is not None:
                return
            self._controller = self._new_controller()
            self._processor.start()
        multiplexer.add(self._controller.reflector)

    def leave(self, multiplexer: WatchMultiplexer) -> None:
        """Stops the informer: the multiplexer no longer drives it, so its cache becomes stale."""
        with self._started_lock:
            controller, self._stopped = self._controller, True
        if controller is not None:
            multiplexer.remove(controller.reflector)
        self._context.progress.forget(self.resource)
        self._processor.stop(0.0)

    def stop(self, timeout: float = 1.0) -> None:
        """Stops the threads of the handlers. Stop the multiplexer that drives the informer
        first.
        """
        with self._started_lock:
            self._stopped = True
        self._processor.stop(timeout)

    def handle_deltas(self, key: str, deltas: Deltas[T], is_in_initial_list: bool) -> None:
        """Applies these deltas to the cache and notifies the handlers."""
        with self._block_deltas:
            process_deltas(self, self._indexer, key, deltas, is_in_initial_list)

    def on_add(self, obj: T, is_in_initial_list: bool) -> None:
        """Notifies the handlers of an add (called by process_deltas)."""
        if self.mutation_detector is not None:
            self.mutation_detector.add_object(obj.key, obj)
        if self._processor.listeners:
            self._processor.distribute(AddNotification(obj, is_in_initial_list), sync=False)

    def on_update(self, old: T, new: T) -> None:
        """Notifies the handlers of an update; without a change, only those whose resync is due."""
        if self.mutation_detector is not None:
            self.mutation_detector.add_object(new.key, new)
        if self._processor.listeners:
            same = old.metadata.resource_version == new.metadata.resource_version
            self._processor.distribute(UpdateNotification(old, new), sync=same)

    def on_delete(self, obj: T | DeletedFinalStateUnknown[T]) -> None:
        """Notifies the handlers of a delete."""
        if self.mutation_detector is not None:
            self.mutation_detector.remove_object(obj.key)
        if self._processor.listeners:
            self._processor.distribute(DeleteNotification(obj), sync=False)

    def _new_controller(self) -> Controller[T]:
        config = Config(
            queue=DeltaFIFO(meta_namespace_key, self._indexer),
            cache=self._indexer,
            lister_watcher=self._context.source,
            object_type=self.resource,
            process=self.handle_deltas,
            full_resync_period=self._resync_check_period,
            retry_on_error=self._retry_on_error,
            should_resync=lambda: self._processor.should_resync(self._context.clock.monotonic()),
        )
        return Controller(config, self._new_reflector)

    def _new_reflector(self, controller: Controller[T]) -> Reflector[T]:
        config = controller.config
        return Reflector(
            config.object_type,
            config.lister_watcher,
            controller,
            self._view,
            mark=self._context.progress.mark(config.object_type),
            backoff=self._context.new_list_backoff(),
            clock=self._context.clock,
            observer=self._context.observer,
            transform=self._transform,
            resync_period=config.full_resync_period,
            should_resync=config.should_resync,
            on_relist=self._call_relist_handlers,
        )

    def _call_relist_handlers(self, resource_version: int) -> None:
        for handler in self._relist_handlers:
            handler(resource_version)

    def _new_listener(
        self, handler: ResourceEventHandler[T], requested: float, *, direct: bool
    ) -> Listener[T]:
        new = (
            DirectListener
            if direct or not self._context.options.threaded
            else partial(ProcessorListener, queue_size=self._context.options.handler_queue_size)
        )
        listener: Listener[T] = new(
            handler,
            kind=self._view.name,
            upstream_has_synced=self.has_synced,
            observer=self._context.observer,
            requested_resync_period=requested,
        )
        self._set_resync_period(listener)
        return listener

    def _settle_resync_period(self, wanted: float) -> float:
        """Returns the resync period for a handler that requests `wanted` seconds.

        If it is the shortest so far, the reflector checks that often whether a resync is due.
        """
        if wanted <= 0 or not self._context.options.threaded:
            return 0.0
        wanted = max(wanted, MINIMUM_RESYNC_PERIOD)
        check = self._resync_check_period
        if check and wanted >= check:
            return wanted
        if self._controller is not None:
            log.warning(
                "Resync period was raised, because the informer has started already",
                kind=self._view.name,
                wanted=wanted,
                resync_check_period=check,
            )
            return check
        self._resync_check_period = wanted
        for listener in self._processor.listeners:
            self._set_resync_period(listener)
        return wanted

    def _set_resync_period(self, listener: Listener[T]) -> None:
        requested = listener.requested_resync_period
        period = max(requested, self._resync_check_period) if requested else 0.0
        listener.set_resync_period(period, self._context.clock.monotonic())
