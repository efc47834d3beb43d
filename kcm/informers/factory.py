"""The informers of one process: one per kind, and one loop that reads for all.

Guarantees: two requests for a kind return the same informer. Each is started once, a late one by
the next `start()`. Nothing is read before `start()`, and no handler is called after `shutdown()`.

Does not survive a fork: start it in the process that uses it.

Source: client-go `informers/factory.go` and `metadata/metadatainformer`, Kubernetes 1.33.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast, overload

import structlog

from kcm.api.custom.partial import PartialObjectMetadata
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.clock import Clock, RealClock
from kcm.informers.freshness import (
    CacheProgress,
    FreshnessBarrier,
    PullingBarrier,
    WaitingBarrier,
)
from kcm.informers.multiplexer import WatchMultiplexer
from kcm.informers.mutation_detector import Mutation
from kcm.informers.observer import Observer
from kcm.informers.options import InformerOptions
from kcm.informers.shared_informer import InformerContext, SharedIndexInformer
from kcm.informers.source import ListerWatcher, WatchEntry
from kcm.informers.views import full_view, metadata_view

T = TypeVar("T", bound=KubeObject)
log = structlog.get_logger(__name__)

SYNCED_POLL_SECONDS = 0.1  # upstream's syncedPollPeriod

AnyInformer = SharedIndexInformer[Any]


class SharedInformerFactory:
    """Creates, starts and stops the informers of one process."""

    def __init__(
        self,
        source: ListerWatcher,
        *,
        clock: Clock | None = None,
        options: InformerOptions | None = None,
        observer: Observer | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._context = InformerContext(
            source=source,
            clock=clock or RealClock(),
            options=options or InformerOptions(),
            observer=observer or Observer(),
            progress=CacheProgress(),
            rng=rng or random.Random(),
        )
        self._lock = threading.Lock()
        self._informers: dict[Resource, AnyInformer] = {}
        self._metadata_informers: dict[Resource, SharedIndexInformer[PartialObjectMetadata]] = {}
        self.loop: WatchMultiplexer = self._context.new_multiplexer()
        self._shut_down = False

    @overload
    def informer_for(self, kind: type[T]) -> SharedIndexInformer[T]: ...

    @overload
    def informer_for(self, kind: Resource) -> SharedIndexInformer[KubeObject]: ...

    def informer_for(self, kind: Resource | type[KubeObject]) -> AnyInformer:
        """Returns the kind's informer, which the first call creates."""
        resource = kind if isinstance(kind, Resource) else kind.resource
        with self._lock:
            if resource not in self._informers:
                self._informers[resource] = SharedIndexInformer(
                    resource, full_view(resource), self._context
                )
            return self._informers[resource]

    def metadata_informer_for(
        self, kind: Resource | type[KubeObject]
    ) -> SharedIndexInformer[PartialObjectMetadata]:
        """Returns the kind's metadata-only informer, which has a cache of its own."""
        resource = kind if isinstance(kind, Resource) else kind.resource
        with self._lock:
            if resource not in self._metadata_informers:
                self._metadata_informers[resource] = SharedIndexInformer(
                    resource, metadata_view(resource), self._context
                )
            return self._metadata_informers[resource]

    def forget(self, informer: AnyInformer) -> None:
        """Stops an informer and removes it from the factory."""
        with self._lock:
            for informers in (self._informers, self._metadata_informers):
                if informers.get(informer.resource) is informer:
                    del informers[informer.resource]
        informer.leave(self.loop)

    def set_transform(self, kind: Resource | type[T], transform: Callable[[T], T]) -> None:
        """Sets a function that changes the objects of a kind before they are cached.

        Raises: RuntimeError if its informer has started.
        """
        resource = kind if isinstance(kind, Resource) else kind.resource
        self.informer_for(resource).set_transform(
            cast(Callable[[KubeObject], KubeObject], transform)
        )

    def position_of(self, resource: Resource) -> int:
        """Returns the resourceVersion up to which every cache of the kind has every write.

        Raises: CacheNotSynced if there is no cache of this kind.
        """
        return self._context.progress.position_of(resource)

    def has_listed(self, resource: Resource) -> bool:
        """Reports whether there are caches of the kind, and all of them have their first list."""
        return self._context.progress.has_listed(resource)

    def hurrying(self) -> AbstractContextManager[None]:
        """Makes the informers read without rest until the context ends."""
        return self._context.progress.hurrying()

    def freshness_barrier(self) -> FreshnessBarrier:
        """Returns the barrier that waits until these caches have every earlier write."""
        context = self._context
        if context.options.pull:
            return PullingBarrier(self.loop.catch_up, context.progress, context.clock)
        return WaitingBarrier(context.source, context.progress, context.clock)

    @property
    def informers(self) -> tuple[AnyInformer, ...]:
        """All informers that were requested so far."""
        with self._lock:
            return (*self._informers.values(), *self._metadata_informers.values())

    def on_turn(self, after_turn: Callable[[], None]) -> None:
        """Sets a function that the informers' loop calls whenever it has handed out what it
        read.
        """
        self.loop.on_turn(after_turn)

    def on_read(self, callback: Callable[[Sequence[WatchEntry]], None]) -> None:
        """Sets a function that gets all entries of each read before they are handed out."""
        self.loop.on_read(callback)

    def start(self) -> None:
        """Starts the informers that have not started. The host of `loop` lets them read.

        Raises: RuntimeError after a shutdown.
        """
        if self._shut_down:
            raise RuntimeError("the informer factory has been shut down")
        for informer in self.informers:
            informer.start(self.loop)

    def wait_for_cache_sync(self, stop: threading.Event, *informers: AnyInformer) -> bool:
        """Waits until these informers, by default all, have synced.

        It checks every 100 ms. Returns False if `stop` is set first.
        """
        waited_for = informers or self.informers
        while not stop.is_set():
            if not self._context.options.threaded:
                self.loop.turn(0.0)
            if all(informer.has_synced() for informer in waited_for):
                return True
            self._context.clock.wait(stop, SYNCED_POLL_SECONDS)
        return False

    def check_mutations(self) -> list[Mutation]:
        """Returns the findings of the mutation detectors; none unless `detect_mutations` is set."""
        detectors = [informer.mutation_detector for informer in self.informers]
        return [mutation for detector in detectors if detector for mutation in detector.check()]

    def shutdown(self) -> None:
        """Wakes all threads that wait for caches, and stops the handlers. Stop the host of `loop`
        first.
        """
        self._shut_down = True
        self._context.progress.close()
        for informer in self.informers:
            informer.stop()
