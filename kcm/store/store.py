"""The verbs of the store: create, update, patch and delete as in the Kubernetes API.

Guarantees: every write is defaulted, validated and admitted by the same rules, whoever sends it. An
update with a resourceVersion that is not the stored one conflicts. A verb without a resourceVersion
is repeated when another write comes between its read and its write. Does not guarantee that a call
that raised `StoreUnavailable` wrote nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from kcm import errors
from kcm.api import codec
from kcm.api.admissionregistration_v1 import DELETE, UPDATE
from kcm.api.scheme import Resource, Scheme
from kcm.apimachinery.meta_v1 import Kind, KubeObject
from kcm.clock import Clock, RealClock
from kcm.redisio import Fence, RedisIO
from kcm.store.admission import namespaces
from kcm.store.admission.chain import AdmissionChain
from kcm.store.admission.cluster_ips import ClusterIPs
from kcm.store.admission.plugin import Plugin, Write, WriteRequest
from kcm.store.admission.plugins import build_plugins, leave_disabled_out, order_plugins
from kcm.store.admission.quotas import QuotaMemory, check_room
from kcm.store.admission.service_addresses import Ranges, ServiceAddresses
from kcm.store.building import SELF, ItemBuilder
from kcm.store.charging import ChargedWriter
from kcm.store.claims import ClaimingWriter
from kcm.store.managed_fields.managers import FieldManager
from kcm.store.merge import merge_patch
from kcm.store.options import DeleteOptions, Subresource
from kcm.store.pipeline import WritePipeline
from kcm.store.reader import StoreReader
from kcm.store.watch import Changes, WatchReader, drop
from kcm.store.writes.collections import (
    CollectionDeletion,
    ReadConverted,
    Rewriting,
    delete_collection,
    rewrite_page,
)
from kcm.store.writes.guards import NO_CONDITIONS, Conditions, Guard
from kcm.store.writes.items import Pattern, WriteItem, WriteResult, WriteStatus
from kcm.store.writes.modifying import (
    ATTEMPTS,
    Modification,
    conflict,
    is_address_lost,
    modify,
    modify_cached,
)
from kcm.store.writes.observing import Observer
from kcm.store.writes.purging import purge
from kcm.store.writes.writer import NOTHING, Acknowledgement, Sending, WriteCall, Writer

_NAME_ATTEMPTS = 8  # the most attempts when a generated name is in use, as upstream


class Store(StoreReader):
    """Reads and writes the objects in Redis. Threads may share a store; processes may not.

    It reads as a `StoreReader`. Callers that know the present state build items and write them with
    `write`; `items` builds those that need more than its methods give. All stores that a process
    has of one server share a scheme.
    """

    def __init__(
        self,
        io: RedisIO,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        *,
        scheme: Scheme | None = None,
        observer: Observer | None = None,
        plugins: Sequence[Plugin] = (),
        sending: Sending | None = None,
    ) -> None:
        """Without a scheme, the store has one of its own, with the built-in kinds at first.

        The observer is told of all writes, `sending` of what is about to be sent. `plugins` are
        those of the API server, which a write passes besides those of every store.
        """
        super().__init__(io)
        self.io, self.scheme, self.observer = io, scheme or Scheme(), observer
        self.clock = clock = clock or RealClock()
        # After a fork, too, SystemRandom draws no name or uid twice.
        self._rng = rng = rng or random.SystemRandom()
        reader, settings = StoreReader(io), io.settings
        self.service_ranges = Ranges.parse(
            settings.service_cluster_ip_range, settings.service_node_port_range
        )
        cluster_ips = ClusterIPs(io, reader, clock.now, self.service_ranges.network)
        addresses = ServiceAddresses(io, self.service_ranges, cluster_ips, rng)
        own = build_plugins(reader, settings, clock, rng)
        enabled = leave_disabled_out([*own, *plugins], settings.disable_admission_plugins)
        self.admission = AdmissionChain(order_plugins(enabled))
        self.items = ItemBuilder(self.admission, addresses, clock, rng)
        writer, self._quotas = Writer(io, observer, sending), QuotaMemory(reader)
        charged = ChargedWriter(self._quotas, writer, clock)
        pipeline = WritePipeline(self._quotas, charged, writer, self.items.build_create)
        self._writes = ClaimingWriter(pipeline, reader, self.items, clock.now)
        self._watch = WatchReader(io)

    def with_plugins(self, plugins: Sequence[Plugin], sending: Sending | None = None) -> Store:
        """Returns a store of the same objects whose writes pass these plugins as well."""
        return Store(
            self.io,
            self.clock,
            self._rng,
            scheme=self.scheme,
            observer=self.observer,
            plugins=plugins,
            sending=sending,
        )

    def create(
        self,
        obj: Kind,
        when: Conditions = NO_CONDITIONS,
        *,
        manager: FieldManager | None = None,
        request: WriteRequest | None = None,
    ) -> Kind:
        """Stores a new object and returns it as stored.

        With `manager`, the object gets managed fields, all of them the manager's. `request` says
        who asks for it, which plugins of the API server may change and refuse. A generated name
        that is in use is drawn again, up to eight times, and so is an allocated address of a
        Service.

        Raises: AlreadyExists, BadRequest, Forbidden, Invalid, NotFound for a missing namespace,
        NamespaceTerminating, GuardFailed, Fenced, RequestTooLarge, StoreUnavailable.
        """
        for attempt in range(_NAME_ATTEMPTS):
            item = self.items.build_create(obj, when.guards, manager=manager, request=request)
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
        cached: Kind | None = None,
        request: WriteRequest | None = None,
    ) -> Kind:
        """Stores what `change` returns for the object under `key`, and returns it as stored.

        `change` is called again if another client wrote the object first. It returns its argument
        to change nothing. `cached` is a state that is likely the stored one: if it is, the object
        need not be read. `request` says who asks for it; plugins see the change also if nothing
        changes. Raises: as `update`, and what `change` and plugins raise.
        """

        def build(old: Kind) -> WriteItem | None:
            return self.items.build_update(
                change(old),
                old,
                subresource=subresource,
                guards=when.guards,
                manager=manager,
                request=request,
            )

        # What webhooks and policies decide about is what is stored, so none sees an old state.
        decided = self.admission.decides(resource, subresource.value, UPDATE)
        stored = modify_cached(self, None if decided else cached, build, when.fence)
        return stored or modify(self, Modification(resource, key, build, when.fence))

    def delete(
        self,
        resource: Resource[Kind],
        key: str,
        options: DeleteOptions | None = None,
        when: Conditions = NO_CONDITIONS,
        *,
        cached: Kind | None = None,
        request: WriteRequest | None = None,
    ) -> Kind:
        """Deletes an object, or sets its deletion timestamp if it has finalizers or a grace period.

        Returns its last state. An object that cannot be read is purged, and only its kind and name
        are returned; plugins that need more than its name are not asked. `cached` and `request` are
        as for `modify`. Raises: NotFound, Conflict, Forbidden, GuardFailed, Fenced,
        StoreUnavailable, and what plugins raise; Damaged for such an object if there are
        preconditions, guards or a fence.
        """
        options = options or DeleteOptions()

        def build(old: Kind) -> WriteItem[Kind] | None:
            return self.items.build_delete(old, options, when.guards, request=request)

        decided = self.admission.decides(resource, "", DELETE)
        stored = modify_cached(self, None if decided else cached, build, when.fence)
        if stored is not None:
            return stored
        for _ in range(ATTEMPTS):
            try:
                old = self.get(resource, key)
            except errors.Damaged:
                if options.uid or options.resource_version or when.guards or when.fence:
                    raise
                self.admission.admit_unreadable(Write(DELETE, resource, request=request))
                return self.purge(resource, key)
            item = build(old)
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
        return purge(self.io, resource, key, self.clock.now())

    def check_creatable(self, obj: KubeObject) -> None:
        """Raises what a create would raise for a missing or terminating namespace, or exceeded
        quotas.

        It is for dry runs. Raises: NotFound, NamespaceTerminating, Forbidden, StoreUnavailable.
        """
        namespaces.check_creatable(self, obj.resource, obj)
        check_room(self._quotas, obj, self.clock.now())

    def write(
        self,
        items: Sequence[WriteItem[Kind]],
        *,
        fence: Fence | None = None,
        acknowledge: Acknowledgement = NOTHING,
        call_id: str | None = None,
    ) -> list[WriteResult[Kind]]:
        """Writes several items in as few script calls as possible; see `WritePipeline.write`."""
        results = self._writes.write(items, WriteCall(fence, acknowledge, call_id))
        return cast("list[WriteResult[Kind]]", results)  # of these items, in their order

    def build_create(
        self, obj: Kind, guards: tuple[Guard, ...] = (), *, like: Pattern | None = None
    ) -> WriteItem[Kind]:
        """Returns the item that creates `obj`; see `ItemBuilder.build_create`."""
        return self.items.build_create(obj, guards, like=like)

    def build_update(
        self,
        new: Kind,
        old: Kind,
        *,
        subresource: Subresource = Subresource.NONE,
        guards: tuple[Guard, ...] = (),
    ) -> WriteItem[Kind] | None:
        """Returns the item that turns `old` into `new`; see `ItemBuilder.build_update`."""
        return self.items.build_update(new, old, subresource=subresource, guards=guards)

    def build_delete(
        self, old: Kind, options: DeleteOptions, guards: tuple[Guard, ...] = ()
    ) -> WriteItem[Kind] | None:
        """Returns the item that deletes `old`; see `ItemBuilder.build_delete`."""
        return self.items.build_delete(old, options, guards)

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
        """Rewrites objects in their storage version; see `kcm.store.writes.collections`."""
        return rewrite_page(self, resource, after, count, fence=fence, converted=converted)

    def read_changes(self, positions: Mapping[Resource, int], block_ms: int) -> Changes:
        """Reads the changes after the positions; see `WatchReader.read_changes`."""
        return self._watch.read_changes(positions, block_ms)

    def drop_log(self, name: str) -> None:
        """Empties the watch log of a kind that is gone. Its readers have to list again."""
        drop(self.io, name)

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
            return self.items.build_update(
                new, old, subresource=subresource, guards=when.guards, keep_status=keep_status
            )

        return modify(self, Modification(resource, key, build, when.fence, pinned))
