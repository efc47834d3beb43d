"""The verbs of the store: create, update, patch and delete as in the Kubernetes API.

Guarantees: every write is defaulted, validated and admitted by the same rules, whoever sends it. An
update with a resourceVersion that is not the stored one conflicts. A verb without a resourceVersion
is repeated when another write comes between its read and its write. Does not guarantee that a call
that raised `StoreUnavailable` wrote nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import Service
from kcm.api.scheme import Resource, Scheme
from kcm.apimachinery.meta_v1 import Kind, KubeObject
from kcm.clock import Clock, RealClock
from kcm.redisio import Fence, RedisIO
from kcm.store.admission import namespaces
from kcm.store.admission.chain import Admission
from kcm.store.admission.cluster_ips import ClusterIPs
from kcm.store.admission.quotas import QuotaMemory, check_room
from kcm.store.admission.service_addresses import Ranges, ServiceAddresses
from kcm.store.building import SELF, ItemBuilder
from kcm.store.charging import ChargedWriter
from kcm.store.claims import AddressClaims
from kcm.store.managed_fields.managers import FieldManager
from kcm.store.merge import merge_patch
from kcm.store.pipeline import WritePipeline
from kcm.store.reader import StoreReader
from kcm.store.rules import DeleteOptions, Subresource
from kcm.store.trim import drop
from kcm.store.watch import Changes, WatchReader
from kcm.store.writes.collections import CollectionDeletion, delete_collection
from kcm.store.writes.guards import Guard
from kcm.store.writes.items import WriteItem
from kcm.store.writes.modifying import (
    ATTEMPTS,
    Modification,
    WriteAdmission,
    conflict,
    is_address_lost,
    modify,
    modify_known,
)
from kcm.store.writes.observing import Observer
from kcm.store.writes.purging import purge
from kcm.store.writes.results import WriteResult, WriteStatus
from kcm.store.writes.rewriting import ReadConverted, Rewriting, rewrite_page
from kcm.store.writes.writer import NOTHING, Acknowledgement, WriteCall, Writer

_NAME_ATTEMPTS = 8  # the most attempts when a generated name is in use, as upstream


@dataclass(frozen=True)
class Conditions:
    """Conditions of a write on other things than its object: guards, and the fence that must be
    held.
    """

    guards: tuple[Guard, ...] = ()
    fence: Fence | None = None


NO_CONDITIONS = Conditions()


class Store(StoreReader, ItemBuilder):
    """Reads and writes the objects in Redis. Threads may share a store; processes may not.

    It reads as a `StoreReader`. Callers that know the present state build items with its methods as
    an `ItemBuilder`, and write them with `write`. All stores that a process has of one server share
    a scheme.
    """

    def __init__(
        self,
        io: RedisIO,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        *,
        scheme: Scheme | None = None,
        observer: Observer | None = None,
    ) -> None:
        """Without a scheme, the store has one of its own, with the built-in kinds at first.

        The observer is told of all writes.
        """
        StoreReader.__init__(self, io)
        self.scheme = scheme or Scheme()
        self.observer = observer
        self.io = io
        self.clock = self._clock = clock or RealClock()
        self._watch = WatchReader(io)
        settings = io.settings
        self.service_ranges = Ranges.parse(
            settings.service_cluster_ip_range, settings.service_node_port_range
        )
        rng = rng or random.SystemRandom()  # after a fork, too, it draws no name or uid twice
        cluster_ips = ClusterIPs(io, self, self._clock.now, self.service_ranges.network)
        addresses = ServiceAddresses(io, self.service_ranges, cluster_ips, rng)
        ItemBuilder.__init__(self, Admission(self, settings, rng), addresses, self._clock, rng)
        writer, self._quotas = Writer(io, observer), QuotaMemory(self)
        charged = ChargedWriter(self._quotas, writer, self._clock)
        self._pipeline = WritePipeline(self._quotas, charged, writer, self.build_create)
        self._claims = AddressClaims(self, self._write_claims, self._clock.now)

    @property
    def data_id(self) -> str:
        """The data id: it changes when this process notices that the store was emptied."""
        return self.io.data_id

    def create(
        self,
        obj: Kind,
        when: Conditions = NO_CONDITIONS,
        *,
        manager: FieldManager | None = None,
        admission: WriteAdmission | None = None,
    ) -> Kind:
        """Stores a new object and returns it as stored.

        With `manager`, the object gets managed fields, all of them the manager's. `admission`
        may change and refuse it. A generated name that is in use is drawn again, up
        to eight times, and so is an allocated address of a Service.

        Raises: AlreadyExists, BadRequest, Forbidden, Invalid, NotFound for a missing namespace,
        NamespaceTerminating, GuardFailed, Fenced, RequestTooLarge, StoreUnavailable.
        """
        for attempt in range(_NAME_ATTEMPTS):
            item = self.build_create(obj, when.guards, manager=manager, admission=admission)
            if admission is not None:
                admission.validate(item.obj, None)
            result = self.write([item], fence=when.fence)[0]
            # The generated name is in use, or another Service got the address meanwhile.
            again = is_address_lost(result) or (
                result.status is WriteStatus.EXISTS and not obj.name
            )
            if not again or attempt + 1 == _NAME_ATTEMPTS:
                break
        return result.get_stored()

    def update(self, obj: Kind, when: Conditions = NO_CONDITIONS) -> Kind:
        """Replaces an object except its status, and returns it as stored.

        If `obj` has a resourceVersion, only that version is replaced. Raises: NotFound, Conflict,
        Invalid, Forbidden, GuardFailed, Fenced, RequestTooLarge, StoreUnavailable.
        """
        return self._replace(obj, when)

    def update_status(self, obj: Kind, when: Conditions = NO_CONDITIONS) -> Kind:
        """Replaces the status of an object, and returns the object as stored.

        Raises: as `update`, and BadRequest for a kind without status.
        """
        return self._replace(obj, when, Subresource.STATUS)

    def replace(self, obj: Kind, when: Conditions = NO_CONDITIONS) -> Kind:
        """Replaces an object, with its status if `obj` has one, and returns it as stored.

        Raises: as `update`.
        """
        return self._replace(obj, when, keep_status=True)

    def patch(
        self,
        resource: Resource[Kind],
        key: str,
        patch: Mapping[str, Any],
        *,
        subresource: Subresource = Subresource.NONE,
        when: Conditions = NO_CONDITIONS,
    ) -> Kind:
        """Applies a JSON merge patch to the object under `key`, and returns it as stored.

        A patch with a resourceVersion or a uid applies only to an object that has it. Raises: as
        `update`, and BadRequest for a patch whose result cannot be decoded.
        """
        pinned = bool((patch.get("metadata") or {}).get("resourceVersion"))

        def change(old: Kind) -> Kind:
            return codec.decode(merge_patch(codec.to_dict(old), patch), resource)

        return self._modify(
            resource, key, change, subresource=subresource, when=when, pinned=pinned
        )

    def modify(
        self,
        resource: Resource[Kind],
        key: str,
        change: Callable[[Kind], Kind],
        *,
        subresource: Subresource = Subresource.NONE,
        when: Conditions = NO_CONDITIONS,
        manager: FieldManager = SELF,
        known: Kind | None = None,
        admission: WriteAdmission | None = None,
    ) -> Kind:
        """Stores what `change` returns for the object under `key`, and returns it as stored.

        `change` is called again if another client wrote the object first. It returns its argument
        to change nothing. `known` is a state that is likely the stored one: if it is, the object
        need not be read. `admission` may change and refuse the object, also if nothing changes.
        Raises: as `update`, and what `change` and `admission` raise.
        """

        def build(old: Kind) -> WriteItem | None:
            return self.build_update(
                change(old),
                old,
                subresource=subresource,
                guards=when.guards,
                manager=manager,
                admission=admission,
            )

        # What is admitted is what is stored, so nobody is asked about a state that may be old.
        trusted = known if admission is None else None
        stored = modify_known(self, trusted, build, when.fence) if trusted is not None else None
        return stored or modify(
            self, Modification(resource, key, build, when.fence, admission=admission)
        )

    def delete(
        self,
        resource: Resource[Kind],
        key: str,
        options: DeleteOptions | None = None,
        when: Conditions = NO_CONDITIONS,
        *,
        admission: WriteAdmission | None = None,
    ) -> Kind:
        """Deletes an object, or sets its deletion timestamp if it has finalizers or a grace period.

        Returns its last state. An object that cannot be read is purged, and only its kind and name
        are returned. `admission` may refuse the deletion, though not that of such an object.
        Raises: NotFound, Conflict, Forbidden, GuardFailed, Fenced, StoreUnavailable, and what
        `admission` raises; Damaged for an object that cannot be read if the deletion has
        preconditions, guards or a fence.
        """
        options = options or DeleteOptions()
        for _ in range(ATTEMPTS):
            try:
                old = self.get(resource, key)
            except errors.Damaged:
                if options.uid or options.resource_version or when.guards or when.fence:
                    raise
                return self.purge(resource, key)
            item = self.build_delete(old, options, when.guards)
            if admission is not None:
                admission.admit(None, old, lambda obj: obj)
                admission.validate(None, old)
            if item is None:
                return old
            result = self.write([item], fence=when.fence)[0]
            if result.status is not WriteStatus.CONFLICT:
                return result.get_stored()
        raise conflict(resource, key)

    def purge(self, resource: Resource[Kind], key: str) -> Kind:
        """Removes an object that cannot be read, and returns its kind and name. Raises:
        NotFound.
        """
        return purge(self.io, resource, key, self._clock.now())

    def check_creatable(self, obj: KubeObject) -> None:
        """Raises what a create would raise for a missing or terminating namespace, or exceeded
        quotas.

        It is for dry runs. Raises: NotFound, NamespaceTerminating, Forbidden, StoreUnavailable.
        """
        namespaces.check_creatable(self, obj.resource, obj)
        check_room(self._quotas, obj, self._clock.now())

    def write(
        self,
        items: Sequence[WriteItem[Kind]],
        *,
        fence: Fence | None = None,
        acknowledge: Acknowledgement = NOTHING,
        call_id: str | None = None,
    ) -> list[WriteResult[Kind]]:
        """Writes several items in as few script calls as possible; see `WritePipeline.write`."""
        with_claims = any(isinstance(item.obj, Service) for item in items)
        write = self._write_with_claims if with_claims else self._pipeline.write
        results = write(items, WriteCall(fence, acknowledge, call_id))
        return cast("list[WriteResult[Kind]]", results)  # of these items, in their order

    def _write_with_claims(self, items: Sequence[WriteItem], call: WriteCall) -> list[WriteResult]:
        """Writes items, and creates and deletes the IPAddresses of the Services among them."""
        claims = self._claims.claim(items)
        if not claims.refused:
            results = dict(enumerate(self._pipeline.write(items, call)))
        else:
            able = [n for n in range(len(items)) if n not in claims.refused]
            call = replace(call, acknowledge=NOTHING)
            written = self._pipeline.write([items[n] for n in able], call) if able else []
            results = claims.refused | dict(zip(able, written, strict=True))
        self._claims.settle(results, claims)
        return [results[n] for n in range(len(items))]

    def _write_claims(self, items: Sequence[WriteItem]) -> list[WriteResult]:
        return self._pipeline.write(items, WriteCall())

    def delete_collection(
        self, resource: Resource, namespace: str, *, fence: Fence | None = None
    ) -> CollectionDeletion:
        """Deletes all objects of a kind in a namespace; see `kcm.store.writes.collections`."""
        return delete_collection(self, resource, namespace, fence)

    def rewrite_page(
        self,
        resource: Resource,
        after: str,
        count: int,
        *,
        fence: Fence | None = None,
        converted: ReadConverted | None = None,
    ) -> Rewriting:
        """Rewrites objects in their storage version; see `kcm.store.writes.rewriting`."""
        return rewrite_page(self, resource, after, count, fence=fence, converted=converted)

    def read_changes(self, positions: Mapping[Resource, int], block_ms: int) -> Changes:
        """Reads the changes after the positions; see `WatchReader.read_changes`."""
        return self._watch.read_changes(positions, block_ms)

    def drop_log(self, name: str) -> None:
        """Empties the watch log of a kind that is gone. Its readers have to list again."""
        drop(self.io, name)

    # --- read, modify, write

    def _replace(
        self,
        obj: Kind,
        when: Conditions,
        subresource: Subresource = Subresource.NONE,
        *,
        keep_status: bool = False,
    ) -> Kind:
        """Replaces an object if it has no resourceVersion, or that of the stored object."""
        resource = obj.resource
        if not obj.name:
            raise errors.BadRequest("name must be provided")
        if resource.namespaced and not obj.namespace:
            obj = obj.with_metadata(namespace="default")
        return self._modify(
            resource,
            obj.key,
            lambda _: obj,
            subresource=subresource,
            when=when,
            pinned=bool(obj.metadata.resource_version),
            keep_status=keep_status,
        )

    def _modify(
        self,
        resource: Resource[Kind],
        key: str,
        change: Callable[[Kind], Kind],
        *,
        subresource: Subresource,
        when: Conditions,
        pinned: bool,
        keep_status: bool = False,
    ) -> Kind:
        """Stores what `change` returns for the object under `key`, see `modifying.modify`.

        With `pinned`, it must have the stored resourceVersion.
        """

        def build(old: Kind) -> WriteItem | None:
            new = change(old)
            if pinned and new.metadata.resource_version != old.metadata.resource_version:
                raise conflict(resource, key)
            return self.build_update(
                new, old, subresource=subresource, guards=when.guards, keep_status=keep_status
            )

        return modify(self, Modification(resource, key, build, when.fence, pinned))
