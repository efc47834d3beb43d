from __future__ import annotations

from typing import Any

import pytest

from kcm.api import codec, scheme
from kcm.api.scheme import BUILT_IN
from kcm.apiserver.cache.entries import Entry
from kcm.apiserver.http.responses import Form
from kcm.apiserver.objects.tables import table


def show(kind: str, body: dict[str, Any]) -> tuple[dict[str, str], list[Any], dict[str, Any]]:
    """Returns the types of the columns, the cells, and the whole row of one object."""
    resource = BUILT_IN.lookup(kind)
    obj = codec.decode({"metadata": {"name": "x"}, **body}, resource)
    entry = Entry(resource, "x", codec.encode(obj), 1)
    answer = table(resource, [entry], Form("Table"), "None", {})
    types = {column["name"]: column["type"] for column in answer["columnDefinitions"]}
    return types, answer["rows"][0]["cells"], answer["rows"][0]


@pytest.mark.parametrize(
    ("kind", "body", "column", "type_", "cell"),
    [
        ("rs", {"spec": {"replicas": 3}}, "Desired", "integer", 3),
        ("deploy", {"status": {"updatedReplicas": 2}}, "Up-to-date", "string", 2),
        ("cm", {"data": {"a": "b"}}, "Data", "string", 1),
        ("pdb", {"status": {"disruptionsAllowed": 4}}, "Allowed Disruptions", "integer", 4),
        ("pc", {"value": 7}, "Value", "integer", 7),
        ("pc", {"globalDefault": True}, "Global-Default", "boolean", True),
        ("svc", {"spec": {"clusterIP": "10.0.0.1"}}, "Cluster-IP", "string", "10.0.0.1"),
        ("pods", {}, "Restarts", "string", "0"),
        ("ev", {"count": 5}, "Count", "string", "5"),
        ("csr", {"spec": {"signerName": "a/b"}}, "SignerName", "string", "a/b"),
        ("roles", {}, "Created At", "date", ""),
    ],
)
def test_a_column_declares_its_type_and_programs_get_numbers(
    kind: str, body: dict[str, Any], column: str, type_: str, cell: Any
) -> None:
    types, cells, _ = show(kind, body)
    assert types[column] == type_
    assert cells[list(types).index(column)] == cell


@pytest.mark.parametrize("resource", BUILT_IN.resources(), ids=str)
def test_every_kind_prints_an_empty_object(resource: scheme.Resource) -> None:
    types, cells, _ = show(resource.name, {})
    assert len(types) == len(cells)
    assert set(types.values()) <= {"string", "integer", "boolean", "date"}


def test_the_row_of_a_pod_that_has_ended_says_so() -> None:
    _, _, row = show("pods", {"status": {"phase": "Failed"}})
    assert row["conditions"] == [
        {"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}
    ]
    assert "conditions" not in show("pods", {"status": {"phase": "Running"}})[2]


@pytest.mark.parametrize(
    ("include", "kind"), [("None", None), ("Metadata", "PartialObjectMetadata"), ("Object", "Pod")]
)
def test_a_row_has_what_was_asked_for(include: str, kind: str | None) -> None:
    resource = BUILT_IN.lookup("pods")
    obj = codec.decode({"metadata": {"name": "x"}}, resource)
    entry = Entry(resource, "x", codec.encode(obj), 1)
    (row,) = table(resource, [entry], Form("Table"), include, {})["rows"]
    assert row.get("object", {}).get("kind") == kind
