"""Compares the models with the JSON schemas that Kubernetes 1.33 publishes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

import pytest

from kcm.api.scheme import BUILT_IN
from kcm.apiextensions import structure
from kcm.apiextensions.structure import Field, Shape
from kcm.apimachinery.base import Model
from kcm.apiserver.documents.openapi_schemas import name_of

_TYPES = {
    "struct": "object", "map": "object", "list": "array", "string": "string",
    "integer": "integer", "boolean": "boolean", "time": "string", "microtime": "string",
}  # fmt: skip
# What is not a struct of its own upstream, or is JSON of any form.
_ANY = frozenset({"quantity", "intstr", "any"})
# Structs that stay JSON, each with its reason.
_KEPT_AS_JSON = {
    # Read and written as a whole by kcm.store.managed_fields, on every write.
    ("ObjectMeta", "managedFields"),
    # Checked as wholes: kcm.apiextensions.structural, kcm.kinds.validation.definitions.
    ("CustomResourceDefinitionVersion", "schema"),
    ("CustomResourceDefinitionVersion", "subresources"),
    # Conversion webhooks are not called yet.
    ("CustomResourceConversion", "webhook"),
}


@cache
def read_published() -> dict[str, Any]:
    """Returns the definitions of Kubernetes 1.33 by name."""
    folder = resources.files("kubernetes_validate") / "kubernetes-json-schema"
    text = (folder / "v1.33.0-local" / "_definitions.json").read_text("utf-8")
    body: dict[str, Any] = json.loads(text)["$defs"]
    return body


def models_of(model: type[Model], seen: set[type[Model]]) -> Iterator[type[Model]]:
    """Yields the model and every struct below it."""
    if model in seen:
        return
    seen.add(model)
    yield model
    for field in structure.fields(model).values():
        shape: Shape | None = field.shape
        while shape is not None:
            if isinstance(shape.model, type):
                yield from models_of(shape.model, seen)
            shape = shape.item


def every_model() -> list[type[Model]]:
    seen: set[type[Model]] = set()
    for resource in BUILT_IN.served():
        list(models_of(resource.model, seen))
    return sorted(seen, key=name_of)


@pytest.mark.parametrize("model", every_model(), ids=name_of)
def test_a_struct_has_the_published_fields_and_no_others(model: type[Model]) -> None:
    definition = read_published().get(name_of(model))
    assert definition is not None, f"{name_of(model)} is not published under this name"
    fields = structure.fields(model)
    assert sorted(fields) == sorted(definition["properties"])
    wrong = {
        name: (field.shape.kind, definition["properties"][name])
        for name, field in fields.items()
        if (model.__name__, name) not in _KEPT_AS_JSON
        and not _agrees(field, definition["properties"][name])
    }
    assert wrong == {}


def _agrees(field: Field, wanted: dict[str, Any]) -> bool:
    shape = field.shape
    if shape.kind in _ANY:
        return True
    if shape.kind == "list":
        assert shape.item is not None
        return _agrees(Field(field.name, shape.item), wanted["items"])
    reference = wanted.get("$ref", "").rpartition("/")[2]
    if reference:
        wanted = read_published()[reference]
    types = wanted.get("type", [])
    if _TYPES[shape.kind] not in ([types] if isinstance(types, str) else types):
        return False
    if shape.kind == "integer":
        return bool(wanted.get("format", "int64") == f"int{shape.bits}")
    if shape.kind == "struct" and isinstance(shape.model, type):
        # A struct that two groups have alike is one model.
        return shape.model.__name__ == str(reference).rpartition(".")[2]
    return "properties" not in wanted
