"""A store in memory, handlers that record their calls, and informers that a test drives by hand."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from kcm.api import codec
from kcm.api.apps_v1 import ReplicaSet
from kcm.api.core_v1 import Node, Pod
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.errors import KcmError
from kcm.informers.delta_fifo import DeletedFinalStateUnknown
from kcm.informers.freshness import CacheProgress
from kcm.informers.multiplexer import WatchMultiplexer
from kcm.informers.observer import Observer
from kcm.informers.options import InformerOptions
from kcm.informers.shared_informer import InformerContext, SharedIndexInformer
from kcm.informers.source import Changes, ChangeType, FullList, WatchEntry
from kcm.informers.views import full_view
from kcm.testing.clock import FakeClock

PODS = Pod.resource
NODES = Node.resource
REPLICASETS = ReplicaSet.resource


def obj(
    key: str, resource_version: int = 1, resource: Resource = PODS, **labels: str
) -> KubeObject:
    """Returns an object with this key, kind and resourceVersion."""
    namespace, _, name = key.rpartition("/")
    metadata: dict[str, Any] = {
        "name": name,
        "resourceVersion": str(resource_version),
        "uid": f"uid-{key}",
    }
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = labels
    return codec.decode(
        {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}, resource
    )


def pod(key: str, resource_version: int = 1, **labels: str) -> Pod:
    """Returns a pod with this key and resourceVersion."""
    new_obj = obj(key, resource_version, PODS, **labels)
    assert isinstance(new_obj, Pod)
    return new_obj


class FakeSource:
    """A store in memory: one version counter, and the objects and the change log of each kind."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # one call at a time, as Redis runs scripts
        self.rv = 0
        self.objects: dict[Resource, dict[str, KubeObject]] = {}
        self.log: dict[Resource, list[WatchEntry]] = {}
        self.last: dict[Resource, int] = {}
        self.trimmed: dict[Resource, int] = {}
        self.lists: list[Resource] = []
        self.reads: list[tuple[Mapping[Resource, int], int]] = []
        self.list_errors: list[Exception] = []
        self.read_errors: list[Exception] = []
        # How far behind its objects a list's resourceVersion is.
        self.list_lag = 0

    def put(self, key: str, resource: Resource = PODS, **labels: str) -> int:
        """Creates or changes an object."""
        with self.lock:
            self.rv += 1
            objects = self.objects.setdefault(resource, {})
            change_type: ChangeType = "MODIFIED" if key in objects else "ADDED"
            objects[key] = obj(key, self.rv, resource, **labels)
            return self._append(resource, change_type, key, objects[key])

    def remove(self, key: str, resource: Resource = PODS) -> int:
        """Deletes an object."""
        with self.lock:
            self.rv += 1
            self.objects[resource].pop(key)
            return self._append(resource, "DELETED", key, obj(key, self.rv, resource))

    def foreign(self, resource: Resource = PODS) -> int:
        """Advances the kind's stream past an entry that its reader skips."""
        with self.lock:
            self.rv += 1
            self.last[resource] = self.rv
            return self.rv

    def trim(self, resource: Resource = PODS) -> None:
        """Deletes the log of the kind."""
        with self.lock:
            self.log[resource] = []
            self.trimmed[resource] = self.last.get(resource, 0)

    def list_all(self, resource: Resource) -> FullList:
        with self.lock:
            self.lists.append(resource)
            if self.list_errors:
                raise self.list_errors.pop(0)
            items = [codec.decode(codec.encode(o), resource) for o in self._of(resource).values()]
            rv = max(self.rv - self.list_lag, self.trimmed.get(resource, 0))
            return FullList(items, rv)

    def read_changes(self, positions: Mapping[Resource, int], block_ms: int) -> Changes:
        with self.lock:
            self.reads.append((dict(positions), block_ms))
            if self.read_errors:
                raise self.read_errors.pop(0)
            gone = frozenset(r for r, at in positions.items() if at < self.trimmed.get(r, 0))
            entries = [
                change
                for resource, at in positions.items()
                if resource not in gone
                for change in self.log.get(resource, [])
                if change.resource_version > at
            ]
            reached = {
                r: max(at, self.last.get(r, 0)) for r, at in positions.items() if r not in gone
            }
            return Changes(entries, gone, reached, self.last_rvs(list(positions)))

    def last_rvs(self, resources: Sequence[Resource]) -> Mapping[Resource, int]:
        return {resource: self.last.get(resource, 0) for resource in resources}

    def inject(
        self, change_type: ChangeType, key: str, raw: bytes, resource: Resource = PODS
    ) -> int:
        """Adds an entry with the bytes `raw` to the log."""
        with self.lock:
            self.rv += 1
            self.last[resource] = self.rv
            self.log.setdefault(resource, []).append(
                WatchEntry(resource, self.rv, change_type, key, raw)
            )
            return self.rv

    def _append(
        self, resource: Resource, change_type: ChangeType, key: str, what: KubeObject
    ) -> int:
        self.last[resource] = self.rv
        change = WatchEntry(resource, self.rv, change_type, key, codec.encode(what))
        self.log.setdefault(resource, []).append(change)
        return self.rv

    def _of(self, resource: Resource) -> dict[str, KubeObject]:
        return self.objects.get(resource, {})


class Recorder:
    """A handler that records its events as short texts."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.told = threading.Condition()

    def on_add(self, obj: KubeObject, is_in_initial_list: bool) -> None:
        self._note(f"add {obj.key}" + (" initially" if is_in_initial_list else ""))

    def on_update(self, old: KubeObject, new: KubeObject) -> None:
        before, after = old.metadata.resource_version, new.metadata.resource_version
        self._note(f"update {new.key} {before}->{after}")

    def on_delete(self, obj: KubeObject | DeletedFinalStateUnknown[Any]) -> None:
        unknown = isinstance(obj, DeletedFinalStateUnknown)
        self._note(f"delete {obj.key}" + (" unknown" if unknown else ""))

    def wait_for(self, count: int) -> list[str]:
        """Waits until `count` events are recorded, and returns all; the handler runs in another
        thread.
        """
        with self.told:
            assert self.told.wait_for(lambda: len(self.events) >= count, 10), self.events
            return list(self.events)

    def _note(self, event: str) -> None:
        with self.told:
            self.events.append(event)
            self.told.notify_all()


class CountingObserver(Observer):
    """An observer that records its calls as short texts."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_list(self, kind: str, items: int, seconds: float) -> None:
        self.seen.append(f"listed {kind} {items}")

    def on_watch(self, kind: str, entries: int) -> None:
        self.seen.append(f"watched {kind} {entries}")

    def on_failure(self, kind: str, step: str, error: Exception) -> None:
        self.seen.append(f"failed {kind} {step}")

    def on_handler_crash(self, kind: str, handler: str, error: Exception) -> None:
        self.seen.append(f"crashed {kind} {handler} {error}")

    def on_handler_overflow(self, kind: str, handler: str) -> None:
        self.seen.append(f"overflowed {kind} {handler}")


class World:
    """Informers on a fake store; the test calls `turn` in place of a host."""

    def __init__(self, **options: Any) -> None:
        self.source = FakeSource()
        self.clock = FakeClock()
        self.observer = CountingObserver()
        self.progress = CacheProgress()
        self.context = InformerContext(
            source=self.source,
            clock=self.clock,
            options=InformerOptions(**{"merge_seconds": 0.0, **options}),
            observer=self.observer,
            progress=self.progress,
            rng=random.Random(1),
        )
        self.multiplexer: WatchMultiplexer = self.context.new_multiplexer()

    def informer(
        self, resource: Resource = PODS, **options: Any
    ) -> SharedIndexInformer[KubeObject]:
        return SharedIndexInformer(resource, full_view(resource), self.context, **options)

    def start_informer(self, resource: Resource = PODS) -> SharedIndexInformer[KubeObject]:
        """Starts an informer, and returns it after its first list."""
        informer = self.informer(resource)
        informer.start(self.multiplexer)
        self.turn()
        return informer

    def turn(self, times: int = 1) -> None:
        """Takes turns as a host does, whose clock then moves on. What turns raise is dropped."""
        loop = self.multiplexer
        for _ in range(times):
            loop.woken.clear()
            try:
                turn = loop.turn(self.context.options.block_ms / 1000)
            except (KcmError, RuntimeError):
                continue
            self.clock.wait(loop.woken, turn.rest if loop.reads else turn.soonest)


def read_cache(informer: SharedIndexInformer[KubeObject]) -> dict[str, str | None]:
    """Returns the resourceVersion of each object in the cache, by key."""
    return {o.key: o.metadata.resource_version for o in informer.get_store().list()}
