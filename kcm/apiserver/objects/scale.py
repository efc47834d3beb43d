"""The scale subresource of every kind that says where it keeps its replicas (`Resource.scale`).

Source: pkg/registry/apps/replicaset/storage/storage.go and
staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource/etcd.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from kcm import errors
from kcm.api import codec, scaling
from kcm.api.scheme import Resource, ScalePaths
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.times import parse_time
from kcm.apiserver.bodies import reading, structs
from kcm.apiserver.http.answers import Answer, ApiCall, json_answer
from kcm.apiserver.objects import patches, serverside, tables, verbs
from kcm.apiserver.refusals import PathNotFound
from kcm.printing.durations import age
from kcm.store import Store

API_VERSION = "autoscaling/v1"
KIND = "Scale.autoscaling"
_SHOWN_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale(store: Store, call: ApiCall) -> Answer:
    """Answers GET, PUT and PATCH of an object's scale.

    Raises NotFound, Conflict, Invalid, ApplyConflict and BadRequest.
    """
    resource = call.target.resource
    if call.method == "GET":
        obj = store.get(resource, call.target.key)
    elif call.content_type == patches.APPLY and call.method == "PATCH":
        obj = _apply(store, call)
    else:
        obj = _modify(store, call)
    return _answer(call, scale_of(obj, resource))


def scale_of(obj: KubeObject, resource: Resource) -> dict[str, Any]:
    """Returns the Scale of an object. Raises InternalError where the object has no replicas."""
    where, current = _paths(resource), scaling.scale_of(obj, resource)
    if current.replicas is None:
        raise errors.ApiError(
            f'Internal error occurred: the spec replicas field "{where.replicas}" does not exist'
        )
    shown: dict[str, Any] = {"replicas": current.status_replicas}
    if current.selector:
        shown["selector"] = current.selector
    metadata = codec.to_dict(obj)["metadata"]
    return {
        "kind": "Scale",
        "apiVersion": API_VERSION,
        "metadata": {name: metadata[name] for name in _SHOWN_METADATA if name in metadata},
        "spec": {"replicas": current.replicas},
        "status": shown,
    }


def _paths(resource: Resource) -> ScalePaths:
    if resource.scale is None:
        raise PathNotFound
    return resource.scale


def _modify(store: Store, call: ApiCall) -> KubeObject:
    wanted, resource = _read_wanted(call), call.target.resource

    def change(old: KubeObject) -> KubeObject:
        return _set_scale(old, wanted(scale_of(old, resource)), resource)

    return verbs.modify(store, call, change)


def _read_wanted(call: ApiCall) -> Callable[[dict[str, Any]], structs.Scale]:
    if call.method == "PATCH":
        # Scale has no lists, so a strategic patch of it is a merge patch.
        plain = call.content_type == patches.STRATEGIC
        media = patches.MERGE_PATCH if plain else call.content_type
        change = patches.parse(media, call.body, call.target.resource)
        return lambda old: structs.read(change(old), structs.Scale)
    struct = reading.read_struct(call, structs.Scale)
    if struct.metadata.name and struct.metadata.name != call.target.name:
        raise errors.BadRequest(
            f"the name of the object ({struct.metadata.name}) does not match the name on the URL "
            f"({call.target.name})"
        )
    return lambda _: struct


def _set_scale(old: KubeObject, wanted: structs.Scale, resource: Resource) -> KubeObject:
    version, uid = wanted.metadata.resource_version, wanted.metadata.uid
    if version and version != old.metadata.resource_version:
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


def _apply(store: Store, call: ApiCall) -> KubeObject:
    """Applies a Scale, which is an apply of the object's replicas and nothing else."""
    target = call.target
    config = serverside.document(call.body)
    wanted = structs.read(config, structs.Scale)
    own: dict[str, Any] = {"apiVersion": target.resource.api_version, "kind": target.resource.kind}
    own["metadata"] = {"name": target.name, "namespace": target.namespace}
    if wanted.metadata.resource_version:
        own["metadata"]["resourceVersion"] = wanted.metadata.resource_version
    if "replicas" in (config.get("spec") or {}):
        own = scaling.put(own, _paths(target.resource).replicas, wanted.spec.replicas)
    applied = verbs.application(call, own)
    if wanted.spec.replicas < 0:
        _with_replicas(store.get(target.resource, target.key), -1, target.resource)
    return verbs.modify_applied(store, call, applied)


# --- answers


def _answer(call: ApiCall, body: dict[str, Any]) -> Answer:
    if call.form.as_ == "Table":
        return json_answer(_table(call, body))
    return json_answer(body)


def _table(call: ApiCall, body: dict[str, Any]) -> dict[str, Any]:
    """Returns the table of upstream's printScale."""
    meta = body["metadata"]
    created = meta.get("creationTimestamp")
    columns = (
        ("Name", "string", "name"),
        ("Desired", "integer", ""),
        ("Available", "integer", ""),
        ("Age", "string", ""),
    )
    cells = [
        meta["name"],
        body["spec"]["replicas"],
        body["status"]["replicas"],
        age(parse_time(created) if created else None, datetime.now(UTC)),
    ]
    shown = {"kind": "PartialObjectMetadata", "apiVersion": call.form.api_version, "metadata": meta}
    row = {"cells": cells} | tables.row_object(call.query.get("includeObject", ""), body, shown)
    return {
        "kind": "Table",
        "apiVersion": call.form.api_version,
        "metadata": {"resourceVersion": meta.get("resourceVersion", "")},
        "columnDefinitions": [
            {"name": name, "type": type_, "format": format_, "description": "", "priority": 0}
            for name, type_, format_ in columns
        ],
        "rows": [row],
    }
