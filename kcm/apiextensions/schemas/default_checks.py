"""Checks the defaults in a schema: they are pruned, valid, and allowed where they are.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go and
ValidateCustomResourceDefinitionOpenAPISchema, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from kcm.api.custom.structural_schema import Json, StructuralSchema, parse
from kcm.apiextensions import embedded, pruning, validating
from kcm.apiextensions.cel import rules
from kcm.apimachinery.field_errors import Faults, forbidden, invalid
from kcm.errors import FieldError

_TYPE = {"apiVersion": "validation/v1", "kind": "Validation"}


@dataclass(frozen=True)
class Surroundings:
    """Where a node is in the type or metadata of an object."""

    schema: Json  # of the object
    steps: tuple[str | int, ...]  # from the object to the node
    forbidden: str = ""  # where it is, if no default may be there

    @classmethod
    def of(cls, schema: Json, name: str, *, root: bool) -> Surroundings:
        """Returns the place of a field of an object. `root` says that it is the custom object."""
        return cls(schema, (name,), f"in top-level {name}" if root else "")

    def under(self, step: str | int) -> Surroundings:
        """Returns the place of a field or an item of the node."""
        return replace(self, steps=(*self.steps, step))

    def values(self) -> Surroundings:
        """Returns the place of the values of a map."""
        return replace(self, forbidden="inside additionalProperties applying to object metadata")

    def surround(self, value: Any) -> dict[str, Any]:
        """Returns an object that has nothing but its type and the value of the node."""
        for step in reversed(self.steps):
            value = {step: value} if isinstance(step, str) else [value]
        return {**_TYPE, **value}


def check(
    schema: Json, path: str, within: Surroundings | None, *, root: bool
) -> Iterator[FieldError]:
    """Yields what is wrong with the default of a node. `root` says that it is the schema's root."""
    value, where = schema["default"], f"{path}.default"
    parsed = parse(schema)
    if root:
        yield forbidden(where, "must not be set at the root")
    elif within is not None and within.forbidden:
        yield forbidden(where, f"must not be set {within.forbidden}")
    elif within is not None:
        yield from _check_inside(value, parsed, where, within)
    else:
        dropped: list[str] = []
        pruning.prune(value, parsed, "", dropped)
        if dropped:
            yield invalid(where, value, "must not have unknown fields")
        yield from embedded.check(value, parsed, where) or _check_value(value, parsed, where)


def forbid_all(schema: Json, path: str, place: str) -> Iterator[FieldError]:
    """Yields a fault for the default of a node, and of each node below it."""
    if schema.get("default") is not None:
        yield forbidden(f"{path}.default", f"must not be set {place}")
    for name, inner in (schema.get("properties") or {}).items():
        yield from forbid_all(inner, f"{path}.properties[{name}]", place)


def _check_inside(value: Any, schema: StructuralSchema, path: str, within: Surroundings) -> Faults:
    """Returns what is wrong with a default that is a part of an object's type or metadata."""
    obj = within.surround(value)
    if faults := embedded.check(obj, parse(within.schema), root=True):
        listed = ", ".join(map(str, faults))
        why = f"[{listed}]" if len(faults) > 1 else listed
        return [invalid(path, value, f"must result in valid metadata: {why}")]
    return _check_value(value, schema, path)


def _check_value(value: Any, schema: StructuralSchema, path: str) -> Faults:
    return validating.validate(value, schema.raw, path) or rules.check_default(schema, value, path)
