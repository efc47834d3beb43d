"""Checks whether a definition's schema is structural.

Paths contain the version (`spec.versions[0].schema...`), also where upstream has `spec.validation`
because all versions have the same schema.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/validation.go and
pkg/apis/apiextensions/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from kcm.api.custom.structural_schema import Json, parse
from kcm.apiextensions import patterns
from kcm.apiextensions.schemas import default_checks, keywords, list_types, rule_checks
from kcm.apiextensions.schemas.default_checks import Surroundings
from kcm.apimachinery.field_errors import Faults, forbidden, invalid, not_supported, required
from kcm.errors import FieldError

_MOST_CLASSES = 5_000  # Unicode classes (\p) in all patterns of a schema; each takes 0.1 ms to read
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_MAP_TYPES = ("atomic", "granular")
_NOT_SUPPORTED = (
    "id",
    "additionalItems",
    "patternProperties",
    "definitions",
    "dependencies",
    "$ref",
)
_TRUE_OR_UNDEFINED = "must be true or undefined"
_JUNCTORS = ("allOf", "anyOf", "oneOf")
_OF_OBJECTS = ("apiVersion", "kind", "metadata")
_PREFIX = "x-kubernetes-"
_WHERE = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}


def check(schema: Any, path: str) -> Faults:
    """Returns the faults that keep a schema from being structural.

    Rules are checked once nothing else is wrong. As upstream, a schema that says that unknown
    fields are not preserved has no other faults.
    """
    if not isinstance(schema, dict):
        return [invalid(path, schema, "must be a schema object")]
    try:
        if json.dumps(schema).lower().count(r"\\p") > _MOST_CLASSES:
            detail = f"must not have more than {_MOST_CLASSES} classes of Unicode in its patterns"
            return [invalid(path, "", detail)]
        faults = list(_node(schema, path, "root", None))
        if faults:
            return [fault for fault in faults if fault.detail == _TRUE_OR_UNDEFINED] or faults
        return list(rule_checks.check(parse(schema), path))
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        return [invalid(path, "", f"the schema cannot be read: {error}")]


def _node(schema: Json, path: str, level: str, within: Surroundings | None) -> Iterator[FieldError]:
    """Yields the faults of a schema. `within` is there below the type and metadata of an object."""
    if faults := list(keywords.faults(schema, path)):
        yield from faults  # further checks would fail on them
        return
    yield from _standard(schema, path)
    yield from _type(schema, path, level)
    yield from _extensions(schema, path)
    yield from _values(schema, path)
    if schema.get("default") is not None:
        yield from default_checks.check(schema, path, within, root=level == "root")
    if within and schema.get(f"{_PREFIX}embedded-resource"):
        detail = "must not be used inside of resource meta"
        yield forbidden(f"{path}.{_PREFIX}embedded-resource", detail)
    if level == "root" or schema.get(f"{_PREFIX}embedded-resource"):
        yield from _metadata(schema, path, level)
    yield from _additional(schema, path, level)
    yield from _inner(schema, path, level, within)


def _additional(schema: Json, path: str, level: str) -> Iterator[FieldError]:
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    if extra is None:
        return
    if level == "root":
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if schema.get(f"{_PREFIX}embedded-resource"):
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        yield forbidden(f"{path}.additionalProperties", detail)
    if extra is False:
        yield forbidden(f"{path}.additionalProperties", "must not be set to false")
    if properties and extra is not True:
        yield forbidden(
            f"{path}.additionalProperties",
            "additionalProperties and properties are mutual exclusive",
        )


def _inner(
    schema: Json, path: str, level: str, within: Surroundings | None
) -> Iterator[FieldError]:
    """Yields the faults of the schemas below one."""
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    is_object = level == "root" or schema.get(f"{_PREFIX}embedded-resource")
    for name, inner in properties.items():
        where, below = f"{path}.properties[{name}]", within and within.under(name)
        if is_object and name in _OF_OBJECTS:
            below = Surroundings.of(schema, name, root=level == "root")
        if level == "root" and name == "metadata":
            yield from default_checks.forbid_all(inner, where, f"in top-level {name}")
        else:
            yield from _node(inner, where, "field", below)
    if isinstance(extra, dict):
        yield from _node(extra, f"{path}.additionalProperties", "field", within and within.values())
    if isinstance(schema.get("items"), dict):
        yield from _node(schema["items"], f"{path}.items", "item", within and within.under(0))


def _standard(schema: Json, path: str) -> Iterator[FieldError]:
    for name in _NOT_SUPPORTED:
        if schema.get(name):
            yield forbidden(f"{path}.{name}", f"{name} is not supported")
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if schema.get("uniqueItems"):
        yield forbidden(
            f"{path}.uniqueItems",
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        )
    kind = schema.get("type")
    if kind == "null":
        yield forbidden(
            f"{path}.type", "type cannot be set to null, use nullable as an alternative"
        )
    elif kind and kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)


def _type(schema: Json, path: str, level: str) -> Iterator[FieldError]:
    kind = schema.get("type") or ""
    loose = any(
        schema.get(f"{_PREFIX}{name}") for name in ("int-or-string", "preserve-unknown-fields")
    )
    if schema.get(f"{_PREFIX}embedded-resource"):
        detail = "must be object if x-kubernetes-embedded-resource is true"
        if not kind:
            yield required(f"{path}.type", detail)
        elif kind != "object":
            yield invalid(f"{path}.type", kind, detail)
        if not schema.get(f"{_PREFIX}preserve-unknown-fields") and not schema.get("properties"):
            yield required(
                f"{path}.properties",
                "must not be empty if x-kubernetes-embedded-resource is true without "
                "x-kubernetes-preserve-unknown-fields",
            )
    elif not kind and not loose:
        yield required(f"{path}.type", _WHERE[level])
    if level == "root" and kind not in {"", "object"}:
        yield invalid(f"{path}.type", kind, "must be object at the root")
    if kind == "array" and schema.get("items") is None:
        yield required(f"{path}.items", "must be specified")


def _extensions(schema: Json, path: str) -> Iterator[FieldError]:
    kept = schema.get(f"{_PREFIX}preserve-unknown-fields")
    if kept is False:
        yield invalid(f"{path}.{_PREFIX}preserve-unknown-fields", False, _TRUE_OR_UNDEFINED)
    if schema.get(f"{_PREFIX}int-or-string"):
        detail = "must be false if x-kubernetes-int-or-string is true"
        for name in ("preserve-unknown-fields", "embedded-resource"):
            if schema.get(f"{_PREFIX}{name}"):
                yield invalid(f"{path}.{_PREFIX}{name}", True, detail)
    yield from list_types.check(schema, path)
    map_type = schema.get(f"{_PREFIX}map-type")
    if map_type:
        if schema.get("type") != "object":
            yield invalid(
                f"{path}.type",
                schema.get("type"),
                "must be object if x-kubernetes-map-type is specified",
            )
        if map_type not in _MAP_TYPES:
            yield not_supported(f"{path}.{_PREFIX}map-type", map_type, _MAP_TYPES)


def _metadata(schema: Json, path: str, level: str) -> Iterator[FieldError]:
    properties = schema.get("properties") or {}
    for name in ("kind", "apiVersion"):
        if name in properties and properties[name].get("type") != "string":
            where = f"{path}.properties[{name}].type"
            yield invalid(where, properties[name].get("type"), "must be string")
    metadata = properties.get("metadata")
    if metadata is None:
        return
    where = f"{path}.properties[metadata]"
    if metadata.get("type") != "object":
        yield invalid(f"{where}.type", metadata.get("type") or "", "must be object")
    inner = set(metadata.get("properties") or ()) - {"name", "generateName"}
    beside = set(metadata) - {"type", "properties", "description", "default"}
    if level == "root" and (inner or beside):
        yield forbidden(
            where,
            "must not specify anything other than name and generateName, but metadata is "
            "implicitly specified",
        )


# --- value validations, and what they must not contain


def _values(schema: Json, path: str) -> Iterator[FieldError]:
    pattern = schema.get("pattern")
    if pattern:
        try:
            patterns.compile_pattern(pattern)
        except patterns.BadPatternError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            yield invalid(f"{path}.pattern", pattern, detail)
    typed = bool(schema.get(f"{_PREFIX}int-or-string"))
    for junctor in _JUNCTORS:
        for index, part in enumerate(schema.get(junctor) or ()):
            yield from _check_nested(part, f"{path}.{junctor}[{index}]", typed, schema)
    if isinstance(schema.get("not"), dict):
        yield from _check_nested(schema["not"], f"{path}.not", typed, schema)


_EMPTY = {"title": "empty", "description": "empty", "nullable": "false", "default": "undefined"}
_UNSET = {
    "preserve-unknown-fields": "false", "embedded-resource": "false", "int-or-string": "false",
    "list-map-keys": "empty", "list-type": "undefined", "map-type": "undefined",
    "validations": "empty",
}  # fmt: skip


def _check_nested(schema: Json, path: str, typed: bool, beside: Json) -> Iterator[FieldError]:
    """Yields the faults of a schema below allOf, anyOf, oneOf or not.

    It may only restrict values that the schema `beside` it describes.
    """
    if faults := list(keywords.faults(schema, path)):
        yield from faults
        return
    if schema.get("type") and not (typed and schema["type"] in {"integer", "string"}):
        yield forbidden(f"{path}.type", "must be empty to be structural")
    if schema.get("additionalProperties") is not None:
        yield forbidden(f"{path}.additionalProperties", "must be undefined to be structural")
    for name, word in _EMPTY.items():
        if schema.get(name):
            yield forbidden(f"{path}.{name}", f"must be {word} to be structural")
    for name, word in _UNSET.items():
        if schema.get(f"{_PREFIX}{name}"):
            yield forbidden(f"{path}.{_PREFIX}{name}", f"must be {word} to be structural")
    yield from _check_nested_parts(schema, path, typed, beside)


def _check_nested_parts(schema: Json, path: str, typed: bool, beside: Json) -> Iterator[FieldError]:
    properties = beside.get("properties") or {}
    for name, inner in (schema.get("properties") or {}).items():
        where = f"{path}.properties[{name}]"
        if name == "metadata":
            yield forbidden(where, "must not be specified in a nested context")
        elif name not in properties:
            outside = f"{re.sub(r'[.](allOf|anyOf|oneOf|not).*', '', path)}.properties[{name}]"
            yield required(outside, f"because it is defined in {where}")
        yield from _check_nested(inner, where, False, properties.get(name) or {})
    if isinstance(schema.get("items"), dict):
        yield from _check_nested(schema["items"], f"{path}.items", False, beside.get("items") or {})
    for junctor in _JUNCTORS:
        for index, part in enumerate(schema.get(junctor) or ()):
            yield from _check_nested(part, f"{path}.{junctor}[{index}]", typed, beside)
