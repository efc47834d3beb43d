"""Parses patches of all media types into functions on objects.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go, Kubernetes 1.33.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kcm import errors
from kcm.api import codec
from kcm.api.custom.kinds import CustomResource
from kcm.api.scheme import Resource
from kcm.apimachinery import nesting
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.http.bodies import fieldvalidation, json_patch, reading, strategic, typeerrors
from kcm.apiserver.http_errors import UnsupportedMediaType
from kcm.redisio import greenlets
from kcm.store.merge import merge_patch

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
_SHORT = 100  # operations of a JSON patch that the event loop applies


@dataclass(frozen=True)
class ObjectPatch:
    """A parsed patch: a function from an object's JSON to the patched JSON.

    The JSON that it is given is the function's own, which may change it.
    """

    run: Callable[[dict[str, Any]], dict[str, Any]]
    # The fields of the object that it reads and changes, None for a patch that may reach any.
    fields: frozenset[str] | None = None
    is_strategic: bool = False

    def __call__(self, target: dict[str, Any]) -> dict[str, Any]:
        return self.run(target)


def parse(content_type: str, body: bytes, resource: Resource) -> ObjectPatch:
    """Returns the patch that a request's body holds.

    Raises BadRequest and UnsupportedMediaType.
    """
    supported = [JSON_PATCH, MERGE_PATCH]
    if not isinstance(resource, CustomResource):  # whose schema has no merge keys
        supported.append(STRATEGIC)
    if content_type not in supported:
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: "
            + ", ".join([*supported, APPLY])
        )
    try:
        nesting.check(body)
        patch = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise errors.BadRequest(f"error decoding patch: {error}") from None
    if content_type == JSON_PATCH:
        return _json_patch(patch)
    if not isinstance(patch, dict):
        raise errors.BadRequest("error decoding patch: it must be a JSON object")
    if content_type == MERGE_PATCH:
        return ObjectPatch(lambda target: dict(merge_patch(target, patch)), frozenset(patch))
    # A directive is no field, so a patch with one at its top level applies to the whole object.
    return ObjectPatch(
        lambda target: _apply_strategic(target, patch, resource), frozenset(patch), True
    )


def _apply_strategic(
    target: dict[str, Any], patch: dict[str, Any], resource: Resource
) -> dict[str, Any]:
    """Returns the target after a strategic merge patch.

    As upstream, the patch's kind and apiVersion are ignored.
    """
    merged = strategic.apply(target, patch, resource.model)
    return merged | {name: target[name] for name in ("apiVersion", "kind") if name in target}


def _json_patch(decoded: Any) -> ObjectPatch:
    operations = json_patch.check_operations(decoded)
    greenlets.raise_if_long(len(operations), _SHORT)

    def change(target: dict[str, Any]) -> dict[str, Any]:
        result = json_patch.apply(target, operations)
        if not isinstance(result, dict):
            raise errors.BadRequest("error applying patch: the result is not an object")
        return result

    return ObjectPatch(change, _touched_fields(operations))


def _touched_fields(operations: Sequence[Mapping[str, Any]]) -> frozenset[str] | None:
    """Returns the fields of an object that operations are about, None if they may be about any."""
    fields: set[str] = set()
    for operation in operations:
        for name in ("path", "from"):
            pointer = operation.get(name, "/" if name == "path" else None)
            if pointer is None:
                continue
            if not isinstance(pointer, str) or not pointer.startswith("/"):
                return None
            fields.add(pointer[1:].partition("/")[0])
    return None if "" in fields or any("~" in field for field in fields) else frozenset(fields)


def _text(body: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
    except (ValueError, RecursionError) as error:
        raise errors.BadRequest(f"the patched object is not JSON: {error}") from None
    nesting.check(text)
    return text


def on_objects(
    change: ObjectPatch, resource: Resource, body: bytes
) -> Callable[[KubeObject], KubeObject]:
    """Returns the patch as a function on objects, whose results may have unknown fields.

    It raises Conflict if the patch has another resourceVersion than the object. Parts that the
    patch does not name are shared with the old object, not encoded and decoded again.
    """
    parts = touched_parts(change, resource)

    def change_object(old: KubeObject) -> KubeObject:
        target = codec.to_dict(old, None if parts is None else {*parts, "api_version", "kind"})
        try:
            new = codec.decode(_text(change(target)), resource, keep_unknown=True)
        except errors.WrongType as error:
            strategic = change.is_strategic
            raise typeerrors.in_patch(error, resource, body, strategic=strategic) from None
        if parts is not None:
            new = old.replace(**{name: getattr(new, name) for name in parts})
        if reading.names_other_version(new.metadata.resource_version, old):
            raise errors.Conflict.of(resource.name, old.name)
        if (new.name, new.namespace) != (old.name, old.namespace):
            raise errors.BadRequest("the name and namespace of an object cannot be changed")
        return new

    return change_object


def touched_parts(change: ObjectPatch, resource: Resource) -> frozenset[str] | None:
    """Returns the attributes that a patch changes, None if it may change any.

    That is so for custom objects, whose schema may relate parts to each other, and for unknown
    fields.
    """
    if change.fields is None or isinstance(resource, CustomResource):
        return None
    attributes = codec.attributes_of(resource.model)
    if not change.fields <= attributes.keys():
        return None
    return frozenset(attributes[name] for name in change.fields)


def check_fields(patched: KubeObject, kept: KubeObject, body: bytes, mode: str) -> list[str]:
    """Returns warnings about duplicate fields of a patch and unknown ones of its result.

    `kept` is the result without unknown fields. Raises Invalid in mode Strict.
    """
    if mode == "Ignore":
        return []
    prefix = "json patch " if body.lstrip().startswith(b"[") else ""
    repeated = [f"{prefix}{fault}" for fault in fieldvalidation.duplicates(body)]
    faults = (repeated + fieldvalidation.unknown_in(kept, patched))[: fieldvalidation.MOST]
    if faults and mode == "Strict":
        text = errors.shorten(codec.encode(patched).decode())
        why = fieldvalidation.join(faults)
        raise errors.Invalid([errors.FieldError("Invalid value", "patch", text, why)])
    return faults
