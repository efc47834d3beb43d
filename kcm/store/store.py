"""The verbs of the store: what the Kubernetes API means by create, update, delete.

Guarantees: every write is checked, defaulted and validated by the same rules,
whoever sends it; an update against a stale resourceVersion conflicts; a verb
without a resourceVersion is retried until it meets the object unchanged.
Does not guarantee that a call which raised `StoreUnavailable` did nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from kcm import errors
from kcm.api import codec, scheme
from kcm.api.meta_v1 import KubeObject
from kcm.api.scheme import Resource
from kcm.clock import Clock, RealClock
from kcm.redisio import Fence, RedisIO
from kcm.store import rules
from kcm.store.items import Guard, Operation, Pattern, WriteItem, WriteResult
from kcm.store.merge import merge_patch
from kcm.store.reader import Reader
from kcm.store.rules import DeleteOptions
from kcm.store.watch import Changes, WatchReader
from kcm.store.writer import Writer

T = TypeVar("T", bound=KubeObject)
_ATTEMPTS = 10  # of a read-modify-write that others keep overtaking
_NAME_ATTEMPTS = 8  # of a generated name, as upstream


@dataclass(frozen=True)
class Conditions:
    """What a write depends on besides the object: guards and a fence."""

    guards: tuple[Guard, ...] = ()
    fence: Fence | None = None


NO_CONDITIONS = Conditions()


class Store(Reader):
    """Objects in Redis."""

    def __init__(
        self, io: RedisIO, clock: Clock | None = None, rng: random.Random | None = None
    ) -> None:
        super().__init__(io)
        self.io = io
        self._clock = clock or RealClock()
        self._rng = rng or random.Random()
        self._writer = Writer(io)
        self._watch = WatchReader(io)

    def create(self, obj: T, when: Conditions = NO_CONDITIONS) -> T:
        """Store a new object and return it as stored.

        Raises: AlreadyExists, BadRequest, Invalid, GuardFailed, Fenced, RequestTooLarge.
        """
        for attempt in range(_NAME_ATTEMPTS):
            item = self.creation(obj, when.guards)
            result = self.write([item], fence=when.fence)[0]
            generated = not obj.name
            if result.status == "exists" and generated and attempt + 1 < _NAME_ATTEMPTS:
                continue
            break
        return _as(obj, result.stored())

    def update(self, obj: T, when: Conditions = NO_CONDITIONS) -> T:
        """Replace an object, its status excepted. With a resourceVersion only that version.

        Raises: NotFound, Conflict, Invalid, GuardFailed, Fenced, RequestTooLarge.
        """
        return self._replace(obj, rules.prepare_update, when)

    def update_status(self, obj: T, when: Conditions = NO_CONDITIONS) -> T:
        """Replace an object's status and nothing else. Raises: as update, BadRequest."""
        return self._replace(obj, rules.prepare_status_update, when)

    def replace(self, obj: T, when: Conditions = NO_CONDITIONS) -> T:
        """Replace a whole object, the status included where it carries one."""
        return self._replace(obj, rules.prepare_replace, when)

    def patch(
        self,
        resource: Resource,
        key: str,
        patch: Mapping[str, Any],
        *,
        subresource: str = "",
        when: Conditions = NO_CONDITIONS,
    ) -> KubeObject:
        """Apply a JSON merge patch; one that names a resourceVersion or uid applies to that only.

        Raises: NotFound, Conflict, BadRequest, Invalid, GuardFailed, Fenced.
        """
        pinned = bool((patch.get("metadata") or {}).get("resourceVersion"))

        def change(old: KubeObject) -> KubeObject:
            return codec.decode(merge_patch(codec.to_dict(old), patch), resource)

        prepare = rules.prepare_status_update if subresource == "status" else rules.prepare_update
        return self._modify(resource, key, change, prepare, when, pinned=pinned)

    def modify(
        self,
        resource: Resource,
        key: str,
        change: Callable[[KubeObject], KubeObject],
        *,
        prepare: Callable[[KubeObject, KubeObject, Resource], KubeObject] = rules.prepare_update,
        when: Conditions = NO_CONDITIONS,
    ) -> KubeObject:
        """Store what `change` makes of the object; called again when others overtake it.

        Raises: NotFound, Conflict, Invalid, GuardFailed, Fenced, and what `change` raises.
        """
        return self._modify(resource, key, change, prepare, when, pinned=False)

    def delete(
        self,
        resource: Resource,
        key: str,
        options: DeleteOptions | None = None,
        when: Conditions = NO_CONDITIONS,
    ) -> KubeObject:
        """Delete an object, at once or after its finalizers and grace period.

        Returns its last state. Raises: NotFound, Conflict, GuardFailed, Fenced.
        """
        options = options or DeleteOptions()
        for _ in range(_ATTEMPTS):
            old = self.get(resource, key)
            item = self.deletion(old, options, when.guards)
            if item is None:
                return old
            result = self.write([item], fence=when.fence)[0]
            if result.status != "conflict":
                return result.stored()
        raise errors.Conflict.of(resource.name, key)

    # --- items for callers that know the present state and write in batches

    def creation(
        self, obj: KubeObject, guards: tuple[Guard, ...] = (), *, like: Pattern | None = None
    ) -> WriteItem:
        """The write that creates `obj`. Raises: BadRequest, Invalid.

        `like` is an earlier creation of this very object: defaults and validation
        are not repeated where only a generated name and uid differ.
        """
        if like is not None and not obj.name and not obj.uid:
            copied = rules.prepare_copy(like.item.obj, rng=self._rng)
            return WriteItem("create", like.item.resource, copied, guards=guards, pattern=like)
        resource = scheme.resource_of(obj)
        created = rules.prepare_create(obj, resource, self._clock.now(), rng=self._rng)
        return WriteItem("create", resource, created, guards=guards)

    def modification(
        self,
        new: KubeObject,
        old: KubeObject,
        prepare: Callable[[KubeObject, KubeObject, Resource], KubeObject] = rules.prepare_update,
        guards: tuple[Guard, ...] = (),
    ) -> WriteItem | None:
        """The write that turns `old` into `new`; None when there is nothing to change."""
        resource = scheme.resource_of(old)
        updated = prepare(new, old, resource)
        if updated is old:
            return None
        op: Operation = "delete" if rules.finishes_deletion(updated) else "update"
        return WriteItem(op, resource, updated, old.metadata.resource_version or "", guards)

    def deletion(
        self, old: KubeObject, options: DeleteOptions, guards: tuple[Guard, ...] = ()
    ) -> WriteItem | None:
        """The write that deletes `old`, or marks it; None when it is marked so already."""
        resource = scheme.resource_of(old)
        op, obj = rules.prepare_delete(old, resource, options, self._clock.now())
        if obj is old and op == "update":
            return None
        return WriteItem(op, resource, obj, old.metadata.resource_version or "", guards)

    def write(
        self,
        items: Sequence[WriteItem],
        *,
        fence: Fence | None = None,
        acknowledge: tuple[str, str, str] = ("", "", ""),
        call_id: str | None = None,
    ) -> list[WriteResult]:
        """Write several items in as few calls as possible; see `Writer.write`."""
        return self._writer.write(items, fence=fence, acknowledge=acknowledge, call_id=call_id)

    def read_changes(self, positions: Mapping[Resource, int], block_ms: int) -> Changes:
        """Changes behind the positions; see `WatchReader.read_changes`."""
        return self._watch.read_changes(positions, block_ms)

    # --- read, modify, write

    def _replace(
        self,
        obj: T,
        prepare: Callable[[KubeObject, KubeObject, Resource], KubeObject],
        when: Conditions,
    ) -> T:
        resource = scheme.resource_of(obj)
        if not obj.name:
            raise errors.BadRequest("name must be provided")
        if resource.namespaced and not obj.namespace:
            obj = obj.with_metadata(namespace="default")
        pinned = bool(obj.metadata.resource_version)
        stored = self._modify(resource, obj.key, lambda _: obj, prepare, when, pinned=pinned)
        return _as(obj, stored)

    def _modify(
        self,
        resource: Resource,
        key: str,
        change: Callable[[KubeObject], KubeObject],
        prepare: Callable[[KubeObject, KubeObject, Resource], KubeObject],
        when: Conditions,
        *,
        pinned: bool,
    ) -> KubeObject:
        for _ in range(_ATTEMPTS):
            old = self.get(resource, key)
            new = change(old)
            if pinned and new.metadata.resource_version != old.metadata.resource_version:
                break
            item = self.modification(new, old, prepare, when.guards)
            if item is None:
                return old
            result = self.write([item], fence=when.fence)[0]
            if result.status != "conflict":
                return result.stored()
            if pinned:
                break
        raise errors.Conflict.of(resource.name, key.rpartition("/")[2])


def _as(obj: T, stored: KubeObject) -> T:
    assert isinstance(stored, type(obj))
    return stored


def unpaged(reader: Reader, resource: Resource, **selection: Any) -> Iterator[KubeObject]:
    """All objects of a selection, page by page."""
    token: str | None = None
    while True:
        page = reader.list(resource, continue_=token, limit=500, **selection)
        yield from page.items
        if not page.continue_:
            return
        token = page.continue_
