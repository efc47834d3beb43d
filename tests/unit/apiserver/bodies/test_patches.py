"""Patches as functions on JSON."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from kcm import errors
from kcm.api import codec, scheme
from kcm.apiserver.bodies import patches

PODS = scheme.by_name("pods")
MEGABYTE = 1_000_000


def apply_patch(
    target: dict[str, Any], patch: Any, kind: str = patches.JSON_PATCH
) -> dict[str, Any]:
    return patches.parse(kind, json.dumps(patch).encode(), PODS)(target)


def build_copy(source: str, to: str) -> dict[str, str]:
    return {"op": "copy", "from": source, "path": to}


def test_a_value_that_a_json_patch_copies_is_not_changed_with_its_copy() -> None:
    done = apply_patch(
        {"a": [1], "b": {}}, [build_copy("/a", "/b/c"), {"op": "add", "path": "/b/c/-", "value": 2}]
    )
    assert done == {"a": [1], "b": {"c": [1, 2]}}


def test_a_json_patch_does_the_same_each_time_that_it_is_applied() -> None:
    operations = [
        {"op": "add", "path": "/a", "value": []},
        {"op": "add", "path": "/a/-", "value": 1},
    ]
    patch = patches.parse(patches.JSON_PATCH, json.dumps(operations).encode(), PODS)
    assert [patch({}), patch({})] == [{"a": [1]}, {"a": [1]}]


@pytest.mark.parametrize(
    ("target", "operations"),
    [
        ({"a": {"b": "x"}}, [build_copy("/a", f"/a/c{n}") for n in range(40)]),
        ({"a": "x" * MEGABYTE}, [build_copy("/a", f"/b{n}") for n in range(9_000)]),
        ({"a": "ü" * MEGABYTE}, [build_copy("/a", f"/b{n}") for n in range(9_000)]),
        ({"a": 1}, [build_copy("", f"/a{n}") for n in range(40)]),
    ],
    ids=["doubled", "long", "long beyond ASCII", "the whole"],
)
def test_copies_are_bounded_in_what_they_add(
    target: dict[str, Any], operations: list[dict[str, str]]
) -> None:
    before = time.process_time()
    with pytest.raises(patches.Unprocessable, match="the accumulated size increase of copy is"):
        apply_patch(target, operations)
    assert time.process_time() - before < 5


def test_copies_into_each_other_are_bounded_in_depth() -> None:
    with pytest.raises(errors.BadRequest):
        apply_patch({"a": 1}, [build_copy("", "/a")] * 9_000)


def test_copies_of_nothing_are_told_as_before() -> None:
    for source in ("/nothing", "no pointer", None, 3):
        with pytest.raises((patches.Unprocessable, errors.BadRequest)):
            apply_patch({"a": 1}, [{"op": "copy", "from": source, "path": "/b"}])


def test_a_json_patch_has_at_most_ten_thousand_operations() -> None:
    with pytest.raises(errors.RequestTooLarge, match="got 10001"):
        apply_patch({}, [{"op": "add", "path": "/a", "value": 1}] * 10_001)


@pytest.mark.parametrize("operation", [3, "x", None, [], {"op": "copy"}, {"op": 3}, {}])
def test_what_is_no_operation_is_refused(operation: Any) -> None:
    with pytest.raises((patches.Unprocessable, errors.BadRequest)):
        apply_patch({"a": 1}, [operation])


@pytest.mark.parametrize("kind", [patches.JSON_PATCH, patches.MERGE_PATCH, patches.STRATEGIC])
@pytest.mark.parametrize("depth", [200, 500, 900, 980, 50_000])
def test_a_deep_patch_is_refused_and_recurses_nowhere(kind: str, depth: int) -> None:
    text = '{"a":' * depth + "1" + "}" * depth
    if kind == patches.JSON_PATCH:
        text = f'[{{"op":"add","path":"/x","value":{text}}}]'
    with pytest.raises(errors.BadRequest, match="nested deeper"):
        patches.parse(kind, text.encode(), PODS)({"x": 1})


def test_the_kind_in_a_strategic_patch_says_nothing() -> None:
    target = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    patch = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"labels": {"a": "b"}}}
    done = apply_patch(target, patch, patches.STRATEGIC)
    assert done == target | {"metadata": {"name": "a", "labels": {"a": "b"}}}


POD = codec.decode(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "x"}], "strange": 1},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        "unknown": {"x": [1]},
    }
)


@pytest.mark.parametrize("kind", [patches.MERGE_PATCH, patches.STRATEGIC])
@pytest.mark.parametrize(
    "patch",
    [
        {},
        {"status": {"phase": "Failed", "conditions": [{"type": "New", "status": "True"}]}},
        {"status": None},
        {"metadata": {"labels": {"c": "d"}}, "spec": {"nodeName": "n"}},
        {"kind": "Pod", "apiVersion": "v1", "status": {"strange": {"a": 1}}},
        {"unknown": {"y": 2}},
        {"another": 1, "status": {"phase": "Failed"}},
        {"api_version": "x"},
        {"$retainKeys": ["metadata"], "metadata": {"labels": {"c": "d"}}},
        {"$patch": "merge", "status": {"phase": "Failed"}},
    ],
)
def test_a_patch_of_parts_makes_the_object_that_a_patch_of_the_whole_makes(
    kind: str, patch: dict[str, Any]
) -> None:
    body = json.dumps(patch).encode()
    change = patches.parse(kind, body, PODS)
    in_parts = patches.on_objects(change, PODS, body)(POD)
    as_a_whole = patches.on_objects(patches.ObjectPatch(change.run), PODS, body)(POD)
    assert in_parts == as_a_whole
    assert codec.encode(in_parts) == codec.encode(as_a_whole)


@pytest.mark.parametrize("resource", scheme.resources(), ids=lambda resource: resource.name)
def test_every_kind_can_be_decoded_from_parts(resource: scheme.Resource) -> None:
    empty = {"apiVersion": resource.api_version, "kind": resource.kind}
    assert codec.decode(empty, resource).kind == resource.kind


def test_what_a_patch_does_not_name_is_shared_with_the_old_object() -> None:
    body = b'{"status":{"phase":"Failed"}}'
    new = patches.on_objects(patches.parse(patches.MERGE_PATCH, body, PODS), PODS, body)(POD)
    assert codec.list_unshared(POD, new) == {"status"}
