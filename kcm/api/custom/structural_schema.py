"""Structural schemas, parsed once per definition.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/structural.go,
Kubernetes 1.33.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kcm.apimachinery.base import MergeKey, MergeSet

Json = Mapping[str, Any]

MISSING: Any = object()
"""The value of an absent field, since None is JSON's null."""

_ROOT_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


@dataclass(frozen=True, eq=False)
class StructuralSchema:
    """One node of a structural schema: the schema of a value.

    It compares by identity, so that it can be a key.
    """

    raw: Json
    type: str = ""
    properties: Mapping[str, StructuralSchema] = field(default_factory=dict)
    items: StructuralSchema | None = None
    additional: StructuralSchema | None = None  # the schema of a map's values
    open: bool = False  # a map with any values
    default: Any = MISSING
    nullable: bool = False
    preserve: bool = False  # keeps fields that it does not name
    embedded: bool = False  # holds an object of its own, with apiVersion, kind and metadata
    int_or_string: bool = False
    list_type: str = "atomic"
    map_type: str = "granular"
    list_keys: tuple[str, ...] = ()

    @cached_property
    def merge(self) -> MergeKey | MergeSet | None:
        """Returns how server-side apply merges a list of this schema, None for an atomic list."""
        if self.list_type == "map" and self.list_keys:
            properties = self.items.properties if self.items is not None else {}
            defaults = tuple(
                (name, properties[name].default)
                for name in self.list_keys
                if name in properties and properties[name].default is not MISSING
            )
            return MergeKey(self.list_keys[0], self.list_keys, key_defaults=defaults)
        return MergeSet() if self.list_type == "set" else None

    @cached_property
    def rules(self) -> tuple[Json, ...]:
        """Returns the CEL rules (x-kubernetes-validations) of this node."""
        return tuple(self.raw.get("x-kubernetes-validations") or ())

    @cached_property
    def has_rules(self) -> bool:
        """Reports whether this node or one below it has CEL rules."""
        return bool(self.rules) or any(inner.has_rules for inner in self.inner())

    def inner(self) -> Iterator[StructuralSchema]:
        """Yields the schemas directly below this one."""
        yield from self.properties.values()
        for schema in (self.items, self.additional):
            if schema is not None:
                yield schema

    @cached_property
    def digest(self) -> bytes:
        """Returns the SHA-256 hash of the node's JSON in the definition."""
        return hashlib.sha256(json.dumps(self.raw).encode()).digest()

    @property
    def kubernetes_atomic(self) -> bool:
        """Reports whether server-side apply treats this struct or map as one field."""
        return self.map_type == "atomic"

    def field(self, name: str) -> StructuralSchema | None:
        """Returns the schema of a field, or None if this schema does not describe it."""
        return self.properties.get(name) or self.additional

    def has_meta(self, name: str, root: bool) -> bool:
        """Reports whether the field is apiVersion, kind or metadata of an object.

        `root` says whether this node is the root of the schema. Embedded resources have these
        fields too.
        """
        return (root or self.embedded) and name in _ROOT_FIELDS


def parse(raw: Json) -> StructuralSchema:
    """Returns the parsed form of a schema from a CustomResourceDefinition.

    It must be structural.
    """
    extra = raw.get("additionalProperties")
    items = raw.get("items")
    return StructuralSchema(
        raw=raw,
        type=str(raw.get("type") or ""),
        properties={
            name: parse(inner)
            for name, inner in (raw.get("properties") or {}).items()
            if isinstance(inner, Mapping)
        },
        items=parse(items) if isinstance(items, Mapping) else None,
        additional=parse(extra) if isinstance(extra, Mapping) else None,
        open=extra is True,
        default=MISSING if raw.get("default") is None else raw["default"],
        nullable=raw.get("nullable") is True,
        preserve=raw.get("x-kubernetes-preserve-unknown-fields") is True,
        embedded=raw.get("x-kubernetes-embedded-resource") is True,
        int_or_string=raw.get("x-kubernetes-int-or-string") is True,
        list_type=str(raw.get("x-kubernetes-list-type") or "atomic"),
        map_type=str(raw.get("x-kubernetes-map-type") or "granular"),
        list_keys=tuple(raw.get("x-kubernetes-list-map-keys") or ()),
    )
