"""create, update, patch and delete: from requests to the store's verbs.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kcm import errors
from kcm.api import codec
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.bodies import client_warnings, fieldvalidation, reading
from kcm.apiserver.cache.hub import Hub
from kcm.apiserver.cache.watch_cache import Entry
from kcm.apiserver.http.answers import Answer, ApiCall, json_answer
from kcm.apiserver.objects import admission, lists, patches, serverside, status
from kcm.apiserver.refusals import MethodNotAllowed
from kcm.apiserver.target import RequestTarget
from kcm.clock import Clock, RealClock
from kcm.store import DeleteOptions, FieldManager, Store, Subresource, rules
from kcm.store.strategies import kinds

# Kinds whose delete answers with the object (upstream's ReturnDeletedObject). Typed clients decode
# what they expect.
_RETURN_DELETED = frozenset(
    {"persistentvolumeclaims", "pods", "resourcequotas", "serviceaccounts", "services"}
)
_CLOCK: Clock = RealClock()
NOBODY = FieldManager("")  # changes that no manager owns
_ATTEMPTS = 3  # attempts for an object that is created and deleted again and again


def object_answer(
    call: ApiCall, obj: KubeObject, code: int = 200, warnings: Sequence[str] = ()
) -> Answer:
    """Returns the object that a write left, in the form that the client asked for."""
    return lists.entry_answer(call, Entry.made(call.target.resource, obj), code, warnings)


def create(store: Store, call: ApiCall) -> Answer:
    """Answers a POST of an object."""
    obj, warnings = reading.read_object(call)
    if call.target.name:
        raise MethodNotAllowed
    return object_answer(call, create_object(store, call, obj, field_manager(call)), 201, warnings)


def field_manager(call: ApiCall) -> FieldManager:
    """Returns who makes the request. Raises BadRequest."""
    return FieldManager(call.manager)


def create_object(
    store: Store, call: ApiCall, obj: KubeObject, manager: FieldManager | None = None
) -> KubeObject:
    """Creates an object, unless it is a dry run.

    Raises what Store.create raises, NamespaceTerminating and NotFound.
    """
    resource = call.target.resource
    admission.check_create(call, obj)
    if call.dry_run:
        return _dry_create(store, resource, obj, manager)
    return store.create(obj, manager=manager)


def _dry_create(
    store: Store, resource: Resource, obj: KubeObject, manager: FieldManager | None
) -> KubeObject:
    made = store.build_create(obj, manager=manager).obj
    store.check_creatable(made)
    try:
        store.get_raw(resource, made.key)
    except errors.NotFound:
        return made
    raise errors.AlreadyExists.of(resource.name, made.name)


def update(store: Store, call: ApiCall) -> Answer:
    """Answers a PUT of an object or of its status, with 201 when that created it."""
    obj, warnings = reading.read_object(call)
    target = call.target
    if obj.name and obj.name != target.name:
        raise errors.BadRequest(
            f"the name of the object ({obj.name}) does not match the name on the URL "
            f"({target.name})"
        )
    obj = obj.with_metadata(name=target.name)
    version = obj.metadata.resource_version
    if not version and kinds.needs_version(target.resource):
        raise _needs_version(target)

    def change(old: KubeObject) -> KubeObject:
        if version and version != old.metadata.resource_version:
            raise errors.Conflict.of(target.resource.name, target.name)
        return obj

    for _ in range(_ATTEMPTS):
        try:
            return object_answer(call, modify(store, call, change), warnings=warnings)
        except errors.NotFound:
            if target.subresource or not kinds.creates_on_update(target.resource):
                raise
        try:
            return object_answer(call, _create_by_update(store, call, obj), 201, warnings)
        except errors.AlreadyExists:
            continue
    raise errors.Conflict.of(target.resource.name, target.name)


def _create_by_update(store: Store, call: ApiCall, obj: KubeObject) -> KubeObject:
    if obj.uid:
        raise errors.Conflict.of(
            call.target.resource.name,
            obj.name,
            f"Precondition failed: UID in precondition: {obj.uid}, UID in object meta: ",
        )
    fresh = obj.with_metadata(resource_version=None)
    return create_object(store, call, fresh, field_manager(call))


def _needs_version(target: RequestTarget) -> errors.Invalid:
    resource = target.resource
    fault = errors.FieldError(
        "Invalid value",
        "metadata.resourceVersion",
        errors.Verbatim("0x0"),
        "must be specified for an update",
    )
    return errors.Invalid([fault], kind=resource.name, name=target.name, resource=resource.name)


def apply(store: Store, call: ApiCall) -> Answer:
    """Answers a PATCH by server-side apply, with 201 when that created the object."""
    target, mode = call.target, fieldvalidation.mode_of(call.query.get("fieldValidation", ""))
    config = serverside.configuration(call.body, target.resource)
    place = {"name": target.name, "namespace": target.namespace}
    metadata = {**place, **(config.get("metadata") or {})}
    if any(metadata[field] != value for field, value in place.items() if value):
        raise errors.BadRequest("name and namespace of the object do not match those on the URL")
    if not target.namespace:
        metadata.pop("namespace")
    config |= {"metadata": metadata}
    meant = codec.decode(config, target.resource)
    warnings = fieldvalidation.check(meant, b"", mode) + client_warnings.of(meant)
    applied = application(call, client_warnings.prune_body(config, target.resource))
    for _ in range(_ATTEMPTS):
        try:
            return object_answer(call, modify_applied(store, call, applied), warnings=warnings)
        except errors.NotFound:
            if target.subresource:
                raise
        try:
            made = create_object(store, call, serverside.create_applied(applied))
            return object_answer(call, made, 201, warnings)
        except errors.AlreadyExists:
            continue
    raise errors.Conflict.of(target.resource.name, target.name)


def application(call: ApiCall, config: Mapping[str, Any]) -> serverside.Application:
    """Returns the apply that a request asks for. Raises BadRequest."""
    if not call.query.get("fieldManager"):
        raise errors.BadRequest("fieldManager: Required value: is required for apply patch")
    target = call.target
    return serverside.Application(
        target.resource, config, call.manager, call.flag("force"), target.subresource, _CLOCK.now()
    )


def modify_applied(store: Store, call: ApiCall, applied: serverside.Application) -> KubeObject:
    """Returns the object after the apply. Raises NotFound, ApplyConflict and Conflict."""
    manager = FieldManager(call.manager, "Apply")
    return modify(store, call, lambda old: serverside.apply_to(applied, old), manager=manager)


def patch(store: Store, call: ApiCall) -> Answer:
    """Answers a PATCH of an object or of its status."""
    if call.content_type == patches.APPLY:
        return apply(store, call)
    if "force" in call.query:
        raise errors.BadRequest("force: Forbidden: may not be specified for non-apply patch")
    resource = call.target.resource
    mode = fieldvalidation.mode_of(call.query.get("fieldValidation", ""))
    parsed = patches.parse(call.content_type, call.body, resource)
    warnings: list[str] = []
    on_objects = patches.on_objects(parsed, resource, call.body)

    def change(old: KubeObject) -> KubeObject:
        new = on_objects(old)
        # Only what this patch brings: an object that was stored with unknown fields stays
        # patchable.
        present = set(fieldvalidation.unknown_in(old))
        warnings[:] = fieldvalidation.check(new, call.body, mode, present) + client_warnings.of(new)
        return new

    return object_answer(call, modify(store, call, change), warnings=warnings)


def modify(
    store: Store,
    call: ApiCall,
    change: Callable[[KubeObject], KubeObject],
    *,
    manager: FieldManager | None = None,
) -> KubeObject:
    """Changes an object through the request's subresource, unless it is a dry run.

    What changes becomes the field manager's, by default the request's.
    """
    target, manager = call.target, manager or FieldManager(call.manager)
    part = Subresource(target.subresource)
    change = admission.check_change(call, change)
    if not call.dry_run:
        return store.modify(target.resource, target.key, change, subresource=part, manager=manager)
    old = store.get(target.resource, target.key)
    item = store.build_update(change(old), old, subresource=part, manager=manager)
    return old if item is None else item.obj


def delete(store: Store, call: ApiCall) -> Answer:
    """Answers a DELETE of one object: with a Status when it is gone, else with the object.

    The delete of a pod is always answered with the object.
    """
    target = call.target
    options, dry = reading.read_delete_options(call)
    obj, gone = delete_object(store, target.resource, target.key, options, dry=dry)
    if gone and target.resource.name not in _RETURN_DELETED:
        return json_answer(status.deletion_status(target.resource, obj.name, obj.uid))
    return object_answer(call, obj)


def delete_object(
    store: Store, resource: Resource, key: str, options: DeleteOptions, *, dry: bool
) -> tuple[KubeObject, bool]:
    """Deletes an object, and returns its last state and whether it is gone."""
    if dry:
        old = store.get(resource, key)
        item = store.build_delete(old, options)
        return (old, False) if item is None else (item.obj, item.op == "delete")
    obj = store.delete(resource, key, options)
    return obj, rules.finishes_deletion(obj)


def delete_collection(store: Store, hub: Hub, call: ApiCall) -> Answer:
    """Answers a DELETE of a list with the objects as they were."""
    resource = call.target.resource
    options, dry = reading.read_delete_options(call)
    entries, _, _, _ = lists.select(hub, call)
    for entry in entries:
        try:
            delete_object(store, resource, entry.key, options, dry=dry)
        except (errors.NotFound, errors.Forbidden):
            continue
    return lists.items_answer(call, entries, {})
