from __future__ import annotations

import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.api.scheme import BUILT_IN
from kcm.store.managed_fields.fieldsets import (
    Values,
    add_holders,
    encode_creation,
    encode_paths,
    format_path,
    merge_values,
    parse_paths,
    paths,
    remove_paths,
)
from kcm.store.rules import prepare_create
from kcm.testing.builders import START
from tests.samples import sample

CONTAINER: dict[str, Any] = {"name": "c", "image": "x", "args": ["a", "b"]}
BODY: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"a": "b"}, "finalizers": ["f"]},
    "spec": {"containers": [CONTAINER], "nodeSelector": {"k": "v"}},
    "status": {"phase": "Running"},
}


def test_paths_leave_out_what_the_server_keeps_and_the_other_subresource() -> None:
    formatted = {format_path(path) for path in paths(BODY, Pod, "")}
    assert formatted == {
        ".metadata.labels.a",
        '.metadata.finalizers[="f"]',
        '.spec.containers[name="c"]',
        '.spec.containers[name="c"].name',
        '.spec.containers[name="c"].image',
        '.spec.containers[name="c"].args',
        ".spec.nodeSelector",
    }
    assert {format_path(path) for path in paths(BODY, Pod, "status")} == {".status.phase"}


def test_fields_v1_and_back_is_the_same() -> None:
    all_paths = paths(BODY, Pod, "")
    assert parse_paths(encode_paths(all_paths)) == all_paths
    item = encode_paths(all_paths)["f:spec"]["f:containers"]['k:{"name":"c"}']
    assert item == {".": {}, "f:args": {}, "f:image": {}, "f:name": {}}


@given(st.recursive(st.none() | st.text(), lambda x: st.dictionaries(st.text(), x), max_leaves=8))
def test_malformed_fields_v1_do_no_harm(rubbish: Any) -> None:
    known = parse_paths(rubbish)
    assert parse_paths(encode_paths(known)) == known


def test_the_value_at_a_path_is_found_through_lists() -> None:
    path = ("f:spec", "f:containers", 'k:{"name":"c"}', "f:image")
    assert Values(BODY, Pod).at(path) == "x"
    assert Values(BODY, Pod).at(("f:spec", "f:volumes", 'k:{"name":"v"}')) is None
    assert Values({"spec": "odd"}, Pod).at(path) is None


def test_merging_adds_items_by_key_and_replaces_plain_lists() -> None:
    applied = {"spec": {"containers": [{"name": "c", "args": ["z"]}, {"name": "d"}]}}
    containers = merge_values(BODY, applied, Pod)["spec"]["containers"]
    assert containers == [{"name": "c", "image": "x", "args": ["z"]}, {"name": "d"}]
    assert BODY["spec"]["containers"] == [CONTAINER]


def test_removing_takes_items_values_and_what_that_leaves_empty() -> None:
    gone = frozenset(
        {
            ("f:metadata", "f:labels", "f:a"),
            ("f:metadata", "f:finalizers", 'v:"f"'),
            ("f:spec", "f:containers", 'k:{"name":"c"}', "f:args"),
        }
    )
    left = remove_paths(BODY, gone, Pod)
    assert left["metadata"] == {"name": "p"}
    assert left["spec"]["containers"] == [{"name": "c", "image": "x"}]


@pytest.mark.parametrize("name", [resource.name for resource in BUILT_IN.resources()])
def test_what_a_creator_owns_is_every_path_but_those_of_the_status(name: str) -> None:
    obj = prepare_create(sample(name), BUILT_IN.by_name(name), START, rng=random.Random(1))
    body, model = codec.to_dict(obj), type(obj)
    expected = {path for path in paths(body, model, nodes=True) if path[0] != "f:status"}
    assert encode_creation(body, model) == encode_paths(frozenset(expected))


MANY = 20_000


def large(value: str) -> dict[str, Any]:
    env = [{"name": f"V{n}", "value": value} for n in range(MANY)]
    return {"spec": {"containers": [{"name": "c", "env": env}]}}


def test_large_lists_are_walked_in_linear_time() -> None:
    before = time.process_time()
    old, new = Values(large("a"), Pod), Values(large("b"), Pod)
    owned = paths(large("a"), Pod)
    assert sum(old.at(path) != new.at(path) for path in owned if path[-1] == "f:value") == MANY
    left = remove_paths(large("a"), frozenset(path for path in owned if path[-1] != "f:name"), Pod)
    assert left == {}
    assert len(add_holders(owned)) > MANY
    assert time.process_time() - before < 10


def test_deep_fields_are_walked_in_linear_time() -> None:
    fields: dict[str, Any] = {f"f:x{n}": {} for n in range(MANY)}
    for _ in range(90):
        fields = {"f:a": fields}
    before = time.process_time()
    assert len(add_holders(parse_paths(fields))) == MANY + 90
    assert time.process_time() - before < 10


def test_items_that_have_one_key_are_owned_once() -> None:
    ports = [{"containerPort": 80, "name": "http"}, {"containerPort": 80, "name": "https"}]
    body = {"spec": {"containers": [{"name": "a", "ports": ports}]}}
    [(_, owned)] = encode_creation(body, Pod)["f:spec"]["f:containers"].items()
    assert owned["f:ports"] == {
        ".": {},
        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}, "f:name": {}},
    }
