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
from kcm.api.core_v1 import Service
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.clock import Clock, RealClock
from kcm.redisio import Fence, RedisIO
from kcm.store import rules
from kcm.store.admission import namespaces
from kcm.store.admission.chain import Admission
from kcm.store.admission.namespaces import NamespaceState
from kcm.store.admission.quotas import Call, Quotas, grows
from kcm.store.admission.service_addresses import Ranges, ServiceAddresses
from kcm.store.managed_fields import managers
from kcm.store.managed_fields.managers import Author
from kcm.store.merge import merge_patch
from kcm.store.reader import Reader
from kcm.store.rules import DeleteOptions, Subresource
from kcm.store.trim import drop
from kcm.store.watch import Changes, WatchReader
from kcm.store.writes.guards import Guard, Unindexed, definition_guards
from kcm.store.writes.items import Pattern, WriteItem
from kcm.store.writes.purging import purge
from kcm.store.writes.results import WriteResult, WriteStatus
from kcm.store.writes.sweeping import Swept, sweep
from kcm.store.writes.writer import NOTHING, Writer

T = TypeVar("T", bound=KubeObject)
_ATTEMPTS = 10  # of a read-modify-write that others keep overtaking
_NAME_ATTEMPTS = 8  # of a generated name, as upstream


@dataclass(frozen=True)
class Conditions:
    """What a write depends on besides the object: guards and a fence."""

    guards: tuple[Guard, ...] = ()
    fence: Fence | None = None


NO_CONDITIONS = Conditions()
SELF = Author("kcm")  # whose writes are those that name no author


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
        settings = io.settings
        self.service_ranges = Ranges.parse(
            settings.service_cluster_ip_range, settings.service_node_port_range
        )
        self._addresses = ServiceAddresses(io, self.service_ranges, self._rng)
        self._watch = WatchReader(io)
        self._admission = Admission(self)
        self._quotas = Quotas(self, self._writer, self._clock)

    @property
    def birth(self) -> str:
        """Which data this is, as far as this process has noticed: another once it was emptied."""
        return self.io.born

    def create(
        self, obj: T, when: Conditions = NO_CONDITIONS, *, author: Author | None = None
    ) -> T:
        """Store a new object and return it as stored; with an author, who then owns its fields.

        Raises: AlreadyExists, BadRequest, Forbidden, Invalid, GuardFailed, Fenced,
        RequestTooLarge.
        """
        for attempt in range(_NAME_ATTEMPTS):
            item = self.creation(obj, when.guards, author=author)
            result = self.write([item], fence=when.fence)[0]
            # Another took the generated name, or the address that was free a moment ago.
            again = _is_address_lost(result) or (
                result.status is WriteStatus.EXISTS and not obj.name
            )
            if not again or attempt + 1 == _NAME_ATTEMPTS:
                break
        return _as(obj, result.stored())

    def update(self, obj: T, when: Conditions = NO_CONDITIONS) -> T:
        """Replace an object, its status excepted. With a resourceVersion only that version.

        Raises: NotFound, Conflict, Invalid, GuardFailed, Fenced, RequestTooLarge.
        """
        return self._replace(obj, when)

    def update_status(self, obj: T, when: Conditions = NO_CONDITIONS) -> T:
        """Replace an object's status and nothing else. Raises: as update, BadRequest."""
        return self._replace(obj, when, Subresource.STATUS)

    def replace(self, obj: T, when: Conditions = NO_CONDITIONS) -> T:
        """Replace a whole object, the status included where it carries one."""
        return self._replace(obj, when, keep_status=True)

    def patch(
        self,
        resource: Resource,
        key: str,
        patch: Mapping[str, Any],
        *,
        subresource: Subresource = Subresource.NONE,
        when: Conditions = NO_CONDITIONS,
    ) -> KubeObject:
        """Apply a JSON merge patch; one that names a resourceVersion or uid applies to that only.

        Raises: NotFound, Conflict, BadRequest, Invalid, GuardFailed, Fenced.
        """
        pinned = bool((patch.get("metadata") or {}).get("resourceVersion"))

        def change(old: KubeObject) -> KubeObject:
            return codec.decode(merge_patch(codec.to_dict(old), patch), resource)

        return self._modify(
            resource, key, change, subresource=subresource, when=when, pinned=pinned
        )

    def modify(
        self,
        resource: Resource,
        key: str,
        change: Callable[[KubeObject], KubeObject],
        *,
        subresource: Subresource = Subresource.NONE,
        when: Conditions = NO_CONDITIONS,
        author: Author = SELF,
    ) -> KubeObject:
        """Store what `change` makes of the object; called again when others overtake it.

        Raises: NotFound, Conflict, Invalid, GuardFailed, Fenced, and what `change` raises.
        """
        return self._modify(
            resource, key, change, subresource=subresource, when=when, author=author
        )

    def delete(
        self,
        resource: Resource,
        key: str,
        options: DeleteOptions | None = None,
        when: Conditions = NO_CONDITIONS,
    ) -> KubeObject:
        """Delete an object, at once or after its finalizers and grace period; its last state.

        Of what cannot be read, and so goes at once, that is kind and name. Raises: NotFound,
        Conflict, GuardFailed, Fenced, Damaged.
        """
        options = options or DeleteOptions()
        for _ in range(_ATTEMPTS):
            try:
                old = self.get(resource, key)
            except errors.Damaged:
                if options.uid or options.resource_version or when.guards or when.fence:
                    raise
                return self.purge(resource, key)
            item = self.deletion(old, options, when.guards)
            if item is None:
                return old
            result = self.write([item], fence=when.fence)[0]
            if result.status is not WriteStatus.CONFLICT:
                return result.stored()
        raise errors.Conflict.of(resource.name, key)

    def purge(self, resource: Resource, key: str) -> KubeObject:
        """Delete what cannot be read; what is left of it, kind and name. Raises: NotFound."""
        return purge(self.io, resource, key, self._clock.now())

    # --- items for callers that know the present state and write in batches

    def check_creatable(self, obj: KubeObject) -> None:
        """Raise what a create would meet, for those that only try. Raises: NotFound,
        Forbidden, NamespaceTerminating, StoreUnavailable."""
        namespaces.check_creatable(self, scheme.resource_of(obj), obj)
        self._quotas.check(obj)

    def creation(
        self,
        obj: KubeObject,
        guards: tuple[Guard, ...] = (),
        *,
        like: Pattern | None = None,
        author: Author | None = None,
        keep_status: bool = False,
    ) -> WriteItem:
        """The write that creates `obj`. Raises: BadRequest, Forbidden, Invalid.

        `like` is an earlier creation of this very object: defaults and validation
        are not repeated where only a generated name and uid differ. Without an author
        the object has no managers: batches are spared that work.
        """
        if like is not None and not obj.name and not obj.uid:
            copied = rules.prepare_copy(like.item.obj, rng=self._rng)
            return WriteItem("create", like.item.resource, copied, guards=guards, pattern=like)
        resource = scheme.resource_of(obj)
        obj = self._admission.admit(obj, self._clock.monotonic())
        now = self._clock.now()
        created = rules.prepare_create(obj, resource, now, keep_status=keep_status, rng=self._rng)
        if author is not None:
            created = managers.born(created, resource, author, now)
        if isinstance(created, Service):
            created, claims = self._addresses.assign(created)
            guards = (*guards, *claims)
        return WriteItem(
            "create", resource, created, guards=(*guards, *definition_guards(resource))
        )

    def modification(
        self,
        new: KubeObject,
        old: KubeObject,
        *,
        subresource: Subresource = Subresource.NONE,
        guards: tuple[Guard, ...] = (),
        author: Author = SELF,
        keep_status: bool = False,
    ) -> WriteItem | None:
        """The write that turns `old` into `new`; None when there is nothing to change.

        What it changes becomes the author's, where the object has managers. With
        `keep_status`, the status is written as well where `new` carries one.
        Raises: Conflict for another uid, BadRequest, Forbidden, Invalid.
        """
        resource = scheme.resource_of(old)

        def prepare(changed: KubeObject) -> KubeObject:
            return rules.prepare_modification(
                changed, old, resource, subresource, keep_status=keep_status
            )

        updated = self._manage(new, old, prepare, subresource, author)
        if updated is old:
            return None
        self._admission.check(updated, self._clock.monotonic())
        if isinstance(updated, Service) and isinstance(old, Service):
            updated, claims = self._addresses.assign(updated, old)
            guards = (*guards, *claims)
        version = old.metadata.resource_version or ""
        if rules.finishes_deletion(updated):
            return WriteItem("delete", resource, updated, version, guards)
        replaced = old if grows(resource, updated, old, self._clock.now()) else None
        return WriteItem("update", resource, updated, version, guards, replaced=replaced)

    def _manage(
        self,
        new: KubeObject,
        old: KubeObject,
        prepare: Callable[[KubeObject], KubeObject],
        subresource: Subresource,
        author: Author,
    ) -> KubeObject:
        """Returns what `prepare` makes of `new`, with the managers of its fields."""
        if author.operation == "Apply":  # it has worked out the managers itself
            updated = prepare(new)
            if new.metadata.managed_fields == updated.metadata.managed_fields:
                return updated
            return updated.with_metadata(managed_fields=new.metadata.managed_fields)
        if subresource in rules.AS_GIVEN:  # changes of these belong to the object itself
            subresource = Subresource.NONE
        updated = prepare(managers.kept(new, old, subresource))
        if updated is old or not (author.name and updated.metadata.managed_fields):
            return updated
        return managers.updated(
            old,
            updated,
            scheme.resource_of(old),
            author,
            self._clock.now(),
            subresource=subresource,
        )

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
        acknowledge: tuple[str, str, str] = NOTHING,
        call_id: str | None = None,
    ) -> list[WriteResult]:
        """Write several items in as few calls as possible; see `Writer.write`.

        The system's namespaces come into being where a create first needs them; what the
        quotas of a namespace have no room for is refused.
        """
        call = Call(fence, acknowledge, call_id)
        return self._quotas.write(items, call, self._written)

    def _written(self, items: Sequence[WriteItem], call: Call) -> list[WriteResult]:
        """As `write`, past the quotas: the results say where there are any."""
        fence, acknowledge, call_id = call.fence, call.acknowledge, call.call_id
        results = self._writer.write(items, fence=fence, acknowledge=acknowledge, call_id=call_id)
        needed = {n for n, result in enumerate(results) if _needs_system_namespace(result)}
        if not needed:
            return results
        namespaces.ensure(self, *sorted({results[n].item.obj.namespace for n in needed}))
        fine = all(result.ok or n in needed for n, result in enumerate(results))
        again = self._writer.write(
            [results[n].item for n in sorted(needed)],
            fence=fence,
            acknowledge=acknowledge if fine else NOTHING,
            call_id=call_id and f"{call_id}:again",
        )
        for n, result in zip(sorted(needed), again, strict=True):
            results[n] = result
        return results

    def sweep(self, resource: Resource, namespace: str, *, fence: Fence | None = None) -> Swept:
        """Delete all objects of a kind in a namespace; see `sweeping`."""
        return sweep(self, resource, namespace, fence)

    def read_changes(self, positions: Mapping[Resource, int], block_ms: int) -> Changes:
        """Changes behind the positions; see `WatchReader.read_changes`."""
        return self._watch.read_changes(positions, block_ms)

    def drop_log(self, name: str) -> None:
        """Empty the watch log of a kind that is gone; who still reads it must list again."""
        drop(self.io, name)

    # --- read, modify, write

    def _replace(
        self,
        obj: T,
        when: Conditions,
        subresource: Subresource = Subresource.NONE,
        *,
        keep_status: bool = False,
    ) -> T:
        resource = scheme.resource_of(obj)
        if not obj.name:
            raise errors.BadRequest("name must be provided")
        if resource.namespaced and not obj.namespace:
            obj = obj.with_metadata(namespace="default")
        stored = self._modify(
            resource,
            obj.key,
            lambda _: obj,
            subresource=subresource,
            when=when,
            pinned=bool(obj.metadata.resource_version),
            keep_status=keep_status,
        )
        return _as(obj, stored)

    def _modify(
        self,
        resource: Resource,
        key: str,
        change: Callable[[KubeObject], KubeObject],
        *,
        subresource: Subresource,
        when: Conditions,
        author: Author = SELF,
        pinned: bool = False,
        keep_status: bool = False,
    ) -> KubeObject:
        for _ in range(_ATTEMPTS):
            old = self.get(resource, key)
            new = change(old)
            if pinned and new.metadata.resource_version != old.metadata.resource_version:
                break
            item = self.modification(
                new,
                old,
                subresource=subresource,
                guards=when.guards,
                author=author,
                keep_status=keep_status,
            )
            if item is None:
                return old
            result = self.write([item], fence=when.fence)[0]
            overtaken = result.status is WriteStatus.CONFLICT
            if not overtaken and not _is_address_lost(result):
                return result.stored()
            if pinned and overtaken:
                break
        raise errors.Conflict.of(resource.name, key.rpartition("/")[2])


def _is_address_lost(result: WriteResult) -> bool:
    """Whether a Service was refused because somebody else was faster at an address."""
    return isinstance(result.failed_guard, Unindexed) and isinstance(result.item.obj, Service)


def _needs_system_namespace(result: WriteResult) -> bool:
    missing = (result.status, result.detail) == (WriteStatus.NAMESPACE, NamespaceState.MISSING)
    return missing and result.item.obj.namespace in namespaces.SYSTEM


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
