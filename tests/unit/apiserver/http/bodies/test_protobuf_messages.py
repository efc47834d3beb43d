from __future__ import annotations

from collections.abc import Iterator

import pytest

from kcm.api import scheme
from kcm.api.scheme import BUILT_IN
from kcm.apiextensions import structure
from kcm.apiextensions.structure import Shape
from kcm.apimachinery.base import Model
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.http.bodies.protobuf_messages import MessageField, table

RESOURCES = [pytest.param(resource, id=resource.name) for resource in BUILT_IN.resources()]

# The wire type of each kind of field; anything else is a message.
_WIRE = {"string": "string", "boolean": "bool", "quantity": "resource.Quantity",
         "time": "meta/v1.Time", "microtime": "meta/v1.MicroTime",
         "intstr": "intstr.IntOrString"}  # fmt: skip


@pytest.mark.parametrize("resource", RESOURCES)
def test_every_field_of_every_kind_has_a_number_and_the_same_type(
    resource: scheme.Resource,
) -> None:
    message = f"{resource.api_version}.{resource.kind}"
    assert list(_faults(resource.model, message, set(), resource.kind)) == []


def _faults(model: type[Model], message: str, seen: set[str], path: str) -> Iterator[str]:
    if message in seen:
        return
    seen.add(message)
    known = dict(_flat(message))
    for name, field in structure.fields(model).items():
        if name in {"apiVersion", "kind"} and issubclass(model, KubeObject):
            continue  # in the envelope; nowhere for one inside another
        if name not in known:
            yield f"{path}.{name} has no number"
            continue
        yield from _field_faults(field.shape, known[name], seen, f"{path}.{name}")


def _field_faults(shape: Shape, field: MessageField, seen: set[str], path: str) -> Iterator[str]:
    container = {"list": "[]", "map": "map:"}.get(shape.kind, "")
    inner = shape.item if container and shape.item else shape
    if field.type.endswith((".JSON", ".RawExtension", ".FieldsV1", ".ExtraValue")):
        return
    if inner.kind in {"any", "map"} or "JSONSchemaProps" in field.type:
        return
    if container != field.container:
        yield f"{path} is {field.container or 'one'} on the wire"
    elif inner.kind == "struct" and isinstance(inner.model, type):
        yield from _faults(inner.model, field.type, seen, path)
    elif inner.kind == "integer":
        if field.type != f"int{inner.bits}":
            yield f"{path} is {field.type} on the wire"
    elif _WIRE[inner.kind] != field.type and field.type != "bytes":
        yield f"{path} is {field.type} on the wire"


def _flat(message: str) -> Iterator[tuple[str, MessageField]]:
    for field in table().fields[message].values():
        if field.inline:
            yield from _flat(field.type)
        else:
            yield field.name, field


def test_types_of_other_packages_are_found() -> None:
    fields = table().fields
    named = {one.type for message in fields.values() for one in message.values() if "." in one.type}
    assert named <= fields.keys()
