"""Compares the models with the structs that Kubernetes 1.36 publishes.

`published_fields.txt` has these structs, written by `tools/published_api.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from kcm.api.scheme import Scheme
from kcm.apiextensions import structure
from kcm.apiextensions.structure import Field, Shape
from kcm.apimachinery.base import MergeKey, MergeSet, Model
from kcm.apiserver.computed_kinds import is_metric
from kcm.apiserver.documents.discovery import Discovery
from kcm.apiserver.documents.openapi_schemas import name_of
from tests.unit.api.differences import read_differences

Struct = dict[str, str]
"""The type and marks of each field of a struct, by the field's name in JSON."""


@cache
def read_published() -> dict[str, Struct]:
    """Returns the structs of Kubernetes 1.36 by their full names."""
    structs: dict[str, Struct] = {}
    package, struct = "", Struct()
    text = Path(__file__).with_name("published_fields.txt").read_text("utf-8")
    for line in text.splitlines():
        first, _, rest = line.strip().partition(" ")
        if line.startswith("  "):
            struct[first] = rest
        elif first == "package":
            package = rest
        else:
            struct = structs[f"{package}.{first}"] = {}
    return structs


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
    """Returns the models of all kinds, reviews included, and of the structs below them."""
    seen: set[type[Model]] = set()
    for resource in Discovery(Scheme()).list_served_resources():
        model = resource.model
        if not is_metric(resource):
            list(models_of(model, seen))
    return sorted(seen, key=name_of)


def describe(field: Field) -> str:
    """Returns the type and marks of a field, as the table has them."""
    words = [_type(field.shape)]
    if isinstance(field.merge, MergeKey):
        words.append(f"map={','.join(field.merge.map_keys or (field.merge.key,))}")
    elif isinstance(field.merge, MergeSet):
        words.append("set")
    if field.atomic:
        words.append("atomic")
    if field.patch_merge is not None:
        words.append(f"merge={getattr(field.patch_merge, 'key', '')}")
    if field.retain_keys or getattr(field.merge, "retain_keys", False):
        words.append("retainKeys")
    return " ".join(words)


def _type(shape: Shape) -> str:
    match shape.kind:
        case "list" | "map":
            assert shape.item is not None
            return {"list": "[]", "map": "map:"}[shape.kind] + _type(shape.item)
        case "struct":
            assert isinstance(shape.model, type)
            return shape.model.__name__
        case "integer":
            return f"int{shape.bits}"
        case kind:
            return kind


def list_differing_fields(model: type[Model]) -> Iterator[str]:
    kcm = {field.name: describe(field) for field in structure.fields(model).values()}
    upstream = read_published()[name_of(model)]
    for field in sorted(kcm.keys() | upstream.keys()):
        if kcm.get(field) != upstream.get(field):
            yield f"{model.__name__}.{field}"


@pytest.mark.parametrize("model", every_model(), ids=name_of)
def test_a_struct_has_the_published_fields_and_no_others(model: type[Model]) -> None:
    assert set(list_differing_fields(model)) <= read_differences("Fields")


def test_every_difference_that_the_documents_list_is_one() -> None:
    differing = {field for model in every_model() for field in list_differing_fields(model)}
    assert differing == read_differences("Fields")
