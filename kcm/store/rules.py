"""The rules of create, update and delete, as pure functions on objects.

They compute the object to store from what the caller sent and what is stored, or raise. They do no
I/O. The store's verbs and the executor build their writes with them, so that controllers, injected
events and HTTP requests follow the same rules.

Source: staging/src/k8s.io/apiserver/pkg/registry/rest/{create,update,delete}.go and
pkg/registry/*/strategy.go, Kubernetes 1.33.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.api.custom.kinds import CustomResource
from kcm.api.scheme import Resource
from kcm.apimachinery import names
from kcm.apimachinery.base import Model
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.times import shift_time
from kcm.kinds import defaults, validation
from kcm.store.namespaces import check_deletable
from kcm.store.strategies.kinds import strategy_of
from kcm.store.strategies.pod_parts import with_ephemeral_containers, with_resources

PropagationPolicy = Literal["Background", "Foreground", "Orphan"]
FOREGROUND_FINALIZER = "foregroundDeletion"
ORPHAN_FINALIZER = "orphan"


class Subresource(StrEnum):
    """The subresource through which an object is updated, which decides the rules of the update."""

    NONE = ""  # the object itself, except its status
    STATUS = "status"
    SCALE = "scale"
    BINDING = "binding"  # of a pod to a node; written without the rules of updates
    FINALIZE = "finalize"  # of a namespace; written without the rules of updates
    APPROVAL = "approval"  # of a signing request; written without the rules of updates
    EPHEMERAL_CONTAINERS = "ephemeralcontainers"  # of a pod
    RESIZE = "resize"  # of a pod: its containers' resources


AS_GIVEN = frozenset({Subresource.BINDING, Subresource.FINALIZE, Subresource.APPROVAL})

PodPart = Callable[[Pod, Pod], Pod]
PodRule = Callable[[Pod, Pod], list[errors.FieldError]]
# What a subresource takes from the new pod, and the rules of its change.
_POD_PARTS: Mapping[Subresource, tuple[PodPart, PodRule]] = {
    Subresource.EPHEMERAL_CONTAINERS: (
        with_ephemeral_containers,
        validation.validate_ephemeral_containers,
    ),
    Subresource.RESIZE: (with_resources, validation.validate_resize),
}


@dataclass(frozen=True)
class DeleteOptions:
    """How to delete, and under which preconditions; upstream's metav1.DeleteOptions."""

    grace_period_seconds: int | None = None
    propagation_policy: PropagationPolicy | None = None
    uid: str = ""  # precondition; empty: any
    resource_version: str = ""  # precondition; empty: any


def prepare_create(
    obj: KubeObject,
    resource: Resource,
    now: datetime,
    *,
    keep_status: bool = False,
    rng: random.Random,
) -> KubeObject:
    """Returns the object to store: named, defaulted, with a uid and a creation time.

    A uid that the caller chose is kept, so that a repeated create is recognized (design 0002). With
    `keep_status`, the status of `obj` is kept. Raises: BadRequest, Invalid.
    """
    if not obj.name and obj.metadata.generate_name:
        name = names.generate_name(obj.metadata.generate_name, rng)
        obj = obj.with_metadata(name=name)
    created = complete_new(obj, resource, now, rng, keep_status=keep_status)
    _require(validation.validate_create(created), resource, created)
    return created


def complete_new(
    obj: KubeObject, resource: Resource, now: datetime, rng: random.Random, *, keep_status: bool
) -> KubeObject:
    """Returns a new object with defaults and what the system sets, except a generated name.

    Nothing is validated. Raises: BadRequest.
    """
    meta = obj.metadata
    if meta.resource_version:
        raise errors.BadRequest("resourceVersion should not be set on objects to be created")
    changes: dict[str, Any] = {
        "uid": meta.uid or new_uid(rng),
        "creation_timestamp": now.replace(microsecond=0),
        "deletion_timestamp": None,
        "deletion_grace_period_seconds": None,
        "self_link": None,
    }
    if resource.has_status or isinstance(resource, CustomResource):
        changes["generation"] = 1
    if resource.namespaced and not meta.namespace:
        changes["namespace"] = "default"
    created = obj.with_metadata(**changes)
    if not keep_status:
        created = strategy_of(resource).for_create(created)
    return defaults.apply(created)


def prepare_copy(prepared: KubeObject, *, rng: random.Random) -> KubeObject:
    """Returns another object like one that `prepare_create` returned, with a new name and uid.

    Nothing else differs, so nothing is validated.
    """
    return prepared.with_metadata(
        name=names.generate_name(prepared.metadata.generate_name or "", rng),
        uid=new_uid(rng),
    )


def new_uid(rng: random.Random) -> str:
    """Returns a random UUID (version 4) in half the time of the standard library's."""
    digits = f"{rng.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def merge_update(
    new: KubeObject, old: KubeObject, resource: Resource, *, keep_status: bool = False
) -> KubeObject:
    """Returns `new` with the fields that an update may not change taken from `old`.

    Returns `old` itself if nothing changed. The generation increases only if the spec changed, or
    other fields that the kind's strategy names. With `keep_status`, the status of `new` is kept.
    Nothing is validated. Raises: Conflict for another uid.
    """
    _require_same_uid(new, old, resource)
    updated = _with_system_metadata(new, old)
    if resource.has_status and not keep_status:
        updated = updated.with_status(_status(old))
    strategy = strategy_of(resource)
    updated = defaults.apply(strategy.for_update(updated, old))
    if strategy.is_revised(updated, old):
        updated = updated.with_metadata(generation=(old.metadata.generation or 0) + 1)
    return old if updated == old else updated


def prepare_update(
    new: KubeObject, old: KubeObject, resource: Resource, *, keep_status: bool = False
) -> KubeObject:
    """Returns what `merge_update` returns. Raises: Conflict for another uid, Invalid."""
    updated = merge_update(new, old, resource, keep_status=keep_status)
    if updated is not old:
        _require(validation.validate_update(updated, old), resource, updated)
    return updated


def prepare_part_update(
    new: Pod, old: Pod, resource: Resource, part: Subresource, *, validated: bool = True
) -> Pod:
    """Returns `old` with the part of `new` that a subresource changes, or `old` itself if that is
    the same.

    Without `validated`, the result may be invalid. Raises: Conflict for another uid, Invalid.
    """
    _require_same_uid(new, old, resource)
    take, validate = _POD_PARTS[part]
    updated = defaults.apply(take(new, old))
    if updated.spec != old.spec:
        updated = updated.with_metadata(generation=(old.metadata.generation or 0) + 1)
    if updated == old:
        return old
    if validated:
        _require(validate(updated, old), resource, updated)
    return updated


def merge_status_update(new: KubeObject, old: KubeObject, resource: Resource) -> KubeObject:
    """Returns `old` with the status of `new`, or `old` itself if that is the same.

    The kind's strategy may take more fields from `new`. Nothing is validated. Raises: BadRequest
    for a kind without status, Conflict for another uid.
    """
    if not resource.has_status:
        raise errors.BadRequest(f"{resource.name} have no status subresource")
    _require_same_uid(new, old, resource)
    updated = strategy_of(resource).for_status(new, old).with_status(_status(new))
    if isinstance(resource, CustomResource):
        updated = defaults.apply(updated)  # the schema of a custom kind has defaults for status too
    return old if updated == old else updated


def prepare_status_update(new: KubeObject, old: KubeObject, resource: Resource) -> KubeObject:
    """Returns what `merge_status_update` returns. Raises: as that, and Invalid."""
    updated = merge_status_update(new, old, resource)
    if updated is not old:
        _require(validation.validate_status_update(updated, old), resource, updated)
    return updated


def prepare_modification(
    new: KubeObject,
    old: KubeObject,
    resource: Resource,
    subresource: Subresource = Subresource.NONE,
    *,
    keep_status: bool = False,
    validated: bool = True,
) -> KubeObject:
    """Returns the result of updating `old` to `new` through a subresource.

    Returns `old` itself if nothing changed. With `keep_status`, an update of the object itself
    takes the status as well, if `new` has one. Without `validated`, the result may be invalid.
    Raises: Conflict for another uid, Invalid, BadRequest.
    """
    if subresource in AS_GIVEN:
        return new
    if subresource == Subresource.STATUS:
        update_status = prepare_status_update if validated else merge_status_update
        return update_status(new, old, resource)
    if subresource in _POD_PARTS:
        if not isinstance(new, Pod) or not isinstance(old, Pod):
            raise errors.BadRequest(f"{resource.name} have no subresource {subresource.value}")
        return prepare_part_update(new, old, resource, subresource, validated=validated)
    keep_status = keep_status and "status" in new.model_fields_set
    update = prepare_update if validated else merge_update
    return update(new, old, resource, keep_status=keep_status)


def finishes_deletion(obj: KubeObject) -> bool:
    """Reports whether an object is being deleted and neither finalizers nor a grace period are
    left.
    """
    meta = obj.metadata
    return bool(
        meta.deletion_timestamp
        and not meta.finalizers
        and not meta.deletion_grace_period_seconds
        and not has_spec_finalizers(obj)
    )


def has_spec_finalizers(obj: KubeObject) -> bool:
    """Reports whether the object has finalizers in its spec, as namespaces do."""
    return bool(getattr(getattr(obj, "spec", None), "finalizers", None))


def prepare_delete(
    old: KubeObject, resource: Resource, options: DeleteOptions, now: datetime
) -> tuple[Literal["delete", "update"], KubeObject]:
    """Returns what a delete does now: remove the object ("delete") or mark it as deleted
    ("update").

    A marked object has a deletion timestamp and waits for its finalizers and grace period.
    `("update", old)` means that nothing changes. Raises: Conflict for a failed precondition,
    Forbidden for a namespace of the system.
    """
    check_deletable(resource, old.name or "")
    check_preconditions(old, resource, options)
    grace = _grace(old, resource, options.grace_period_seconds)
    if grace is None:
        return "update", old
    finalizers = _finalizers(old, _policy(old, resource, options))
    marked = _mark(old, finalizers, grace, now)
    if not old.deleting:
        marked = strategy_of(resource).for_delete(marked, now)
        finalizers = marked.metadata.finalizers or []
    if finalizers or grace or has_spec_finalizers(old):
        return "update", old if marked == old else marked
    return "delete", marked


def _grace(old: KubeObject, resource: Resource, requested: int | None) -> int | None:
    """Returns the grace period in seconds, None if that of an earlier delete stays."""
    if not old.deleting:
        return strategy_of(resource).grace_period(old, requested)
    before = old.metadata.deletion_grace_period_seconds or 0
    if not before:
        return 0
    asked = 1 if requested is not None and requested < 0 else requested
    return None if asked is None or asked >= before else asked


def _mark(obj: KubeObject, finalizers: Sequence[str], grace: int, now: datetime) -> KubeObject:
    """Returns the object with these finalizers and a deletion timestamp."""
    meta = obj.metadata
    before = meta.deletion_grace_period_seconds or 0
    changes: dict[str, Any] = {}
    if finalizers != (meta.finalizers or []):
        changes["finalizers"] = finalizers or None
    if meta.deletion_timestamp is None:
        changes["deletion_timestamp"] = shift_time(now, grace).replace(microsecond=0)
        changes["deletion_grace_period_seconds"] = grace
        changes["generation"] = meta.generation + 1 if meta.generation else meta.generation
    elif grace < before:
        # A second delete may only shorten the grace period, which counts from the first delete.
        # The deletion timestamp is never set to a time in the past.
        end = shift_time(meta.deletion_timestamp, grace - before)
        if end < now:
            end, grace = now.replace(microsecond=0), min(grace, 1)
        changes["deletion_timestamp"] = end
        changes["deletion_grace_period_seconds"] = grace
    return obj.with_metadata(**changes) if changes else obj


def _policy(
    old: KubeObject, resource: Resource, options: DeleteOptions
) -> PropagationPolicy | None:
    """Returns the requested propagation policy, or the default of the kind.

    Returns None if the finalizers of the object stay as they are.
    """
    asked = options.propagation_policy
    decided = {FOREGROUND_FINALIZER, ORPHAN_FINALIZER} & set(old.metadata.finalizers or ())
    if asked is None and not decided and strategy_of(resource).orphans_by_default:
        return "Orphan"
    return asked


def _finalizers(obj: KubeObject, policy: PropagationPolicy | None) -> list[str]:
    """Returns the object's finalizers with those that the policy needs."""
    kept = list(obj.metadata.finalizers or ())
    if policy is None:
        return kept
    kept = [name for name in kept if name not in (FOREGROUND_FINALIZER, ORPHAN_FINALIZER)]
    wanted = {"Foreground": [FOREGROUND_FINALIZER], "Orphan": [ORPHAN_FINALIZER]}
    return kept + wanted.get(policy, [])


def check_preconditions(old: KubeObject, resource: Resource, options: DeleteOptions) -> None:
    """Raises Conflict if the object's uid or resourceVersion is not that of the options."""
    name = old.name or ""
    if options.uid and options.uid != old.uid:
        raise errors.Conflict.of(
            resource.name,
            name,
            f"Precondition failed: UID in precondition: {options.uid}, "
            f"UID in object meta: {old.uid}",
        )
    if options.resource_version and options.resource_version != old.metadata.resource_version:
        raise errors.Conflict.of(
            resource.name,
            name,
            f"Precondition failed: ResourceVersion in precondition: {options.resource_version}, "
            f"ResourceVersion in object meta: {old.metadata.resource_version}",
        )


def _require_same_uid(new: KubeObject, old: KubeObject, resource: Resource) -> None:
    """Raises Conflict if `new` has another uid than `old`. No uid is accepted."""
    if new.uid and new.uid != old.uid:
        raise errors.Conflict.of(
            resource.name,
            old.name or "",
            f"Precondition failed: UID in precondition: {new.uid}, UID in object meta: {old.uid}",
        )


def _with_system_metadata(new: KubeObject, old: KubeObject) -> KubeObject:
    """Returns `new` with the metadata that only the system may write taken from `old`."""
    meta = old.metadata
    finalizers = new.metadata.finalizers
    return new.with_metadata(
        uid=meta.uid,
        resource_version=meta.resource_version,
        creation_timestamp=meta.creation_timestamp,
        deletion_timestamp=meta.deletion_timestamp,
        deletion_grace_period_seconds=meta.deletion_grace_period_seconds,
        generation=meta.generation,
        self_link=None,
        finalizers=finalizers or None,
        namespace=new.metadata.namespace or meta.namespace,
    )


def _status(obj: KubeObject) -> Model:
    status: Model = obj.status  # type: ignore[attr-defined] # kinds with a status have it
    return status


def _require(faults: list[errors.FieldError], resource: Resource, obj: KubeObject) -> None:
    """Raises Invalid if there are faults."""
    if faults:
        raise errors.Invalid(
            faults,
            kind=resource.qualified_kind,
            name=obj.name or "",
            resource=resource.name,
        )
