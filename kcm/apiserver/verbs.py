"""create, update, patch, delete: from requests to the store's verbs.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kcm import errors
from kcm.api import codec
from kcm.api.meta_v1 import KubeObject
from kcm.api.scheme import Resource
from kcm.apiserver import (
    bodies,
    fieldvalidation,
    lists,
    managers,
    namespaces,
    patches,
    serverside,
    status,
)
from kcm.apiserver.answers import Answer, Call, json_answer
from kcm.apiserver.cache import Entry
from kcm.apiserver.hub import Hub
from kcm.apiserver.managers import Manager
from kcm.apiserver.refusals import MethodNotAllowed
from kcm.clock import Clock, RealClock
from kcm.store import Conditions, DeleteOptions, Store, rules

Prepare = Callable[[KubeObject, KubeObject, Resource], KubeObject]
_CLOCK: Clock = RealClock()
_NAMESPACE_ATTEMPTS = 3  # a namespace that is made and deleted again and again


def stored(call: Call, obj: KubeObject, code: int = 200, warnings: Sequence[str] = ()) -> Answer:
    """An object that a write left behind, in the form that the client asked for."""
    entry = Entry(call.target.resource, obj.key, codec.encode(obj), 0)
    return lists.shown(call, entry, code, warnings)


def create(store: Store, call: Call) -> Answer:
    """POST of an object."""
    obj, warnings = bodies.object_of(call)
    if call.target.name:
        raise MethodNotAllowed
    return stored(call, create_object(store, call, obj), 201, warnings)


def create_object(store: Store, call: Call, obj: KubeObject) -> KubeObject:
    """Create, unless it is a dry run. Raises: as Store.create, NamespaceTerminating, NotFound."""
    resource = call.target.resource
    if call.dry_run:
        return _dry_create(store, resource, obj)
    when = Conditions(namespaces.guards(obj, resource))
    for _ in range(_NAMESPACE_ATTEMPTS):
        try:
            return store.create(obj, when)
        except errors.GuardFailed:
            refused = namespaces.refusal(store, obj, resource)
            if refused is not None:
                raise refused from None
    raise errors.Conflict.of(resource.name, obj.name)


def _dry_create(store: Store, resource: Resource, obj: KubeObject) -> KubeObject:
    made = store.creation(obj).obj
    refused = namespaces.refusal(store, made, resource)
    if refused is not None:
        raise refused
    try:
        store.get_raw(resource, made.key)
    except errors.NotFound:
        return made
    raise errors.AlreadyExists.of(resource.name, made.name)


def update(store: Store, call: Call) -> Answer:
    """PUT of an object, or of its status."""
    obj, warnings = bodies.object_of(call)
    target = call.target
    if obj.name and obj.name != target.name:
        raise errors.BadRequest(
            f"the name of the object ({obj.name}) does not match the name on the URL "
            f"({target.name})"
        )
    obj = obj.with_metadata(name=target.name)
    version = obj.metadata.resource_version

    def change(old: KubeObject) -> KubeObject:
        kept = old.metadata.managed_fields if obj.metadata.managed_fields is None else None
        if version and version != old.metadata.resource_version:
            raise errors.Conflict.of(target.resource.name, target.name)
        new = obj if kept is None else obj.with_metadata(managed_fields=kept)
        return tracked(call, old, new)

    return stored(call, modify(store, call, change), warnings=warnings)


def tracked(call: Call, old: KubeObject, new: KubeObject) -> KubeObject:
    """`new`, with what the request changed owned by its manager."""
    resource, sub = call.target.resource, call.target.subresource
    who = Manager(call.manager, "Update", resource.api_version, "", frozenset(), sub)
    return managers.track(old, new, resource, who, _CLOCK.now())


def apply(store: Store, call: Call) -> Answer:
    """PATCH of an object by server-side apply; 201 when that created it."""
    target, mode = call.target, fieldvalidation.mode_of(call.query.get("fieldValidation", ""))
    if not call.query.get("fieldManager"):
        raise errors.BadRequest("fieldManager: Required value: is required for apply patch")
    config = serverside.configuration(call.body, target.resource)
    place = {"name": target.name, "namespace": target.namespace}
    metadata = {**place, **(config.get("metadata") or {})}
    if any(metadata[field] != value for field, value in place.items() if value):
        raise errors.BadRequest("name and namespace of the object do not match those on the URL")
    if not target.namespace:
        metadata.pop("namespace")
    config |= {"metadata": metadata}
    warnings = fieldvalidation.check(codec.decode(config, target.resource), b"", mode)
    what = serverside.Application(
        target.resource, config, call.manager, call.flag("force"), target.subresource, _CLOCK.now()
    )
    for _ in range(_NAMESPACE_ATTEMPTS):
        try:
            found = modify(store, call, lambda old: serverside.applied(what, old))
            return stored(call, found, warnings=warnings)
        except errors.NotFound:
            if target.subresource:
                raise
        try:
            made = create_object(store, call, serverside.created(what))
            return stored(call, made, 201, warnings)
        except errors.AlreadyExists:
            continue
    raise errors.Conflict.of(target.resource.name, target.name)


def patch(store: Store, call: Call) -> Answer:
    """PATCH of an object, or of its status."""
    if call.content_type == patches.APPLY:
        return apply(store, call)
    if "force" in call.query:
        raise errors.BadRequest("force: Forbidden: may not be specified for non-apply patch")
    resource = call.target.resource
    mode = fieldvalidation.mode_of(call.query.get("fieldValidation", ""))
    parsed = patches.parse(call.content_type, call.body, resource)
    warnings: list[str] = []
    on_objects = patches.on_objects(parsed, resource)

    def change(old: KubeObject) -> KubeObject:
        new = on_objects(old)
        # Only what this patch brings: an object stored with unknown fields stays patchable.
        present = set(fieldvalidation.unknown(old))
        warnings[:] = fieldvalidation.check(new, call.body, mode, present)
        return tracked(call, old, new)

    return stored(call, modify(store, call, change), warnings=warnings)


def modify(store: Store, call: Call, change: Callable[[KubeObject], KubeObject]) -> KubeObject:
    """Change an object, or with subresource `status` its status, unless it is a dry run."""
    return modify_as(store, call, change, _prepare(call))


def modify_as(
    store: Store, call: Call, change: Callable[[KubeObject], KubeObject], prepare: Prepare
) -> KubeObject:
    """Change an object under other rules than an update's, unless it is a dry run."""
    target = call.target
    if not call.dry_run:
        return store.modify(target.resource, target.key, change, prepare=prepare)
    old = store.get(target.resource, target.key)
    return prepare(change(old), old, target.resource)


def _prepare(call: Call) -> Prepare:
    if call.target.subresource == "status":
        return rules.prepare_status_update
    return rules.prepare_update


def delete(store: Store, call: Call) -> Answer:
    """DELETE of one object: a Status when it is gone, the object when it only is marked."""
    target = call.target
    options, dry = bodies.delete_options(call)
    namespaces.check_deletable(target.resource, target.name)
    obj, gone = delete_object(store, target.resource, target.key, options, dry=dry)
    if gone:
        return json_answer(status.deleted(target.resource, obj.name, obj.uid))
    return stored(call, obj)


def delete_object(
    store: Store, resource: Resource, key: str, options: DeleteOptions, *, dry: bool
) -> tuple[KubeObject, bool]:
    """Delete; the object's last state, and whether it is gone."""
    if dry:
        old = store.get(resource, key)
        item = store.deletion(old, options)
        return (old, False) if item is None else (item.obj, item.op == "delete")
    obj = store.delete(resource, key, options)
    return obj, rules.finishes_deletion(obj)


def delete_collection(store: Store, hub: Hub, call: Call) -> Answer:
    """DELETE of a list: what was there, as it was."""
    resource = call.target.resource
    options, dry = bodies.delete_options(call)
    entries, _, _, _ = lists.select(hub, call)
    for entry in entries:
        try:
            namespaces.check_deletable(resource, entry.obj.name)
            delete_object(store, resource, entry.key, options, dry=dry)
        except (errors.NotFound, errors.Forbidden):
            continue
    return lists.items_answer(call, entries, {})
