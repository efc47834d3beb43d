"""Validates values by their schemas, with upstream's messages.

Source: k8s.io/kube-openapi/pkg/validation/{errors,validate} and
staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/{validation/validation.go,schema/listtype/validation.go},
Kubernetes 1.33.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from kcm.api.custom.structural_schema import MISSING, Json, StructuralSchema
from kcm.apiextensions import field_paths, patterns, ratcheting
from kcm.apimachinery.field_errors import (
    Faults,
    collect_tentative,
    duplicate,
    invalid,
    not_supported,
    required,
)
from kcm.errors import FieldError, Verbatim


def validate(value: Any, schema: Json, path: str = "", old: Any = MISSING) -> Faults:
    """Returns the faults of a value by a schema in JSON form, at most `field_errors.MOST` of them.

    `path` is the path of the value in its object. `old` is the value before an update: what is
    unchanged below it has no faults.
    """
    return collect_tentative(lambda: _value(value, schema, path, old))


def _value(value: Any, schema: Json, path: str, old: Any = MISSING) -> Iterator[FieldError]:
    # The root always counts as changed, since its metadata does.
    if path and ratcheting.is_unchanged(value, old):
        return
    is_allowed_null = value is None and schema.get("nullable")
    if not is_allowed_null and (mistyped := _type(value, schema, path)):
        yield mistyped
    yield from _enum(value, schema, path)
    if value is None:
        return
    if isinstance(value, str):
        yield from _text(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number(value, schema, path)
    elif isinstance(value, list):
        yield from _list(value, schema, path, old)
    elif isinstance(value, dict):
        yield from _map(value, schema, path, old)
    yield from _check_combinations(value, schema, path)


# --- types


def type_of(value: Any) -> str:
    """Returns the name of a JSON value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    names = {float: "number", str: "string", list: "array", dict: "object"}
    return names[type(value)]


def _type(value: Any, schema: Json, path: str) -> FieldError | None:
    wanted, expected_and_actual = schema.get("type") or "", type_of(value)
    if schema.get("x-kubernetes-int-or-string"):
        if expected_and_actual in {"integer", "string"}:
            return None
        wanted = "integer,string"
    elif (
        not wanted
        or wanted == expected_and_actual
        or (wanted == "number" and expected_and_actual == "integer")
    ):
        return None
    return invalid(
        path, expected_and_actual, f'{_in(path)} must be of type {wanted}: "{expected_and_actual}"'
    )


def _in(path: str) -> str:
    return f"{path} in body" if path else " in body"


def _enum(value: Any, schema: Json, path: str) -> Iterator[FieldError]:
    allowed = schema.get("enum")
    # As upstream, no null is in an enumeration, not even one that has it.
    is_listed = value is not None and any(_same(value, one) for one in allowed or ())
    if allowed and not is_listed:
        yield not_supported(
            path,
            value,
            [
                allowed_value if isinstance(allowed_value, str) else _json(allowed_value)
                for allowed_value in allowed
            ],
        )


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


# --- plain values


def _text(value: str, schema: Json, path: str) -> Iterator[FieldError]:
    least, most, pattern = (schema.get(key) for key in ("minLength", "maxLength", "pattern"))
    if most is not None and len(value) > most:
        yield FieldError("Too long", path, "", f"may not be more than {most} bytes")
    if least is not None and len(value) < least:
        yield invalid(path, value, f"{_in(path)} should be at least {least} chars long")
    if pattern and not patterns.matches(pattern, value):
        yield invalid(path, value, f"{_in(path)} should match '{pattern}'")
    name = schema.get("format")
    if name and not patterns.has_format(name, value):
        yield invalid(path, value, f'{_in(path)} must be of type {name}: "{value}"')


def _number(value: float, schema: Json, path: str) -> Iterator[FieldError]:
    most, least, step = (schema.get(key) for key in ("maximum", "minimum", "multipleOf"))
    if most is not None:
        strict = schema.get("exclusiveMaximum")
        if value > most or (strict and value == most):
            words = "less than" if strict else "less than or equal to"
            yield invalid(path, value, f"{_in(path)} should be {words} {most}")
    if least is not None:
        strict = schema.get("exclusiveMinimum")
        if value < least or (strict and value == least):
            words = "greater than" if strict else "greater than or equal to"
            yield invalid(path, value, f"{_in(path)} should be {words} {least}")
    if step and not math.isclose(value / step, round(value / step), abs_tol=1e-9):
        yield invalid(path, value, f"{_in(path)} should be a multiple of {step}")


# --- lists and maps


def _list(value: list[Any], schema: Json, path: str, old: Any) -> Iterator[FieldError]:
    yield from _size(len(value), schema, path, "Items")
    inner = schema.get("items")
    if isinstance(inner, dict):
        is_map = schema.get("x-kubernetes-list-type") == "map"
        keys = schema.get("x-kubernetes-list-map-keys") or () if is_map else ()
        before = ratcheting.index_items(old, keys)
        for index, item in enumerate(value):
            old_item = before.get(ratcheting.key_of(item, keys), MISSING)
            yield from _value(item, inner, f"{path}[{index}]", old_item)


def _map(value: dict[str, Any], schema: Json, path: str, old: Any) -> Iterator[FieldError]:
    yield from _size(len(value), schema, path, "Properties")
    for name in schema.get("required") or ():
        if name not in value:
            yield required(field_paths.join(path, name))
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, inner in value.items():
        described = properties.get(name, extra)
        if isinstance(described, dict):
            before = ratcheting.find_field(old, name)
            yield from _value(inner, described, field_paths.join(path, name), before)


def _size(count: int, schema: Json, path: str, what: str) -> Iterator[FieldError]:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    if most is not None and count > most:
        yield FieldError("Too many", path, count, f"must have at most {most} items")
    if least is not None and count < least:
        yield invalid(path, count, f"{_in(path)} should have at least {least} {what.lower()}")


# --- combinations


def _check_combinations(value: Any, schema: Json, path: str) -> Iterator[FieldError]:
    quoted = f'"{path}"'
    for part in schema.get("allOf") or ():
        faults = validate(value, part, path)
        if faults:
            yield invalid(path, "", f"{quoted} must validate all the schemas (allOf)")
            yield from faults
    if (any_of := schema.get("anyOf")) and not _int_or_string(schema):
        faults_by_schema = [validate(value, part, path) for part in any_of]
        if all(faults_by_schema):
            yield invalid(path, "", f"{quoted} must validate at least one schema (anyOf)")
            yield from min(faults_by_schema, key=len)
    if one_of := schema.get("oneOf"):
        faults_by_schema = [validate(value, part, path) for part in one_of]
        valid = sum(not faults for faults in faults_by_schema)
        if valid != 1:
            words = "Found none valid" if not valid else f"Found {valid} valid alternatives"
            message = f"{quoted} must validate one and only one schema (oneOf). {words}"
            yield invalid(path, "", message)
            if not valid:
                yield from min(faults_by_schema, key=len)
    refused = schema.get("not")
    if isinstance(refused, dict) and not validate(value, refused, path):
        yield invalid(path, "", f"{quoted} must not validate the schema (not)")


def _int_or_string(schema: Json) -> bool:
    return bool(schema.get("x-kubernetes-int-or-string"))


# --- lists that are sets or maps


def lists(value: Any, schema: StructuralSchema | None, path: str = "") -> Iterator[FieldError]:
    """Yields a fault for each item that repeats an earlier one, in sets and lists with keys."""
    if schema is None:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from lists(inner, schema.field(name), field_paths.join(path, name))
    elif isinstance(value, list):
        yield from _twice(value, schema, path)
        for index, item in enumerate(value):
            yield from lists(item, schema.items, f"{path}[{index}]")


def _twice(value: list[Any], schema: StructuralSchema, path: str) -> Iterator[FieldError]:
    if schema.list_type not in {"set", "map"}:
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        shown = item
        if schema.list_type == "map":
            fields = item if isinstance(item, dict) else {}
            shown = {key: fields[key] for key in sorted(schema.list_keys) if key in fields}
        text = _json(shown)
        if text in seen:
            plain = shown if isinstance(shown, str | int | float) else Verbatim(text)
            yield duplicate(f"{path}[{index}]", plain)
        seen.add(text)
