"""Checks of objects within custom objects (x-kubernetes-embedded-resource): they have an
apiVersion, a kind and valid metadata.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta/{algorithm,
validation}.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from kcm.api import decoding_faults
from kcm.api.custom.structural_schema import StructuralSchema
from kcm.apiextensions import field_paths
from kcm.apimachinery import metadata_checks, names
from kcm.apimachinery.field_errors import Faults, invalid, required
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.errors import FieldError

_MIXED_CASE = "may have mixed case, but should otherwise match: "


def check(
    value: Any, schema: StructuralSchema | None, path: str = "", *, root: bool = False
) -> Faults:
    """Returns what is wrong with the objects in a value. With `root`, it is an object itself.

    A value of a wrong type is the only fault: with it, an object cannot be read.
    """
    faults: Faults = []
    for obj, where in _find(value, schema, path, root):
        metadata = _read_metadata(obj, where)
        if isinstance(metadata, FieldError):
            return [metadata]
        faults += _check_object(obj, metadata, where)
    return faults


def _find(
    value: Any, schema: StructuralSchema | None, path: str, root: bool
) -> Iterator[tuple[dict[str, Any], str]]:
    """Yields the objects in a value, and where they are."""
    if schema is None:
        return
    if isinstance(value, dict):
        if root or schema.embedded:
            yield value, path
        for name, inner in value.items():
            yield from _find(inner, schema.field(name), field_paths.join(path, name), False)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _find(item, schema.items, f"{path}[{index}]", False)


def _read_metadata(obj: dict[str, Any], path: str) -> ObjectMeta | FieldError:
    """Returns the metadata of an object, or the first value of a wrong type in it or its type."""
    for name in ("apiVersion", "kind"):
        if not isinstance(obj.get(name, ""), str):
            return invalid(field_paths.join(path, name), obj[name], "must be a string")
    try:
        return ObjectMeta.model_validate(obj.get("metadata") or {})
    except ValidationError as error:
        cause = decoding_faults.describe_parts(error.errors(), "", "").causes[0]
        detail = f"{cause.field} {cause.detail}" if cause.field else cause.detail
        return invalid(field_paths.join(path, "metadata"), obj["metadata"], detail)


def _check_object(obj: dict[str, Any], metadata: ObjectMeta, path: str) -> Iterator[FieldError]:
    for name, complaint in (("apiVersion", _api_version_fault), ("kind", _kind_fault)):
        where, value = field_paths.join(path, name), obj.get(name)
        if value is None:
            yield required(where)
        elif not value:
            yield invalid(where, value, "must not be empty")
        elif detail := complaint(value):
            yield invalid(where, value, detail)
    if obj.get("metadata"):
        yield from _check_metadata(metadata, field_paths.join(path, "metadata"))


def _api_version_fault(api_version: str) -> str:
    too_many = api_version.count("/") > 1
    return f"unexpected GroupVersion string: {api_version}" if too_many else ""


def _kind_fault(kind: str) -> str:
    complaints = names.label_1035_faults(kind.lower())
    return _MIXED_CASE + ",".join(complaints) if complaints else ""


def _check_metadata(metadata: ObjectMeta, path: str) -> Faults:
    return metadata_checks.check(
        metadata if metadata.name else metadata.replace(name="unnamed"),
        path,
        namespaced=bool(metadata.namespace),
        name_rule=names.path_segment_faults,
    )
