"""The verbs create, update, patch, apply and delete: from requests to calls of the store.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from kcm import errors
from kcm.api import codec
from kcm.api.custom.kinds import CustomResource
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.admission.request import AdmissionRequest
from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.cache.entries import Entry
from kcm.apiserver.http.bodies import client_warnings, fieldvalidation, patches, reading
from kcm.apiserver.http.responses import ApiRequest, Response, json_response
from kcm.apiserver.http_errors import MethodNotAllowed
from kcm.apiserver.objects import (
    admission,
    lists,
    serverside,
    status,
)
from kcm.apiserver.request_info import RequestInfo
from kcm.redisio import greenlets
from kcm.redisio.pipelining import LONG_REPLY
from kcm.store import DeleteOptions, FieldManager, Store, Subresource, rules
from kcm.store.strategies import updating

# Kinds whose delete responds with the object (upstream's ReturnDeletedObject), which typed clients
# expect.
RETURN_DELETED = frozenset(
    {
        "persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates", "resourcequotas",
        "serviceaccounts", "services", "csidrivers.storage.k8s.io", "csinodes.storage.k8s.io",
        "storageclasses.storage.k8s.io", "volumeattachments.storage.k8s.io",
        "volumeattributesclasses.storage.k8s.io", "deviceclasses.resource.k8s.io",
        "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io",
        "resourceslices.resource.k8s.io",
    }
)  # fmt: skip
NOBODY = FieldManager("")  # changes that no manager owns
_ATTEMPTS = 3  # attempts while others create and delete the object


def object_response(
    request: ApiRequest, obj: KubeObject, code: int = 200, warnings: Sequence[str] = ()
) -> Response:
    """Returns a response with the object after a write, in the form that the client asked for."""
    return lists.entry_response(request, Entry.build(request.info.resource, obj), code, warnings)


def create(store: Store, request: ApiRequest) -> Response:
    """Handles a POST of an object."""
    obj, warnings = reading.read_object(request)
    if request.info.name:
        raise MethodNotAllowed
    return object_response(
        request, create_object(store, request, obj, field_manager(request)), 201, warnings
    )


def field_manager(request: ApiRequest) -> FieldManager:
    """Returns the field manager of the request. Raises BadRequest."""
    return FieldManager(request.manager)


def create_object(
    store: Store, request: ApiRequest, obj: KubeObject, manager: FieldManager | None = None
) -> KubeObject:
    """Creates an object, or only checks that it could be created in a dry run.

    What the client says of fields that the system manages is dropped, as in upstream's
    WipeObjectMetaSystemFields, also the generation of kinds that count none. Raises what
    Store.create raises, NamespaceTerminating and NotFound.
    """
    resource = request.info.resource
    if request.method != "POST":
        _require_create_permission(request)
    obj = obj.with_metadata(uid=None, generation=None)
    asks = admission.write_request(request)
    if not asks.dry_run:
        return store.create(obj, manager=manager, request=asks)
    made = store.items.build_create(obj, manager=manager, request=asks).obj
    store.check_creatable(made)
    try:
        store.get_raw(resource, made.key)
    except errors.NotFound:
        return made
    raise errors.AlreadyExists.of(resource.name, made.name)


def _require_create_permission(request: ApiRequest) -> None:
    """Raises Forbidden if a PUT or PATCH creates an object and its sender may not create it."""
    info, resource = request.info, request.info.resource
    namespace = info.name if resource.name == "namespaces" else info.namespace
    request.caller.require(
        Attributes(
            "create", resource.group, resource.version, resource.plural, info.subresource,
            namespace, info.name,
        )
    )  # fmt: skip


def update(store: Store, request: ApiRequest, cacher: Cacher | None = None) -> Response:
    """Handles a PUT of an object or of its status. The code is 201 if that created the object."""
    obj, warnings = reading.read_object(request)
    info = request.info
    if obj.name and obj.name != info.name:
        raise errors.BadRequest(
            f"the name of the object ({obj.name}) does not match the name on the URL ({info.name})"
        )
    obj = obj.with_metadata(name=info.name)
    version = obj.metadata.resource_version
    if version in reading.NO_VERSION and updating.needs_version(info.resource):
        raise _needs_version(info)

    def change(old: KubeObject) -> KubeObject:
        if reading.names_other_version(version, old):
            raise errors.Conflict.of(info.resource.name, info.name)
        return obj

    for _ in range(_ATTEMPTS):
        try:
            stored = modify(store, request, change, cached=_find_cached(cacher, request.info))
            return object_response(request, stored, warnings=warnings)
        except errors.NotFound:
            if info.subresource or not updating.creates_on_update(info.resource):
                raise
        try:
            return object_response(request, _create_by_update(store, request, obj), 201, warnings)
        except errors.AlreadyExists:
            continue
    raise errors.Conflict.of(info.resource.name, info.name)


def _create_by_update(store: Store, request: ApiRequest, obj: KubeObject) -> KubeObject:
    if obj.uid:
        raise errors.Conflict.of(
            request.info.resource.name,
            obj.name,
            f"Precondition failed: UID in precondition: {obj.uid}, UID in object meta: ",
        )
    fresh = obj.with_metadata(resource_version=None)
    return create_object(store, request, fresh, field_manager(request))


def _needs_version(info: RequestInfo) -> errors.Invalid:
    resource = info.resource
    fault = errors.FieldError(
        "Invalid value",
        "metadata.resourceVersion",
        errors.Verbatim("0x0"),
        "must be specified for an update",
    )
    return errors.Invalid([fault], kind=resource.name, name=info.name, resource=resource.name)


def apply(store: Store, request: ApiRequest) -> Response:
    """Handles a PATCH by server-side apply. The code is 201 if that created the object."""
    info, mode = request.info, fieldvalidation.mode_of(request.query.get("fieldValidation", ""))
    repeated: list[str] = []
    config = serverside.configuration(request.body, info.resource, repeated)
    place = {"name": info.name, "namespace": info.namespace}
    metadata = {**place, **(config.get("metadata") or {})}
    if any(metadata[field] != value for field, value in place.items() if value):
        raise errors.BadRequest("name and namespace of the object do not match those on the URL")
    if not info.namespace:
        metadata.pop("namespace")
    config |= {"metadata": metadata}
    meant = codec.decode(config, info.resource)
    warnings = _check_repeated(repeated, mode) + client_warnings.of(meant)
    applied = application(request, config, store.clock.now())
    for _ in range(_ATTEMPTS):
        try:
            return object_response(
                request, modify_applied(store, request, applied), warnings=warnings
            )
        except errors.NotFound:
            if info.subresource:
                raise
        if meant.uid:
            raise errors.Conflict.of(
                info.resource.name,
                info.name,
                f"uid mismatch: the provided object specified uid {meant.uid}, and no existing "
                "object was found",
            )
        try:
            made = create_object(store, request, serverside.create_applied(applied))
            return object_response(request, made, 201, warnings)
        except errors.AlreadyExists:
            continue
    raise errors.Conflict.of(info.resource.name, info.name)


def _check_repeated(repeated: Sequence[str], mode: str) -> list[str]:
    """Returns warnings about keys that the YAML of an apply has twice. Raises BadRequest in mode
    Strict.
    """
    faults = fieldvalidation.describe_repeated(repeated) if mode != "Ignore" else []
    faults = [f"error converting YAML to JSON: {fault}" for fault in faults]
    if faults and mode == "Strict":
        raise errors.BadRequest(f"error strict decoding YAML: {faults[0]}")
    return faults


def application(
    request: ApiRequest, config: Mapping[str, Any], now: datetime
) -> serverside.Application:
    """Returns the server-side apply that a request asks for at that time. Raises BadRequest."""
    if not request.query.get("fieldManager"):
        raise errors.BadRequest("fieldManager: Required value: is required for apply patch")
    info = request.info
    return serverside.Application(
        info.resource,
        config,
        request.manager,
        request.flag("force"),
        info.subresource,
        now,
    )


def modify_applied(
    store: Store, request: ApiRequest, applied: serverside.Application
) -> KubeObject:
    """Applies to a stored object, and returns it as stored.

    Raises NotFound, ApplyConflict and Conflict.
    """
    manager = FieldManager(request.manager, "Apply")
    return modify(store, request, lambda old: serverside.apply_to(applied, old), manager=manager)


def patch(store: Store, request: ApiRequest, cacher: Cacher | None = None) -> Response:
    """Handles a PATCH of an object or of its status."""
    if request.content_type == patches.APPLY:
        return apply(store, request)
    if "force" in request.query:
        raise errors.BadRequest("force: Forbidden: may not be specified for non-apply patch")
    resource = request.info.resource
    mode = fieldvalidation.mode_of(request.query.get("fieldValidation", ""))
    parsed = patches.parse(request.content_type, request.body, resource)
    warnings: list[str] = []
    on_objects = patches.on_objects(parsed, resource, request.body)

    def change(old: KubeObject) -> KubeObject:
        patched = on_objects(old)
        new = client_warnings.prune(patched)
        warnings[:] = patches.check_fields(patched, new, request.body, mode)
        warnings.extend(client_warnings.of(new))
        return new

    stored = modify(store, request, change, cached=_find_cached(cacher, request.info))
    return object_response(request, stored, warnings=warnings)


def _find_cached(cacher: Cacher | None, info: RequestInfo) -> KubeObject | None:
    """Returns the object from the watch cache, or None.

    So most changes need no read of the store. Custom objects are not returned, since their
    definition may have changed since they were decoded.
    """
    if cacher is None or isinstance(info.resource, CustomResource):
        return None
    entry = cacher.cache(info.resource).get(info.key)
    if entry is None:
        return None
    greenlets.raise_if_long(entry.size, LONG_REPLY)  # as if it had been read
    greenlets.raise_if_many_values(entry.raw)
    try:
        return entry.convert_to(info.resource).obj
    except errors.ApiError:
        return None


def modify(
    store: Store,
    request: ApiRequest,
    change: Callable[[Any], KubeObject],
    *,
    manager: FieldManager | None = None,
    cached: KubeObject | None = None,
) -> KubeObject:
    """Changes an object through the request's subresource, and returns it.

    A dry run stores nothing. Changed fields are owned by `manager`, by default the request's field
    manager. `cached` is a recent state of the object, as for `Store.modify`.
    """
    info, manager = request.info, manager or FieldManager(request.manager)
    part = Subresource(info.subresource)
    # Of a binding, the Binding has been admitted; plugins do not see the pod.
    asks = admission.write_request(request) if part is not Subresource.BINDING else None
    if not request.dry_run:
        return store.modify(
            info.resource,
            info.key,
            change,
            subresource=part,
            manager=manager,
            cached=cached,
            request=asks,
        )
    old = store.get(info.resource, info.key)
    item = store.items.build_update(
        change(old), old, subresource=part, manager=manager, request=asks
    )
    return old if item is None else item.obj


def delete(store: Store, request: ApiRequest, cacher: Cacher | None = None) -> Response:
    """Handles a DELETE of one object.

    The response is a Status if the object is removed, otherwise the object. For the kinds in
    RETURN_DELETED it is always the object.
    """
    info = request.info
    options, dry = reading.read_delete_options(request)
    asks = admission.delete_request(request, options)
    cached = None if dry else _find_cached(cacher, info)
    obj, gone = delete_object(
        store, info.resource, info.key, options, dry=dry, cached=cached, asks=asks
    )
    warnings = client_warnings.of_deletion(info.resource, options)
    if gone and info.resource.name not in RETURN_DELETED:
        deleted = status.deletion_status(info.resource, obj.name, obj.uid)
        return json_response(deleted, warnings=warnings)
    return object_response(request, obj, warnings=warnings)


def delete_object(
    store: Store,
    resource: Resource,
    key: str,
    options: DeleteOptions,
    *,
    dry: bool,
    cached: KubeObject | None = None,
    asks: AdmissionRequest | None = None,
) -> tuple[KubeObject, bool]:
    """Deletes an object. Returns its last state, and whether it is removed. `cached` is a recent
    state of the object, as for `Store.delete`.
    """
    if dry:
        old = store.get(resource, key)
        item = store.items.build_delete(old, options, request=asks)
        return (old, False) if item is None else (item.obj, item.op == "delete")
    obj = store.delete(resource, key, options, cached=cached, request=asks)
    return obj, not obj.deleting or rules.finishes_deletion(obj)


def delete_collection(store: Store, cacher: Cacher, request: ApiRequest) -> Response:
    """Handles a DELETE of a collection. The response has the objects as they were before.

    As upstream, the first object that may not be deleted ends it, and is what the client is told.
    """
    resource = request.info.resource
    options, dry = reading.read_delete_options(request)
    entries = lists.select(cacher, request).entries
    asks = admission.delete_request(request, options)
    for entry in entries:
        try:
            delete_object(store, resource, entry.key, options, dry=dry, asks=asks)
        except errors.NotFound:
            continue
    warnings = client_warnings.of_deletion(resource, options)
    return lists.items_response(request, entries, {}, warnings)
