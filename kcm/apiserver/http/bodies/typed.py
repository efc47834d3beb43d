"""Checks that a configuration for server-side apply has the types of its kind, in upstream's words.

Source: typed/{validate,helpers}.go and value/value.go of
vendor/sigs.k8s.io/structured-merge-diff/v6, Kubernetes 1.36.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kcm.api.custom.kinds import CustomObject
from kcm.api.custom.structural_schema import StructuralSchema
from kcm.apiextensions import structure
from kcm.apiextensions.structure import Field, Shape, Struct
from kcm.apimachinery.base import MergeKey, MergeSet
from kcm.apimachinery.meta_v1 import KubeObject

MOST = 20  # faults that are reported

# The scalar of upstream's schema for each kind of value.
_SCALARS = {
    "string": "string", "integer": "numeric", "boolean": "boolean", "time": "untyped",
    "microtime": "untyped", "quantity": "untyped", "intstr": "untyped",
}  # fmt: skip
_SCALARS_OF_SCHEMAS = {
    "string": "string", "integer": "numeric", "number": "numeric", "boolean": "boolean",
}  # fmt: skip
_UNDECLARED = "field not declared in schema"


def describe_faults(config: Mapping[str, Any], model: Struct) -> str:
    """Returns what is wrong with the types of an object, "" if nothing is."""
    faults = []
    for path, message in _check_struct(config, model, ""):
        faults.append(f"{path}: {message}" if path else message)
        if len(faults) == MOST:
            break
    if len(faults) < 2:
        return "".join(faults)
    return "\n".join(["errors:", *(f"  {fault}" for fault in faults)])


Faults = Iterator[tuple[str, str]]  # paths and messages


def _check_struct(value: Any, model: Struct, path: str) -> Faults:
    """Yields the faults of the value of a struct, in the order of its fields."""
    if value is None or model is None:
        return
    if not isinstance(value, dict):
        yield path, f"expected map, got {_show(value)}"
        return
    for name, inner in value.items():
        where = f"{path}.{name}"
        declared = _find_field(model, name)
        if isinstance(declared, StructuralSchema):
            yield from _check_schema(inner, declared, where)
        elif declared is not None:
            merge = declared.merge if declared.shape.kind == "list" else None
            yield from _check_shape(inner, declared.shape, where, merge)
        elif not _is_open(model):
            yield where, _UNDECLARED
            return  # as upstream, which does not look at the rest of the map


def _find_field(model: Struct, name: str) -> Field | StructuralSchema | None:
    if isinstance(model, StructuralSchema):
        is_typed = model.embedded and name in structure.fields(KubeObject)
        return structure.fields(KubeObject)[name] if is_typed else model.field(name)
    if isinstance(model, type) and issubclass(model, CustomObject):
        return structure.fields(KubeObject).get(name) or model.custom.schema.field(name)
    return structure.field(model, name)


def _is_open(model: Struct) -> bool:
    if isinstance(model, StructuralSchema):
        return model.preserve or model.open
    return (
        isinstance(model, type)
        and issubclass(model, CustomObject)
        and (model.custom.schema.preserve or model.custom.schema.open)
    )


def _check_shape(
    value: Any, shape: Shape, path: str, merge: MergeKey | MergeSet | None = None
) -> Faults:
    if shape.kind == "any" or value is None:
        return
    if shape.kind == "struct":
        yield from _check_struct(value, shape.model, path)
    elif shape.kind == "map":
        if not isinstance(value, dict):
            yield path, f"expected map, got {_show(value)}"
            return
        for name, inner in value.items():
            yield from _check_shape(inner, shape.item or shape, f"{path}.{name}")
    elif shape.kind == "list":
        if not isinstance(value, list):
            yield path, f"expected list, got {_show(value)}"
            return
        for item, where, fault in _place_items(value, merge, path):
            if fault:
                yield path, fault
            if where:
                yield from _check_shape(item, shape.item or shape, where)
    else:
        yield from _check_scalar(value, _SCALARS[shape.kind], path)


def _check_schema(value: Any, schema: StructuralSchema, path: str) -> Faults:
    """Yields the faults of a value of a custom kind."""
    if value is None:
        return
    if schema.int_or_string:
        yield from _check_scalar(value, "untyped", path)
    elif schema.type == "object":
        yield from _check_struct(value, schema, path)
    elif schema.type == "array":
        if not isinstance(value, list):
            yield path, f"expected list, got {_show(value)}"
            return
        for item, where, fault in _place_items(value, schema.merge, path):
            if fault:
                yield path, fault
            if where and schema.items is not None:
                yield from _check_schema(item, schema.items, where)
    elif schema.type in _SCALARS_OF_SCHEMAS:
        yield from _check_scalar(value, _SCALARS_OF_SCHEMAS[schema.type], path)


def _place_items(
    items: list[Any], merge: MergeKey | MergeSet | None, path: str
) -> Iterator[tuple[Any, str, str]]:
    """Yields each item of a list with its path, "" if it has none, and what is wrong with its key,
    "" if nothing is. After an item without a path there are no more.
    """
    seen: set[str] = set()
    for index, item in enumerate(items):
        if merge is None:
            yield item, f"{path}[{index}]", ""
            continue
        fault = _fault_of_key(item, merge)
        if fault:
            yield item, "", f"element {index}: {fault}"
            return
        step = _step(item, merge)
        yield item, f"{path}{step}", f"duplicate entries for key {step}" if step in seen else ""
        seen.add(step)


def _fault_of_key(item: Any, merge: MergeKey | MergeSet) -> str:
    if isinstance(merge, MergeSet):
        if isinstance(item, dict):
            return "associative list without keys has an element that's a map type"
        if isinstance(item, list):
            return "not supported: associative list with lists as elements"
        if item is None:
            return "associative list without keys has an element that's an explicit null"
        return ""
    if item is None:
        return "associative list with keys may not have a null element"
    if not isinstance(item, dict):
        return "associative list with keys may not have non-map elements"
    defaults = {name for name, _ in merge.key_defaults}
    names = merge.map_keys or (merge.key,)
    if any(name in item or name in defaults for name in names):
        return ""
    listed = " ".join(f'"{name}"' for name in names)
    return (
        f"associative list with keys has an element that omits all key fields [{listed}] "
        "(and doesn't have default values for any key fields)"
    )


def _step(item: Any, merge: MergeKey | MergeSet) -> str:
    if isinstance(merge, MergeSet):
        return f"[={json.dumps(item, ensure_ascii=False)}]"
    keys = dict(merge.key_defaults) | {
        name: item[name] for name in merge.map_keys or (merge.key,) if name in item
    }
    listed = (f"{name}={json.dumps(keys[name], ensure_ascii=False)}" for name in sorted(keys))
    return f"[{','.join(listed)}]"


def _check_scalar(value: Any, scalar: str, path: str) -> Faults:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if scalar == "numeric" and not is_number:
        yield path, f"expected numeric (int or float), got {_go_type(value)}"
    elif scalar == "string" and not isinstance(value, str):
        yield path, f"expected string, got &value.valueUnstructured{{Value:{_spell(value)}}}"
    elif scalar == "boolean" and not isinstance(value, bool):
        yield path, f"expected boolean, got {_show(value)}"
    elif scalar == "untyped" and isinstance(value, dict | list):
        yield path, f"expected any scalar, got {_show(value)}"


# --- values as Go's fmt prints them

_GO_TYPES: dict[type, str] = {
    str: "string", bool: "bool", int: "int64", float: "float64",
    list: "[]interface {}", dict: "map[string]interface {}",
}  # fmt: skip


def _go_type(value: Any) -> str:
    """Returns what the verb %T prints."""
    return _GO_TYPES[type(value)]


def _show(value: Any) -> str:
    """Returns what the verb %v prints of upstream's wrapper of a value."""
    return f"&{{{print_value(value)}}}"


def print_value(value: Any) -> str:
    """Returns what the verb %v prints."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{print_value(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(print_value, value))}]"
    if value is None:
        return "<nil>"
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _spell(value: Any) -> str:
    """Returns what the verb %#v prints."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{json.dumps(name)}:{_spell(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{pairs}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_spell, value))}}}"
    if value is None:
        return "interface {}(nil)"
    return json.dumps(value, ensure_ascii=False)
