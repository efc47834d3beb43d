"""The rules of create and update, as pure functions on objects. Those of delete are in
`kcm.store.writes.deletion`.

They compute the object to store from what the caller sent and what is stored, or raise. They do no
I/O. The store's verbs and the executor build their writes with them, so that controllers, injected
events and HTTP requests follow the same rules.

Source: staging/src/k8s.io/apiserver/pkg/registry/rest/{create,update}.go and
pkg/registry/*/strategy.go, Kubernetes 1.33.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from kcm import errors
from kcm.api.core_v1 import Namespace, Pod
from kcm.api.custom.kinds import CustomResource
from kcm.api.scheme import Resource
from kcm.apimachinery import names
from kcm.apimachinery.base import Model
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.kinds import defaults, validation
from kcm.store.options import AS_GIVEN, Subresource
from kcm.store.strategies.counted import counts_changes, first_generation
from kcm.store.strategies.kinds import strategy_of
from kcm.store.strategies.pod_parts import with_ephemeral_containers, with_resources
from kcm.store.strategies.updating import take_status_metadata

_VALID_BEFORE = frozenset({Subresource.BINDING, Subresource.APPROVAL})  # their handlers see to it
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


def prepare_create(
    obj: KubeObject,
    resource: Resource,
    now: datetime,
    *,
    keep_status: bool = False,
    rng: random.Random,
) -> KubeObject:
    """Returns the object to store: named, defaulted, with a uid and a creation time.

    With `keep_status`, the status of `obj` is kept. Raises: Invalid.
    """
    begun = begin_create(obj, resource, now, keep_status=keep_status, rng=rng)
    return finish_create(begun, rng=rng)


def begin_create(
    obj: KubeObject, resource: Resource, now: datetime, *, keep_status: bool, rng: random.Random
) -> KubeObject:
    """Returns a new object with defaults and what the system sets, except a generated name.

    A uid that the caller chose is kept, so that a repeated create is recognized (design 0002).
    Nothing is validated.
    """
    meta = obj.metadata
    changes: dict[str, Any] = {
        "uid": meta.uid or new_uid(rng),
        "creation_timestamp": now.replace(microsecond=0),
        "deletion_timestamp": None,
        "deletion_grace_period_seconds": None,
        "self_link": None,
        "generation": first_generation(resource),
    }
    if resource.namespaced and not meta.namespace:
        changes["namespace"] = "default"
    return _complete(obj.with_metadata(**changes), keep_status=keep_status)


def begin_again(patched: KubeObject, begun: KubeObject, *, keep_status: bool) -> KubeObject:
    """Returns a new object that a webhook has changed since it was begun, without the changes that
    only the system may make. Raises: BadRequest for another namespace.
    """
    if patched.namespace != begun.namespace:
        raise errors.BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    restored = with_system_fields(patched, begun).with_metadata(
        creation_timestamp=begun.metadata.creation_timestamp,
        deletion_timestamp=None,
        deletion_grace_period_seconds=None,
        self_link=None,
    )
    return _complete(restored, keep_status=keep_status)


def finish_create(created: KubeObject, *, rng: random.Random) -> KubeObject:
    """Returns the object to store of one that was begun and admitted: with its name.

    Raises: Invalid.
    """
    if not created.name and created.metadata.generate_name:
        name = names.generate_name(created.metadata.generate_name, rng)
        created = created.with_metadata(name=name)
    created = strategy_of(created.resource).complete(created)
    _require(validation.validate_create(created), created.resource, created)
    return created


def _complete(obj: KubeObject, *, keep_status: bool) -> KubeObject:
    """Returns a new object without what its creator may not set, and with defaults."""
    return defaults.apply(obj if keep_status else strategy_of(obj.resource).for_create(obj))


def with_system_fields(obj: KubeObject, other: KubeObject) -> KubeObject:
    """Returns the object with the metadata of the other one that only the system may write."""
    meta = other.metadata
    return obj.with_metadata(
        uid=meta.uid, generation=meta.generation, managed_fields=meta.managed_fields
    )


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
    updated = strategy.for_update(defaults.apply(updated), old)
    if counts_changes(resource) and strategy.is_revised(updated, old):
        updated = updated.with_metadata(generation=(old.metadata.generation or 0) + 1)
    return old if updated == old else updated


def _merge_part(new: Pod, old: Pod, resource: Resource, part: Subresource) -> Pod:
    """Returns `old` with the part of `new` that a subresource changes, or `old` itself if that is
    the same.

    Nothing is validated. Raises: Conflict for another uid.
    """
    _require_same_uid(new, old, resource)
    take, _ = _POD_PARTS[part]
    updated = defaults.apply(take(new, old))
    if updated.spec != old.spec:
        updated = updated.with_metadata(generation=(old.metadata.generation or 0) + 1)
    return old if updated == old else updated


def merge_status_update(
    new: KubeObject, old: KubeObject, resource: Resource, *, of_request: bool
) -> KubeObject:
    """Returns `old` with the status of `new`, or `old` itself if that is the same.

    The kind's strategy may take more fields from `new`, and a request may change labels and the
    like; kcm's own writes may not, as they have the metadata of an older version. Nothing is
    validated. Raises: BadRequest for a kind without status, Conflict for another uid.
    """
    if not resource.has_status:
        raise errors.BadRequest(f"{resource.name} have no status subresource")
    _require_same_uid(new, old, resource)
    updated = strategy_of(resource).for_status(new, old)
    if of_request:
        updated = take_status_metadata(updated, new)
    if isinstance(resource, CustomResource):
        updated = defaults.apply(updated)  # the schema of a custom kind has defaults for status too
    return old if updated == old else updated


def merge_modification(
    new: KubeObject,
    old: KubeObject,
    resource: Resource,
    subresource: Subresource = Subresource.NONE,
    *,
    keep_status: bool = False,
    of_request: bool = False,
) -> KubeObject:
    """Returns the result of updating `old` to `new` through a subresource, which may be invalid.

    Returns `old` itself if nothing changed. With `keep_status`, an update of the object itself
    takes the status as well, if `new` has one. `of_request` says that an API request asks for it.
    Raises: Conflict for another uid, BadRequest.
    """
    if subresource in AS_GIVEN:
        return new
    if subresource == Subresource.STATUS:
        return merge_status_update(new, old, resource, of_request=of_request)
    if subresource in _POD_PARTS:
        if not isinstance(new, Pod) or not isinstance(old, Pod):
            raise errors.BadRequest(f"{resource.name} have no subresource {subresource.value}")
        return _merge_part(new, old, resource, subresource)
    keep_status = keep_status and "status" in new.model_fields_set
    return merge_update(new, old, resource, keep_status=keep_status)


def validate_modification(
    updated: KubeObject, old: KubeObject, resource: Resource, subresource: Subresource
) -> None:
    """Raises Invalid if the result of an update is invalid. An unchanged object is valid."""
    if updated is old or subresource in _VALID_BEFORE:
        return
    if subresource == Subresource.FINALIZE:
        assert isinstance(updated, Namespace)  # no other kind has it
        assert isinstance(old, Namespace)
        faults = validation.validate_finalize(updated, old)
    elif subresource == Subresource.STATUS:
        faults = validation.validate_status_update(updated, old)
    elif isinstance(updated, Pod) and isinstance(old, Pod) and subresource in _POD_PARTS:
        faults = _POD_PARTS[subresource][1](updated, old)
    else:
        faults = validation.validate_update(updated, old)
    _require(faults, resource, updated)


def prepare_modification(
    new: KubeObject,
    old: KubeObject,
    resource: Resource,
    subresource: Subresource = Subresource.NONE,
    *,
    keep_status: bool = False,
) -> KubeObject:
    """Returns what `merge_modification` returns. Raises: as that, and Invalid."""
    updated = merge_modification(new, old, resource, subresource, keep_status=keep_status)
    validate_modification(updated, old, resource, subresource)
    return updated


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


def _require_same_uid(new: KubeObject, old: KubeObject, resource: Resource) -> None:
    """Raises Conflict if `new` has another uid than `old`. No uid is accepted."""
    if new.uid and new.uid != old.uid:
        raise errors.Conflict.of(
            resource.name,
            old.name or "",
            f"Precondition failed: UID in precondition: {new.uid}, UID in object meta: {old.uid}",
        )


def _with_system_metadata(new: KubeObject, old: KubeObject) -> KubeObject:
    """Returns `new` with the metadata that only the system may write taken from `old`.

    As upstream, a deletion timestamp that `old` has not, and another grace period, are left for
    validation to refuse.
    """
    meta, given = old.metadata, new.metadata
    grace = given.deletion_grace_period_seconds
    return new.with_metadata(
        uid=meta.uid,
        resource_version=meta.resource_version,
        creation_timestamp=meta.creation_timestamp,
        deletion_timestamp=meta.deletion_timestamp or given.deletion_timestamp,
        deletion_grace_period_seconds=(
            meta.deletion_grace_period_seconds if grace is None else grace
        ),
        generation=meta.generation,
        self_link=None,
        finalizers=given.finalizers or None,
        namespace=given.namespace or meta.namespace,
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
