"""Parses patches of all media types into functions on objects.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go, Kubernetes 1.33.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jsonpatch
import jsonpointer

from kcm import errors
from kcm.api import codec
from kcm.api.scheme import Resource
from kcm.apimachinery import nesting
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.bodies import strategic, typeerrors
from kcm.apiserver.http_errors import UnsupportedMediaType
from kcm.apiserver.request import MAX_BODY
from kcm.store.merge import merge_patch

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
_MOST_OPERATIONS = 10_000  # operations of a JSON patch, as upstream


@dataclass(frozen=True)
class ObjectPatch:
    """A parsed patch: a function from an object's JSON to the patched JSON.

    The JSON that it is given is the function's own, which may change it.
    """

    run: Callable[[dict[str, Any]], dict[str, Any]]
    # The fields of the object that it reads and changes, None for a patch that may reach any.
    fields: frozenset[str] | None = None

    def __call__(self, target: dict[str, Any]) -> dict[str, Any]:
        return self.run(target)


def parse(content_type: str, body: bytes, resource: Resource) -> ObjectPatch:
    """Returns the patch that a request's body holds.

    Raises BadRequest and UnsupportedMediaType.
    """
    known = [JSON_PATCH, MERGE_PATCH]
    if resource.custom is None:  # the schema of a custom kind has no merge keys for it
        known.append(STRATEGIC)
    if content_type not in known:
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: "
            + ", ".join([*known, APPLY])
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
    return ObjectPatch(lambda target: _apply_strategic(target, patch, resource), frozenset(patch))


def _apply_strategic(
    target: dict[str, Any], patch: dict[str, Any], resource: Resource
) -> dict[str, Any]:
    """Returns the target after a strategic merge patch.

    As upstream, the patch's kind and apiVersion are ignored.
    """
    merged = strategic.apply(target, patch, resource.model)
    return merged | {name: target[name] for name in ("apiVersion", "kind") if name in target}


def _json_patch(operations: Any) -> ObjectPatch:
    if not isinstance(operations, list):
        raise errors.BadRequest("error decoding patch: a JSON patch must be a list of operations")
    if len(operations) > _MOST_OPERATIONS:
        raise errors.RequestTooLarge(
            f"The allowed maximum operations in a JSON patch is {_MOST_OPERATIONS}, "
            f"got {len(operations)}"
        )

    def change(target: dict[str, Any]) -> dict[str, Any]:
        try:
            result = _apply_operations(target, operations)
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
            raise Unprocessable(f"the server rejected our request: {error}") from None
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            raise errors.BadRequest(f"error applying patch: {error}") from None
        if not isinstance(result, dict):
            raise errors.BadRequest("error applying patch: the result is not an object")
        return result

    return ObjectPatch(change, _touched_fields(operations))


def _touched_fields(operations: list[Any]) -> frozenset[str] | None:
    """Returns the fields of an object that operations are about, None if they may be about any."""
    fields: set[str] = set()
    for operation in operations:
        if not isinstance(operation, dict):
            return None
        for name in ("path", "from"):
            pointer = operation.get(name, "/" if name == "path" else None)
            if pointer is None:
                continue
            if not isinstance(pointer, str) or not pointer.startswith("/"):
                return None
            fields.add(pointer[1:].partition("/")[0])
    return None if "" in fields or any("~" in field for field in fields) else frozenset(fields)


def _apply_operations(target: dict[str, Any], operations: list[Any]) -> Any:
    """Returns the target after the operations of a JSON patch.

    Raises Unprocessable if copies add more than MAX_BODY bytes.
    """
    target_now: Any = target
    copied = 0
    for operation in operations:
        # A copy, as later operations change the values that this one adds, and all are applied
        # again when another write came between.
        patch = jsonpatch.JsonPatch([copy.deepcopy(operation)])
        if operation["op"] == "copy":
            copied += _size_at(target_now, operation.get("from"))
            if copied > MAX_BODY:
                raise Unprocessable(
                    "Unable to copy value, the accumulated size increase of copy is "
                    f"{copied}, exceeding the limit {MAX_BODY}"
                )
        target_now = patch.apply(target_now, in_place=True)
    return target_now


def _size_at(target: Any, pointer: Any) -> int:
    """Returns the size of a value as JSON, in bytes. Returns 0 if there is none at the pointer."""
    try:
        value = jsonpointer.resolve_pointer(target, pointer, None)
    except (TypeError, AttributeError, jsonpointer.JsonPointerException):
        return 0
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False))


class Unprocessable(errors.ApiError):
    """The server rejected our request due to an error in our request."""

    code = 422
    reason = "Invalid"


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
    """Returns the patch as a function on objects.

    It raises Conflict if the patch has another resourceVersion than the object. Parts that the
    patch does not name are shared with the old object, not encoded and decoded again.
    """
    parts = touched_parts(change, resource)

    def change_object(old: KubeObject) -> KubeObject:
        target = codec.to_dict(old, None if parts is None else {*parts, "api_version", "kind"})
        try:
            new = codec.decode(_text(change(target)), resource)
        except errors.WrongType as error:
            raise typeerrors.in_patch(error, resource, body) from None
        if parts is not None:
            new = old.replace(**{name: getattr(new, name) for name in parts})
        named = new.metadata.resource_version
        if named and named != old.metadata.resource_version:
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
    if change.fields is None or resource.custom is not None:
        return None
    attributes = codec.attributes_of(resource.model)
    if not change.fields <= attributes.keys():
        return None
    return frozenset(attributes[name] for name in change.fields)
