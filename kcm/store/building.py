"""Builds the items of writes from the objects that callers send: defaulted, admitted, validated.

An item is built from the state that the caller knows, and has its resourceVersion and guards.
Whether they still apply is checked when the item is written.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import cast

from kcm import errors
from kcm.api.admissionregistration_v1 import CREATE, DELETE, UPDATE
from kcm.api.core_v1 import Service
from kcm.apiextensions import conversion
from kcm.apimachinery.meta_v1 import Kind, KubeObject
from kcm.clock import Clock
from kcm.store import rules
from kcm.store.admission.chain import AdmissionChain
from kcm.store.admission.plugin import Write, WriteRequest
from kcm.store.admission.quotas import grows
from kcm.store.admission.service_addresses import ServiceAddresses
from kcm.store.managed_fields import managers
from kcm.store.managed_fields.managers import FieldManager
from kcm.store.options import AS_GIVEN, DeleteOptions, Subresource
from kcm.store.strategies.kinds import strategy_of
from kcm.store.writes import deletion
from kcm.store.writes.guards import Guard, definition_guards
from kcm.store.writes.items import Pattern, WriteItem

SELF = FieldManager("kcm")  # the field manager of writes without one


class ItemBuilder:
    """Builds the items of one store's writes."""

    def __init__(
        self,
        admission: AdmissionChain,
        addresses: ServiceAddresses,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._admission = admission
        self._addresses = addresses
        self._clock = clock
        self._rng = rng

    def build_create(
        self,
        obj: Kind,
        guards: tuple[Guard, ...] = (),
        *,
        like: Pattern | None = None,
        manager: FieldManager | None = None,
        keep_status: bool = False,
        request: WriteRequest | None = None,
    ) -> WriteItem[Kind]:
        """Returns the item that creates `obj`.

        `like` is an earlier create of this very object: admission, defaulting and validation are
        not repeated if only a generated name and the uid differ. Without a manager the object gets
        no managed fields, which saves work in batches. With `keep_status`, the status of `obj` is
        stored as well. `request` says who asks for it. Raises: BadRequest, Forbidden, Invalid,
        ResourceVersionSet, and what plugins raise.
        """
        resource = obj.resource
        is_copy = like is not None and not obj.name and not obj.uid
        if like is not None and is_copy and strategy_of(resource).is_copyable:
            copied = cast(Kind, rules.prepare_copy(like.item.obj, rng=self._rng))
            return WriteItem("create", resource, copied, guards=guards, pattern=like)
        now, rng = self._clock.now(), self._rng
        begun = rules.begin_create(obj, resource, now, keep_status=keep_status, rng=rng)
        if manager is not None:
            begun = managers.own_new_object(begun, resource, manager, now)
        claims: tuple[Guard, ...] = ()

        def complete(write: Write) -> Write:
            nonlocal claims
            created = write.new
            assert created is not None  # no plugin removes the object
            if write.is_patched:
                created = rules.begin_again(created, begun, keep_status=keep_status)
            created = rules.finish_create(created, rng=rng)
            if created.metadata.resource_version and not (request and request.dry_run):
                raise errors.ResourceVersionSet
            if isinstance(created, Service):
                created, claims = self._addresses.assign(created)
            return write.with_new(created)

        write = self._admission.run(Write(CREATE, resource, begun, request=request), complete)
        guards = (*guards, *claims, *definition_guards(resource))
        return WriteItem("create", resource, cast(Kind, write.new), guards=guards)

    def build_update(
        self,
        new: Kind,
        old: Kind,
        *,
        subresource: Subresource = Subresource.NONE,
        guards: tuple[Guard, ...] = (),
        manager: FieldManager = SELF,
        keep_status: bool = False,
        request: WriteRequest | None = None,
    ) -> WriteItem[Kind] | None:
        """Returns the item that turns `old` into `new`, or None if nothing changes.

        If the object has managed fields, the changed ones become the manager's; those that plugins
        change belong to no manager. With `keep_status`, the status is written as well if `new` has
        one. `request` says who asks for it. Raises: Conflict for another uid, BadRequest,
        Forbidden, Invalid, and what plugins raise.
        """
        resource = old.resource

        def merge(changed: KubeObject) -> KubeObject:
            return rules.merge_modification(
                changed,
                old,
                resource,
                subresource,
                keep_status=keep_status,
                of_request=request is not None,
            )

        merged = self._manage(new, old, merge, subresource, manager)
        claims: tuple[Guard, ...] = ()

        def complete(write: Write) -> Write:
            nonlocal claims
            updated = write.new
            assert updated is not None  # no plugin removes the object
            if updated is not merged:
                updated = merge(rules.with_system_fields(updated, merged))
            rules.validate_modification(updated, old, resource, subresource)
            if isinstance(updated, Service) and isinstance(old, Service) and updated is not old:
                updated, claims = self._addresses.assign(updated, old)
            return write.with_new(updated)

        write = Write(UPDATE, resource, merged, old, subresource.value, request)
        updated = cast(Kind, self._admission.run(write, complete).new)
        if updated is old and not conversion.is_outdated(old):
            return None
        guards, version = (*guards, *claims), old.metadata.resource_version or ""
        if rules.finishes_deletion(updated):
            return WriteItem("delete", resource, updated, version, guards, part=subresource)
        replaced = old if grows(resource, updated, old, self._clock.now()) else None
        return WriteItem(
            "update", resource, updated, version, guards, replaced=replaced, part=subresource
        )

    def _manage(
        self,
        new: KubeObject,
        old: KubeObject,
        merge: Callable[[KubeObject], KubeObject],
        subresource: Subresource,
        manager: FieldManager,
    ) -> KubeObject:
        """Returns what `merge` returns for `new`, with updated managed fields."""
        if manager.operation == "Apply":  # server-side apply has computed the managed fields
            updated = merge(new)
            if new.metadata.managed_fields == updated.metadata.managed_fields:
                return updated
            return updated.with_metadata(managed_fields=new.metadata.managed_fields)
        if subresource in AS_GIVEN:  # their changes belong to the managers of the object
            subresource = Subresource.NONE
        updated = merge(managers.keep_managers(new, old, subresource))
        if updated is old or not (manager.name and updated.metadata.managed_fields):
            return updated
        return managers.own_changes(
            old,
            updated,
            old.resource,
            manager,
            self._clock.now(),
            subresource=subresource,
        )

    def build_delete(
        self,
        old: Kind,
        options: DeleteOptions,
        guards: tuple[Guard, ...] = (),
        *,
        request: WriteRequest | None = None,
    ) -> WriteItem[Kind] | None:
        """Returns the item that deletes `old` or sets its deletion timestamp, or None if nothing
        changes.

        Raises: Conflict for a failed precondition, Forbidden for a namespace of the system, and
        what plugins raise.
        """
        resource, now = old.resource, self._clock.now()
        item: WriteItem[Kind] | None = None

        def complete(write: Write) -> Write:
            nonlocal item
            op, obj = deletion.prepare_delete(old, resource, options, now)
            if op == "delete" or obj is not old:
                version = old.metadata.resource_version or ""
                item = WriteItem(op, resource, cast(Kind, obj), version, guards)
            return write

        self._admission.run(Write(DELETE, resource, None, old, request=request), complete)
        return item
