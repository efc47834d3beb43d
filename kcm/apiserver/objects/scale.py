"""The `scale` subresource of every kind that has `Resource.scale`.

Source: pkg/registry/apps/replicaset/storage/storage.go and
staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource/etcd.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from kcm import errors
from kcm.api import scaling
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject, parse_time
from kcm.apiserver.http.bodies import patches, reading, structs
from kcm.apiserver.http.responses import ApiRequest, Response, json_response
from kcm.apiserver.objects import serverside, tables, verbs
from kcm.apiserver.scales import scale_of, scale_paths
from kcm.kinds.descriptions import describe_column
from kcm.kinds.printing.durations import age
from kcm.store import Store

KIND = "Scale.autoscaling"


def scale(store: Store, request: ApiRequest) -> Response:
    """Handles GET, PUT and PATCH of an object's scale.

    Raises NotFound, Conflict, Invalid, ApplyConflict and BadRequest.
    """
    resource = request.info.resource
    if request.method == "GET":
        obj = store.get(resource, request.info.key)
    elif request.content_type == patches.APPLY and request.method == "PATCH":
        obj = _apply(store, request)
    else:
        obj = _modify(store, request)
    return _respond(request, scale_of(obj, resource))


def _modify(store: Store, request: ApiRequest) -> KubeObject:
    wanted, resource = _read_wanted(request), request.info.resource

    def change(old: KubeObject) -> KubeObject:
        return _set_scale(old, wanted(scale_of(old, resource)), resource)

    return verbs.modify(store, request, change)


def _read_wanted(request: ApiRequest) -> Callable[[dict[str, Any]], structs.Scale]:
    if request.method == "PATCH":
        # Scale has no lists, so a strategic patch of it is a merge patch.
        plain = request.content_type == patches.STRATEGIC
        media = patches.MERGE_PATCH if plain else request.content_type
        change = patches.parse(media, request.body, request.info.resource)
        return lambda old: structs.read(change(old), structs.Scale)
    struct = reading.read_struct(request, structs.Scale)
    if struct.metadata.name and struct.metadata.name != request.info.name:
        raise errors.BadRequest(
            f"the name of the object ({struct.metadata.name}) does not match the name on the URL "
            f"({request.info.name})"
        )
    return lambda _: struct


def _set_scale(old: KubeObject, wanted: structs.Scale, resource: Resource) -> KubeObject:
    version, uid = wanted.metadata.resource_version, wanted.metadata.uid
    if reading.names_other_version(version, old):
        raise errors.Conflict.of(resource.name, old.name)
    if uid and uid != old.uid:
        raise errors.Conflict.of(
            resource.name,
            old.name,
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old.uid}",
        )
    return _with_replicas(old, wanted.spec.replicas, resource)


def _with_replicas(old: KubeObject, replicas: int, resource: Resource) -> KubeObject:
    if replicas < 0:
        fault = errors.FieldError(
            "Invalid value", "spec.replicas", replicas, "must be greater than or equal to 0"
        )
        raise errors.Invalid([fault], kind=KIND, name=old.name)
    return scaling.with_replicas(old, replicas, resource)


def _apply(store: Store, request: ApiRequest) -> KubeObject:
    """Applies a Scale, as a server-side apply of the object's replicas alone."""
    info = request.info
    config = serverside.document(request.body)
    wanted = structs.read(config, structs.Scale)
    own: dict[str, Any] = {"apiVersion": info.resource.api_version, "kind": info.resource.kind}
    own["metadata"] = {"name": info.name, "namespace": info.namespace}
    if wanted.metadata.resource_version:
        own["metadata"]["resourceVersion"] = wanted.metadata.resource_version
    if "replicas" in (config.get("spec") or {}):
        own = scaling.put(own, scale_paths(info.resource).replicas, wanted.spec.replicas)
    applied = verbs.application(request, own, store.clock.now())
    if wanted.spec.replicas < 0:
        _with_replicas(store.get(info.resource, info.key), -1, info.resource)
    return verbs.modify_applied(store, request, applied)


# --- responses


def _respond(request: ApiRequest, body: dict[str, Any]) -> Response:
    if request.form.as_ == "Table":
        return json_response(_table(request, body))
    return json_response(body)


def _table(request: ApiRequest, body: dict[str, Any]) -> dict[str, Any]:
    """Returns the Scale as a Table, with the columns of upstream's printScale."""
    meta = body["metadata"]
    created = meta.get("creationTimestamp")
    columns = (
        ("Name", "string"),
        ("Desired", "integer"),
        ("Available", "integer"),
        ("Age", "string"),
    )
    cells = [
        meta["name"],
        body["spec"]["replicas"],
        body["status"]["replicas"],
        age(parse_time(created) if created else None, datetime.now(UTC)),
    ]
    shown = {
        "kind": "PartialObjectMetadata",
        "apiVersion": request.form.api_version,
        "metadata": meta,
    }
    row = {"cells": cells} | tables.row_object(request.query.get("includeObject", ""), body, shown)
    return {
        "kind": "Table",
        "apiVersion": request.form.api_version,
        "metadata": {"resourceVersion": meta.get("resourceVersion", "")},
        "columnDefinitions": [
            {
                "name": title,
                "type": type_,
                "format": "",
                "description": describe_column("Scale", title),
                "priority": 0,
            }
            for title, type_ in columns
        ],
        "rows": [row],
    }
