"""The types of the API's fields, and how patches merge them.

They come from the annotations of models and from structural schemas. Patches, checks for unknown
fields and OpenAPI use them.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from kcm.api.custom.kinds import CustomObject
from kcm.api.custom.structural_schema import StructuralSchema
from kcm.apimachinery.base import Atomic, MergeKey, MergeSet, Model, RetainKeys
from kcm.apimachinery.meta_v1 import KubeObject, MicroTime
from kcm.apimachinery.quantity import Quantity

Kind = Literal[
    "struct", "list", "map", "string", "integer", "boolean", "time", "microtime", "quantity",
    "intstr", "any",
]  # fmt: skip


Struct = type[Model] | StructuralSchema | None
"""A type that has fields: a model, or a node of a custom kind's schema. None if it is unknown."""


@dataclass(frozen=True)
class Shape:
    """The type of a field's value. `item` is the type of the items of a list or map."""

    kind: Kind
    model: Struct = None
    item: Shape | None = None
    bits: int = 0  # the bits of an integer

    @cached_property
    def struct(self) -> Struct:
        """Returns the model of the struct, or of the structs in the list."""
        return self.item.model if self.kind == "list" and self.item else self.model


@dataclass(frozen=True)
class Field:
    """A field of a struct, under its name in JSON."""

    name: str
    shape: Shape
    merge: MergeKey | MergeSet | None = None
    atomic: bool = False  # a struct or map that server-side apply treats as one field
    retain_keys: bool = False  # a struct whose fields are alternatives
    optional: bool = False  # it may be absent; other fields are encoded even if they are empty
    patch_key: MergeKey | None = None  # for a list that only strategic merge patches merge

    @property
    def patch_merge(self) -> MergeKey | MergeSet | None:
        """Returns how a strategic merge patch merges the list, None if it replaces the list."""
        if self.merge is not None and self.merge.patches:
            return self.merge
        return self.patch_key


@cache
def fields(model: type[Model]) -> Mapping[str, Field]:
    """Returns the fields of a model by their names in JSON."""
    by_name = {}
    for info in model.model_fields.values():
        merge = next((m for m in info.metadata if isinstance(m, MergeKey | MergeSet)), None)
        applies = not isinstance(merge, MergeKey) or merge.applies
        name = str(info.alias)
        annotation = info.annotation
        if info.metadata and get_origin(annotation) is None:
            annotation = Annotated[annotation, *info.metadata]  # type: ignore[assignment] # restores the original annotation
        shape = _shape(annotation)
        atomic = shape.model is not None and shape.model.kubernetes_atomic
        by_name[name] = Field(
            name,
            shape,
            merge if applies else None,
            atomic or any(isinstance(mark, Atomic) for mark in info.metadata),
            any(isinstance(mark, RetainKeys) for mark in info.metadata),
            type(None) in get_args(info.annotation),
            merge if isinstance(merge, MergeKey) and not merge.applies else None,
        )
    return by_name


def field(model: Struct, name: str) -> Field | None:
    """Returns a field of a struct, or None if the struct or the field is unknown."""
    if model is None:
        return None
    if isinstance(model, StructuralSchema):
        return _of_schema(model, name)
    if not issubclass(model, CustomObject):
        return fields(model).get(name)
    if name in {"apiVersion", "kind", "metadata"}:
        return fields(KubeObject).get(name)
    return _of_schema(model.custom.schema, name)


def _of_schema(schema: StructuralSchema, name: str) -> Field | None:
    inner = schema.field(name)
    if inner is None:
        return None
    if inner.type == "array":
        shape = Shape("list", item=Shape("struct", inner.items) if inner.items else _ANY)
    else:
        shape = Shape("struct", inner) if inner.type == "object" else _ANY
    return Field(name, shape, inner.merge, inner.kubernetes_atomic, optional=True)


_ANY = Shape("any")
_PLAIN: dict[Any, Shape] = {
    str: Shape("string"),
    bool: Shape("boolean"),
    datetime: Shape("time"),
    Quantity: Shape("quantity"),
    MicroTime: Shape("microtime"),
}


def _shape(annotation: Any) -> Shape:
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _shape_of_annotated(arguments[0], arguments[1:])
    if origin in {Union, types.UnionType}:
        rest = [argument for argument in arguments if argument is not type(None)]
        return _shape(rest[0]) if len(rest) == 1 else Shape("intstr")
    if origin is list:
        return Shape("list", item=_shape(arguments[0]))
    if origin is dict:
        return Shape("map", item=_shape(arguments[1]))
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return Shape("struct", model=annotation)
    return _ANY


def _shape_of_annotated(inner: Any, metadata: tuple[Any, ...]) -> Shape:
    if inner is int:
        limits = str(metadata)
        return Shape("integer", bits=32 if str(2**31 - 1) in limits else 64)
    return _shape(inner)
