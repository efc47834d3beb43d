"""The informers of one process: one per kind, one thread that reads for all.

Guarantees: asking twice for a kind gives the same informer; each is started
once, late ones by the next `start()`; nothing runs before `start()`, and
nothing after `shutdown()`, which waits for the threads.

Does not guarantee: to survive a fork. Start in the process that uses it.

Source: client-go `informers/factory.go` and `metadata/metadatainformer`, Kubernetes 1.33.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast, overload

import structlog

from kcm.api.scheme import Resource, resource_of
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
from kcm.informers.source import ListerWatcher
from kcm.informers.views import (
    PartialObjectMetadata,
    full_view,
    metadata_view,
)

T = TypeVar("T", bound=KubeObject)
log = structlog.get_logger(__name__)

SYNCED_POLL_SECONDS = 0.1  # upstream's syncedPollPeriod

AnyInformer = SharedIndexInformer[Any]


class SharedInformerFactory:
    """Makes, starts and stops the informers of one process."""

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
        self._multiplexer: WatchMultiplexer = self._context.new_multiplexer()
        self._shut_down = False

    @overload
    def informer_for(self, kind: type[T]) -> SharedIndexInformer[T]: ...

    @overload
    def informer_for(self, kind: Resource) -> SharedIndexInformer[KubeObject]: ...

    def informer_for(self, kind: Resource | type[KubeObject]) -> AnyInformer:
        """Returns the kind's informer, which is made when it is first asked for.

        Raises: UnknownKind for a model that is no kind's.
        """
        resource = kind if isinstance(kind, Resource) else resource_of(kind)
        with self._lock:
            if resource not in self._informers:
                self._informers[resource] = SharedIndexInformer(
                    resource, full_view(resource), self._context
                )
            return self._informers[resource]

    def metadata_informer_for(
        self, kind: Resource | type[KubeObject]
    ) -> SharedIndexInformer[PartialObjectMetadata]:
        """Returns an informer of the kind with a cache of its own, which holds metadata only."""
        resource = kind if isinstance(kind, Resource) else resource_of(kind)
        with self._lock:
            if resource not in self._metadata_informers:
                self._metadata_informers[resource] = SharedIndexInformer(
                    resource, metadata_view(resource), self._context
                )
            return self._metadata_informers[resource]

    def forget(self, informer: AnyInformer) -> None:
        """Stops an informer, and no longer knows it."""
        with self._lock:
            for known in (self._informers, self._metadata_informers):
                if known.get(informer.resource) is informer:
                    del known[informer.resource]
        informer.leave(self._multiplexer)

    def set_transform(self, kind: Resource | type[T], transform: Callable[[T], T]) -> None:
        """Transforms the objects of a kind before they are cached.

        Raises: RuntimeError if its informer has started.
        """
        resource = kind if isinstance(kind, Resource) else resource_of(kind)
        self.informer_for(resource).set_transform(
            cast(Callable[[KubeObject], KubeObject], transform)
        )

    def position_of(self, resource: Resource) -> int:
        """Returns the resourceVersion up to which every cache of the kind holds every write.

        Raises: CacheNotSynced if there is no cache of this kind.
        """
        return self._context.progress.position_of(resource)

    def freshness_barrier(self) -> FreshnessBarrier:
        """Returns the barrier that waits until these caches hold every earlier write."""
        context = self._context
        if context.options.pull:
            return PullingBarrier(self._multiplexer.catch_up, context.progress, context.clock)
        return WaitingBarrier(context.source, context.progress, context.clock)

    @property
    def informers(self) -> tuple[AnyInformer, ...]:
        """Every informer that was asked for so far."""
        with self._lock:
            return (*self._informers.values(), *self._metadata_informers.values())

    def on_turn(self, after_turn: Callable[[], None]) -> None:
        """Calls `after_turn` in the informers' thread whenever it has handed out what it read."""
        self._multiplexer.on_turn(after_turn)

    def start(self) -> None:
        """Starts the informers that have not started, and the thread of the watch multiplexer.

        Raises: RuntimeError after a shutdown.
        """
        if self._shut_down:
            raise RuntimeError("the informer factory has been shut down")
        for informer in self.informers:
            informer.start(self._multiplexer)
        self._multiplexer.start()

    def wait_for_cache_sync(self, stop: threading.Event, *informers: AnyInformer) -> bool:
        """Waits until these informers (all, if none is named) have synced.

        It looks every 100 ms. Returns False if `stop` is set first.
        """
        waited_for = informers or self.informers
        while not stop.is_set():
            if all(informer.has_synced() for informer in waited_for):
                return True
            self._context.clock.wait(stop, SYNCED_POLL_SECONDS)
        return False

    def check_mutations(self) -> list[Mutation]:
        """Returns what the mutation detectors find; nothing unless `detect_mutations` is set."""
        detectors = [informer.mutation_detector for informer in self.informers]
        return [mutation for detector in detectors if detector for mutation in detector.check()]

    def shutdown(self) -> None:
        """Stops all threads and waits for them, at most one blocking read and a second."""
        self._shut_down = True
        self._multiplexer.stop()
        self._context.progress.close()
        if not self._multiplexer.join(self._context.options.block_ms / 1000 + 1):
            log.warning("The informers' thread did not stop in time")
        for informer in self.informers:
            informer.stop()
