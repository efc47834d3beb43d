"""The low-level loop of an informer: reflector, delta FIFO, process function.

Guarantees: deltas are processed in order, by the thread that drives the reflector. If one fails,
the others are processed all the same, and its error is raised afterwards. Does not guarantee that a
failed delta is processed again, unless `retry_on_error` is set; but the reflector then lists again,
which brings the latest state.

Source: client-go `tools/cache/controller.go`, Kubernetes 1.33 (`retry_on_error` is of Kubernetes
1.6, and here retries in the next loop instead of at once).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.informers.delta_fifo import (
    DeletedFinalStateUnknown,
    DeltaFIFO,
    Deltas,
    DeltaType,
    ProcessFunc,
)
from kcm.informers.handlers import ResourceEventHandler
from kcm.informers.indexer import Indexer
from kcm.informers.reflector import Reflector
from kcm.informers.source import ListerWatcher

T = TypeVar("T", bound=KubeObject)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Generic[T]):
    """The parts of a controller. `full_resync_period` is in seconds, 0 for never."""

    queue: DeltaFIFO[T]
    cache: Indexer[T]
    lister_watcher: ListerWatcher
    object_type: Resource
    process: ProcessFunc[T]
    full_resync_period: float = 0.0
    retry_on_error: bool = False
    should_resync: Callable[[], bool] | None = None


class Controller(Generic[T]):
    """Puts what a reflector reads into the queue, and processes the queue with `process`."""

    def __init__(
        self, config: Config[T], new_reflector: Callable[[Controller[T]], Reflector[T]]
    ) -> None:
        self.config = config
        self._queue = config.queue
        self._process = config.process
        self._cache = config.cache
        self.reflector = new_reflector(self)

    def has_synced(self) -> bool:
        """Reports whether all objects of the first list have been processed."""
        return self._queue.has_synced()

    @property
    def last_sync_resource_version(self) -> str:
        """The resourceVersion up to which the cache has every write, "" while a list is due."""
        return self.reflector.last_sync_resource_version

    def process_loop(self) -> None:
        """Processes what is queued now. Raises the last error after all deltas were processed."""
        failed: Exception | None = None
        # Counted first: with retry_on_error a failing key is queued again.
        for _ in range(len(self._queue)):
            try:
                self._queue.pop(
                    self._process, block=False, requeue_on_error=self.config.retry_on_error
                )
            except Exception as error:  # noqa: BLE001 - raised below, after the other keys
                failed = error
        if failed is not None:
            raise failed

    def replace(self, objects: Sequence[T]) -> None:
        """Makes the cache hold exactly these objects."""
        self._queue.replace(objects)
        self.process_loop()

    def apply(self, delta_type: DeltaType, key: str, obj: T) -> None:
        """Processes one change from the watch."""
        if not self._queue.pass_through(delta_type, key, obj, self._process):
            self.process_loop()

    def resync(self) -> None:
        """Processes every cached object again."""
        self._queue.resync()
        self.process_loop()

    def current(self, key: str) -> T | None:
        """Returns the cached object under `key`, or None."""
        return self._cache.get_by_key(key)


def process_deltas(
    handler: ResourceEventHandler[T],
    indexer: Indexer[T],
    key: str,
    deltas: Deltas[T],
    is_in_initial_list: bool,
) -> None:
    """Applies the deltas to the cache, and calls the handler for each.

    Whether it is an add, an update or a delete follows from the cache and not from the type of the
    delta, so an update always follows an add.
    """
    for delta_type, obj in deltas:
        if delta_type is DeltaType.DELETED:
            indexer.remove(key)
            handler.on_delete(obj)
        elif not isinstance(obj, DeletedFinalStateUnknown):
            old = indexer.put(key, obj)
            if old is None:
                handler.on_add(obj, is_in_initial_list)
            else:
                handler.on_update(old, obj)
