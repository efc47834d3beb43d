"""Checks the types of lists in a definition's schema.

Source: ValidateCustomResourceDefinitionOpenAPISchema and validateMapListKeysMapSet in
staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go,
Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcm.api.custom.structural_schema import Json
from kcm.apimachinery.field_errors import forbidden, invalid, not_supported, required
from kcm.errors import FieldError

_LIST_TYPES = ("atomic", "map", "set")
_OF_ITEMS = {"array": "list-type", "object": "map-type"}


def check(schema: Json, path: str) -> Iterator[FieldError]:
    """Yields what is wrong with the list type of a schema, and with its items for this type."""
    list_type, keys = (
        schema.get("x-kubernetes-list-type"),
        schema.get("x-kubernetes-list-map-keys"),
    )
    if list_type and schema.get("type") != "array":
        detail = "must be array if x-kubernetes-list-type is set"
        yield invalid(f"{path}.type", schema.get("type") or "", detail)
    if list_type and list_type not in _LIST_TYPES:
        yield not_supported(f"{path}.x-kubernetes-list-type", list_type, _LIST_TYPES)
    items = schema.get("items")
    if isinstance(items, dict) and list_type in ("map", "set"):
        yield from _items(items, f"{path}.items", list_type)
    where = f"{path}.x-kubernetes-list-map-keys"
    if keys and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield invalid(f"{path}.x-kubernetes-list-type", list_type, detail)
    if list_type != "map":
        return
    if not keys:
        yield required(where, "must not be empty if x-kubernetes-list-type is map")
        return
    items = items or {}
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{path}.items.type", items.get("type"), detail)
    properties = items.get("properties") or {}
    needed = frozenset(items.get("required") or ())
    for index, key in enumerate(keys):
        if key not in properties:
            detail = "entries must all be names of item properties"
            yield invalid(f"{where}[{index}]", key, detail)
        elif key not in needed and "default" not in properties[key]:
            detail = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or "
                "be a required property"
            )
            yield required(f"{path}.items.properties[{key}].default", detail)
        if key in properties and properties[key].get("nullable"):
            detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            yield forbidden(f"{path}.items.properties[{key}].nullable", detail)


def _items(items: Json, path: str, list_type: str) -> Iterator[FieldError]:
    """Yields what keeps the items of a set or of a list with keys from being told apart."""
    if items.get("nullable"):
        detail = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        yield forbidden(f"{path}.nullable", detail)
    keyword = _OF_ITEMS.get(str(items.get("type") or ""))
    if list_type != "set" or keyword is None:
        return
    given = items.get(f"x-kubernetes-{keyword}", "atomic" if keyword == "list-type" else None)
    if given != "atomic":
        detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
        yield invalid(f"{path}.x-kubernetes-{keyword}", given, detail)
