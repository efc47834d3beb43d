from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kcm.api import codec
from kcm.api.apiextensions_v1 import CustomResourceColumnDefinition, CustomResourceDefinition
from kcm.apimachinery.meta_v1 import format_time
from kcm.kinds.printing.columns import columns_of
from kcm.kinds.printing.custom import DefinedColumn
from kcm.testing.builders import START
from tests.unit.apiextensions.samples import SCHEME, definition, serve, struct

LOOSE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
NOW = START + timedelta(minutes=5)


def with_columns(**columns: tuple[str, str]) -> CustomResourceDefinition:
    new_definition = definition(v1=struct(spec=LOOSE, status=LOOSE))
    added = [
        CustomResourceColumnDefinition(name=name, type=kind, json_path=path)
        for name, (kind, path) in columns.items()
    ]
    version = new_definition.spec.versions[0].replace(additional_printer_columns=added)
    return new_definition.with_spec(new_definition.spec.replace(versions=[version]))


def row(body: dict[str, Any], definition: CustomResourceDefinition) -> list[Any]:
    with serve(definition):
        resource = SCHEME.by_name("crontabs.example.com")
        created = {"name": "one", "creationTimestamp": format_time(START)}
        obj = codec.decode({"metadata": created} | body, resource)
        columns = columns_of(resource, wide=True)
        return [c.cell(obj, NOW) for c in columns]


def test_without_columns_there_are_name_and_age() -> None:
    assert row({}, with_columns()) == ["one", "5m"]


def test_cells_have_the_type_of_their_column() -> None:
    definition = with_columns(
        text=("string", ".spec.text"),
        whole=("integer", ".spec.whole"),
        truth=("boolean", ".spec.truth"),
        list=("string", ".spec.list"),
        when=("date", ".spec.when"),
        wrong=("integer", ".spec.text"),
        nothing=("string", ".spec.nothing"),
    )
    spec = {
        "text": "t",
        "whole": 3,
        "truth": False,
        "list": [1, "a"],
        "when": format_time(START),
    }
    assert row({"spec": spec}, definition) == ["one", "t", 3, False, '[1,"a"]', "5m", None, None]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"truth": True}, "true"),
        ({"truth": False}, "false"),
        ({"truth": 1}, "<none>"),
        ({}, "<none>"),
    ],
)
def test_a_truth_is_printed_as_json_writes_it(spec: dict[str, Any], text: str) -> None:
    with serve(with_columns(truth=("boolean", ".spec.truth"))):
        resource = SCHEME.by_name("crontabs.example.com")
        (_, column) = columns_of(resource, wide=True)
        assert column.text(codec.decode({"spec": spec}, resource), NOW) == text


def test_a_column_is_described_as_its_definition_has_it() -> None:
    column = CustomResourceColumnDefinition(
        name="Size", type="integer", format="int32", description="how many", priority=1,
        json_path=".spec.size",
    )  # fmt: skip
    plain = CustomResourceColumnDefinition(name="Size", type="integer", json_path=".spec.size")
    new_definition = definition(v1=struct(spec=LOOSE, status=LOOSE))
    version = new_definition.spec.versions[0].replace(additional_printer_columns=[column, plain])
    changed = new_definition.with_spec(new_definition.spec.replace(versions=[version]))
    with serve(changed):
        columns = columns_of(SCHEME.by_name("crontabs.example.com"), wide=True)
    _, first, second = columns
    assert isinstance(first, DefinedColumn)
    assert isinstance(second, DefinedColumn)
    assert first.described == {
        "name": "Size", "type": "integer", "format": "int32", "description": "how many",
        "priority": 1,
    }  # fmt: skip
    assert (second.described["format"], second.described["priority"]) == ("", 0)
    assert second.described["description"].endswith("(in JSONPath format): .spec.size")
