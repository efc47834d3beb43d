"""Builds the items of writes from the objects that callers send: defaulted, validated, admitted.

An item is built from the state that the caller knows, and has its resourceVersion and guards.
Whether they still apply is checked when the item is written.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import cast

from kcm import errors
from kcm.api.core_v1 import Service
from kcm.api.scheme import Resource
from kcm.apiextensions import conversion
from kcm.apimachinery.meta_v1 import Kind, KubeObject
from kcm.clock import Clock
from kcm.kinds import defaults
from kcm.store import rules
from kcm.store.admission.chain import Admission
from kcm.store.admission.quotas import grows
from kcm.store.admission.service_addresses import ServiceAddresses
from kcm.store.managed_fields import managers
from kcm.store.managed_fields.managers import FieldManager
from kcm.store.rules import DeleteOptions, Subresource
from kcm.store.writes.guards import Guard, definition_guards
from kcm.store.writes.items import Pattern, WriteItem
from kcm.store.writes.modifying import WriteAdmission

SELF = FieldManager("kcm")  # the field manager of writes without one


class ItemBuilder:
    """Builds the items of one store's writes."""

    def __init__(
        self,
        admission: Admission,
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
        admission: WriteAdmission | None = None,
    ) -> WriteItem[Kind]:
        """Returns the item that creates `obj`.

        `like` is an earlier create of this very object: defaulting and validation are not repeated
        if only a generated name and the uid differ. Without a manager the object gets no managed
        fields, which saves work in batches. With `keep_status`, the status of `obj` is stored as
        well. `admission` may change the object; what it adds belongs to no manager. Raises:
        BadRequest, Forbidden, Invalid, and what `admission` raises.
        """
        if like is not None and not obj.name and not obj.uid:
            copied = cast(Kind, rules.prepare_copy(like.item.obj, rng=self._rng))
            return WriteItem("create", obj.resource, copied, guards=guards, pattern=like)
        resource = obj.resource
        given = self._admission.admit(obj, self._clock.monotonic())
        now = self._clock.now()
        mutates = admission is not None and admission.mutates
        if admission is not None and mutates:
            given = self._admit_new(given, resource, now, admission, manager)
        created = rules.prepare_create(given, resource, now, keep_status=keep_status, rng=self._rng)
        if manager is not None and not mutates:
            created = managers.own_new_object(created, resource, manager, now)
        if isinstance(created, Service):
            created, claims = self._addresses.assign(created)
            guards = (*guards, *claims)
        guards = (*guards, *definition_guards(resource))
        return WriteItem("create", resource, cast(Kind, created), guards=guards)

    def _admit_new(
        self,
        obj: KubeObject,
        resource: Resource,
        now: datetime,
        admission: WriteAdmission,
        manager: FieldManager | None,
    ) -> KubeObject:
        """Returns a new object as others have changed it. It gets its uid and its managed fields
        before, and a generated name after.
        """

        def readmit(changed: KubeObject) -> KubeObject:
            admitted = self._admission.admit(changed, self._clock.monotonic())
            return admitted if admitted is changed else defaults.apply(admitted)

        given = rules.complete_new(obj, resource, now, self._rng, keep_status=False)
        if manager is not None:
            given = managers.own_new_object(given, resource, manager, now)
        admitted = admission.admit(given, None, readmit)
        assert admitted is not None
        if admitted.namespace != given.namespace:
            raise errors.BadRequest(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
        return _with_system_fields_of(admitted, given)

    def build_update(
        self,
        new: Kind,
        old: Kind,
        *,
        subresource: Subresource = Subresource.NONE,
        guards: tuple[Guard, ...] = (),
        manager: FieldManager = SELF,
        keep_status: bool = False,
        admission: WriteAdmission | None = None,
    ) -> WriteItem[Kind] | None:
        """Returns the item that turns `old` into `new`, or None if nothing changes.

        If the object has managed fields, the changed ones become the manager's. With `keep_status`,
        the status is written as well if `new` has one. `admission` may change the object; its
        changes belong to no manager. Raises: Conflict for another uid, BadRequest, Forbidden,
        Invalid, and what `admission` raises.
        """
        resource = old.resource

        def prepare(changed: KubeObject, *, validated: bool = True) -> KubeObject:
            return rules.prepare_modification(
                changed, old, resource, subresource, keep_status=keep_status, validated=validated
            )

        if admission is None or not admission.mutates:
            updated = self._manage(new, old, prepare, subresource, manager)
        else:
            merge = partial(prepare, validated=False)
            given = self._manage(new, old, merge, subresource, manager)
            admitted = admission.admit(given, old, lambda changed: changed)
            assert admitted is not None
            updated = prepare(_with_system_fields_of(admitted, given))
        if updated is old and not conversion.is_outdated(old):
            return None
        self._admission.check(updated, self._clock.monotonic(), old)
        if isinstance(updated, Service) and isinstance(old, Service):
            updated, claims = self._addresses.assign(updated, old)
            guards = (*guards, *claims)
        version, changed = old.metadata.resource_version or "", cast(Kind, updated)
        if rules.finishes_deletion(updated):
            return WriteItem("delete", resource, changed, version, guards, part=subresource)
        replaced = old if grows(resource, updated, old, self._clock.now()) else None
        return WriteItem(
            "update", resource, changed, version, guards, replaced=replaced, part=subresource
        )

    def _manage(
        self,
        new: KubeObject,
        old: KubeObject,
        prepare: Callable[[KubeObject], KubeObject],
        subresource: Subresource,
        manager: FieldManager,
    ) -> KubeObject:
        """Returns what `prepare` returns for `new`, with updated managed fields."""
        if manager.operation == "Apply":  # server-side apply has computed the managed fields
            updated = prepare(new)
            if new.metadata.managed_fields == updated.metadata.managed_fields:
                return updated
            return updated.with_metadata(managed_fields=new.metadata.managed_fields)
        if subresource in rules.AS_GIVEN:  # their changes belong to the managers of the object
            subresource = Subresource.NONE
        updated = prepare(managers.keep_managers(new, old, subresource))
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
        self, old: Kind, options: DeleteOptions, guards: tuple[Guard, ...] = ()
    ) -> WriteItem[Kind] | None:
        """Returns the item that deletes `old` or sets its deletion timestamp, or None if nothing
        changes.

        Raises: Conflict for a failed precondition, Forbidden for a namespace of the system.
        """
        resource = old.resource
        op, obj = rules.prepare_delete(old, resource, options, self._clock.now())
        if obj is old and op == "update":
            return None
        version = old.metadata.resource_version or ""
        return WriteItem(op, resource, cast(Kind, obj), version, guards)


def _with_system_fields_of(obj: KubeObject, other: KubeObject) -> KubeObject:
    """Returns the object with the metadata of the other one that only the system may write."""
    meta = other.metadata
    return obj.with_metadata(
        uid=meta.uid, generation=meta.generation, managed_fields=meta.managed_fields
    )
