"""Checks a converted object, and gives it the metadata of the original.

A webhook may change labels and annotations, and nothing else of the metadata.

Source: validateConvertedObject and restoreObjectMeta in
staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go, Kubernetes
1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kcm import errors
from kcm.api import codec
from kcm.api.custom.kinds import CustomObject
from kcm.api.scheme import Resource
from kcm.apiextensions import pruning
from kcm.apimachinery import metadata_checks
from kcm.apimachinery.meta_v1 import ObjectMeta

_SAME = (("name", "name"), ("namespace", "namespace"), ("uid", "UID"))


class InvalidObject(errors.KcmError):
    """A converted object is not the one that was sent; the message says how they differ."""


class InvalidMetadata(errors.KcmError):
    """The metadata of a converted object cannot be used; the message says why."""


def read_converted(original: CustomObject, converted: Any, target: Resource) -> CustomObject:
    """Returns the object that a webhook made of `original`, pruned by the schema of `target`.

    `converted` is JSON. Raises InvalidObject and InvalidMetadata.
    """
    if not isinstance(converted, dict):
        raise InvalidObject(f"Object 'Kind' is missing in '{_shorten(converted)}'")
    _check_kind(original, converted, target)
    _check_identity(original, converted)
    metadata = restore_metadata(original.metadata, converted)
    try:
        obj = codec.decode({**converted, "metadata": {}}, target)
    except errors.ApiError as error:
        raise InvalidObject(error.message) from None
    assert isinstance(obj, CustomObject)  # the target is of a custom kind
    content = pruning.root(obj.content, obj.custom.schema)
    return obj.with_content(content).replace(metadata=metadata)


def _shorten(value: Any) -> str:
    return str(value)[:100]


def _check_kind(original: CustomObject, converted: Mapping[str, Any], target: Resource) -> None:
    version, kind = converted.get("apiVersion"), converted.get("kind")
    if version != target.api_version:
        received = version if isinstance(version, str) else ""
        raise InvalidObject(
            f"invalid groupVersion (expected {target.api_version}, received {received})"
        )
    if kind != original.kind:
        received = kind if isinstance(kind, str) else ""
        raise InvalidObject(f"invalid kind (expected {original.kind}, received {received})")


def _check_identity(original: CustomObject, converted: Mapping[str, Any]) -> None:
    given = converted.get("metadata")
    for field, shown in _SAME:
        before = getattr(original, field)
        value = given.get(field) if isinstance(given, dict) else None
        after = value if isinstance(value, str) else ""
        if before != after:
            raise InvalidObject(f"must have the same {shown}: {before} != {after}")


def restore_metadata(original: ObjectMeta, converted: Mapping[str, Any]) -> ObjectMeta:
    """Returns the original metadata with the labels and annotations of the converted object.

    Raises InvalidMetadata.
    """
    if "metadata" not in converted:
        raise InvalidMetadata("missing metadata in converted object")
    given = converted["metadata"]
    if not isinstance(given, dict):
        raise InvalidMetadata(f"invalid metadata of type {_go_type(given)} in converted object")
    return original.replace(
        labels=_restore("labels", given.get("labels"), original.labels),
        annotations=_restore("annotations", given.get("annotations"), original.annotations),
    )


def _restore(field: str, given: Any, before: Mapping[str, str] | None) -> dict[str, str] | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        raise InvalidMetadata(
            f"invalid metadata.{field} of type {_go_type(given)} in converted object"
        )
    for key, value in given.items():
        if not isinstance(value, str):
            raise InvalidMetadata(
                f"metadata.{field}[{key}] must be a string, but is {_go_type(value)} in converted "
                "object"
            )
    if given == dict(before or {}):
        return given
    if field == "labels":
        faults = metadata_checks.labels(given, "metadata.labels")
    else:
        faults = metadata_checks.annotation_map(given, "metadata.annotation")
    if faults:
        texts = list(dict.fromkeys(map(str, faults)))
        raise InvalidMetadata(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    return given


_GO_TYPES: Mapping[type, str] = {
    bool: "bool",
    dict: "map[string]interface {}",
    float: "float64",
    int: "int64",
    list: "[]interface {}",
    str: "string",
}


def _go_type(value: Any) -> str:
    """Returns the type of a JSON value as Go prints it."""
    return _GO_TYPES.get(type(value), "<nil>")
