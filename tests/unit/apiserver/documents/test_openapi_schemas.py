from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kcm.api.scheme import BUILT_IN
from kcm.apiextensions import structure
from kcm.apimachinery.base import Model
from kcm.apimachinery.meta_v1 import ListMeta
from kcm.apiserver import computed_kinds
from kcm.apiserver.computed_kinds import is_metric
from kcm.apiserver.documents import discovery
from kcm.apiserver.documents.openapi_machinery import STRUCTS
from kcm.apiserver.documents.openapi_parameters import WRITE, shared_parameters
from kcm.apiserver.documents.openapi_schemas import (
    V2,
    V3,
    Dialect,
    schemas_of,
)
from kcm.kinds.descriptions import describe_field, list_described
from kcm.kinds.printing.columns import columns_of
from tests.unit.apiextensions.samples import SCHEME, definition, serve, struct

DISCOVERY = discovery.Discovery(SCHEME)

EMBEDDED = "x-kubernetes-embedded-resource"


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


def described_properties(name: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yields the struct, field and schema of each property, those of nested structs too."""
    for field, inner in schema.get("properties", {}).items():
        yield name, field, inner
        nested = inner.get("items", inner)
        yield from described_properties(f"{name}.{field}", nested)


@pytest.mark.parametrize("dialect", [V2, V3])
def test_every_schema_and_every_field_is_described(dialect: Dialect) -> None:
    served = [r for r in DISCOVERY.list_served_resources() if not is_metric(r)]
    schemas = schemas_of(served, dialect)
    assert [name for name, schema in schemas.items() if not schema.get("description")] == []
    fields = [entry for item in schemas.items() for entry in described_properties(*item)]
    assert len(fields) > 1700
    assert [(name, field) for name, field, schema in fields if not schema.get("description")] == []


def test_every_description_is_of_a_field_that_exists() -> None:
    seen: set[type[Model]] = set()
    for resource in DISCOVERY.list_served_resources():
        list(models(resource.model, seen))
    list(models(ListMeta, seen))
    fields = {(model.__name__, name) for model in seen for name in structure.fields(model)}
    with serve(definition(v1=struct(inner={"type": "object", EMBEDDED: True}))):
        kind = SCHEME.by_name("crontabs.example.com")
        embedded = schemas_of([kind], V3)["com.example.v1.CronTab"]["properties"]["inner"]
    schemas = schemas_of([SCHEME.lookup("pods")], V3)
    without_models = {name.rpartition(".")[2]: schemas[name] for name in STRUCTS} | {
        "EmbeddedResource": embedded,
        "List": schemas["io.k8s.api.core.v1.PodList"],
    }
    fields |= {(name, f) for name, schema in without_models.items() for f in schema["properties"]}
    fields |= {("Quantity", ""), ("IntOrString", "")}
    fields |= {("Parameter", one["name"]) for one in shared_parameters(V2).values()}
    fields |= {("Parameter", name) for name in WRITE}
    fields |= {
        ("TableColumn", column.title)
        for resource in (*BUILT_IN.served(), *computed_kinds.LISTED)
        for column in columns_of(resource, wide=True)
    }
    assert list_described() - fields == set()


def test_descriptions_begin_as_tools_expect() -> None:
    properties = schemas_of([SCHEME.lookup("pods")], V3)["io.k8s.api.core.v1.Pod"]["properties"]
    assert properties["apiVersion"]["description"].startswith("APIVersion defines")
    assert properties["kind"]["description"].startswith("Kind is a string value")
    assert properties["metadata"]["description"].startswith("Standard object's metadata")


def test_what_is_not_a_field_is_not_described() -> None:
    assert describe_field("PodSpec", "nonsense") == ""


@pytest.mark.parametrize("dialect", [V2, V3])
def test_references_are_described_too(dialect: Dialect) -> None:
    pod = schemas_of([SCHEME.lookup("pods")], dialect)["io.k8s.api.core.v1.Pod"]
    spec = pod["properties"]["spec"]
    assert spec["description"] == "Wanted state of the object."
    assert "$ref" in (spec if dialect is V2 else spec["allOf"][0])
