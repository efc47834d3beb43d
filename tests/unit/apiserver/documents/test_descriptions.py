from __future__ import annotations

from collections.abc import Iterator

import pytest

from kcm.api import scheme
from kcm.apiextensions import structure
from kcm.apimachinery.base import Model
from kcm.apiserver.documents import descriptions
from kcm.apiserver.documents.openapi_schemas import V2, V3, Dialect, schemas_of


def models(model: type[Model], seen: set[type[Model]]) -> Iterator[type[Model]]:
    if model in seen:
        return
    seen.add(model)
    yield model
    for field in structure.fields(model).values():
        shape: structure.Shape | None = field.shape
        while shape is not None:
            if isinstance(shape.model, type):
                yield from models(shape.model, seen)
            shape = shape.item


@pytest.mark.parametrize("resource", scheme.resources(), ids=str)
def test_every_field_of_every_kind_is_described(resource: scheme.Resource) -> None:
    silent = [
        f"{model.__name__}.{name}"
        for model in models(resource.model, set())
        for name in structure.fields(model)
        if not descriptions.of(model.__name__, name)
    ]
    assert silent == []


def test_what_is_not_a_field_is_not_described() -> None:
    assert descriptions.of("PodSpec", "nonsense") == ""


@pytest.mark.parametrize("dialect", [V2, V3])
def test_references_are_described_too(dialect: Dialect) -> None:
    pod = schemas_of([scheme.lookup("pods")], dialect)["io.k8s.api.core.v1.Pod"]
    spec = pod["properties"]["spec"]
    assert spec["description"] == "Wanted state of the object."
    assert "$ref" in (spec if dialect is V2 else spec["allOf"][0])
