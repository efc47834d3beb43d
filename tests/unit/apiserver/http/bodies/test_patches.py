"""Patches as functions on JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kcm import errors
from kcm.api import codec, scheme
from kcm.api.core_v1 import Pod
from kcm.api.scheme import BUILT_IN
from kcm.apiserver.http.bodies import patches
from kcm.apiserver.http.bodies.json_patch import Unprocessable

PODS = Pod.resource
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
    ("target", "operations", "limit"),
    [
        ({"a": {"b": "x"}}, [build_copy("/a", f"/a/c{n}") for n in range(40)], "copied values"),
        ({"a": ["x"]}, [build_copy("/a", "/a/-")] * 40, "copied values"),
        ({"a": "x" * MEGABYTE}, [build_copy("/a", f"/b{n}") for n in range(9_000)], "copy"),
        ({"a": "ü" * MEGABYTE}, [build_copy("/a", f"/b{n}") for n in range(9_000)], "copy"),
        ({"a": {"k" * MEGABYTE: 1}}, [build_copy("/a", f"/b{n}") for n in range(9_000)], "copy"),
    ],
    ids=["doubled", "doubled list", "long", "long beyond ASCII", "long names"],
)
def test_copies_are_bounded_in_what_they_add(
    target: dict[str, Any], operations: list[dict[str, str]], limit: str
) -> None:
    with pytest.raises(Unprocessable, match=f"the accumulated .* of {limit} is"):
        apply_patch(target, operations)


def test_inserts_and_removals_are_bounded_in_what_they_move() -> None:
    many = ["x"] * 90_000
    for operation in (
        {"op": "add", "path": "/a/0", "value": "y"},
        {"op": "move", "from": "/a/0", "path": "/a/0"},
    ):
        with pytest.raises(Unprocessable, match="Unable to move items of lists"):
            apply_patch({"a": list(many)}, [operation] * 9_900)
    appended = apply_patch({"a": list(many)}, [{"op": "add", "path": "/a/-", "value": "y"}] * 9_900)
    assert len(appended["a"]) == 99_900


def test_copies_into_each_other_are_bounded_in_depth() -> None:
    with pytest.raises(Unprocessable):
        apply_patch({"a": {}}, [build_copy("/a", "/a/a")] * 9_000)


def test_copies_of_nothing_are_refused() -> None:
    for source in ("", "no pointer", "/nothing/at/all", None, 3):
        with pytest.raises(Unprocessable):
            apply_patch({"a": 1}, [build_copy(source, "/b")])  # type: ignore[arg-type] # on purpose


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ({"op": "add", "path": "/l/-1", "value": 9}, {"l": [1, 2, 9], "m": {}}),
        ({"op": "add", "path": "/l/3", "value": 9}, "Unable to access invalid index: 3"),
        ({"op": "add", "path": "/l/x", "value": 9}, "not a proper array index: 'x'"),
        ({"op": "add", "path": "/n/x", "value": 9}, 'doc is missing path: "/n/x"'),
        ({"op": "add", "path": "", "value": {}}, "doc is missing path"),
        ({"op": "remove", "path": "/l/0"}, {"l": [2], "m": {}}),
        ({"op": "remove", "path": "/m/x"}, "Unable to remove nonexistent key: x"),
        ({"op": "replace", "path": "/l/-1", "value": 9}, {"l": [1, 9], "m": {}}),
        ({"op": "replace", "path": "/l/-", "value": 9}, "doc is missing key: /l/-"),
        ({"op": "replace", "path": "/m/x", "value": 9}, {"l": [1, 2], "m": {"x": 9}}),
        ({"op": "replace", "path": "", "value": {"a": 1}}, {"a": 1}),
        ({"op": "replace", "path": "", "value": 1}, "value must be object or array"),
        ({"op": "move", "from": "/l/0", "path": "/m/~0~1"}, {"l": [2], "m": {"~/": 1}}),
        ({"op": "move", "from": "/m/x", "path": "/l/0"}, "Unable to remove nonexistent key: x"),
        ({"op": "test", "path": "/l", "value": [1, 2]}, {"l": [1, 2], "m": {}}),
        ({"op": "test", "path": "/l", "value": [True, 2]}, "testing value /l failed"),
        ({"op": "test", "path": "/m/x"}, {"l": [1, 2], "m": {}}),
        ({"op": "append", "path": "/m/x", "value": "y"}, "Unexpected kind: append"),
    ],
    ids=str,
)
def test_an_operation_does_what_upstreams_does(operation: dict[str, Any], result: Any) -> None:
    """Source: vendor/gopkg.in/evanphx/json-patch.v4/patch.go."""
    target = {"l": [1, 2], "m": {}}
    if isinstance(result, dict):
        assert apply_patch(target, [operation]) == result
    else:
        with pytest.raises(Unprocessable, match=result):
            apply_patch(target, [operation])


def test_a_failed_operation_is_told_without_the_object() -> None:
    for operation in (
        {"op": "test", "path": "/a", "value": "y" * MEGABYTE},
        {"op": "test", "path": "/a/b/c", "value": 1},
        {"op": "remove", "path": "/" + "n" * MEGABYTE},
        {"op": "k" * MEGABYTE, "path": "/a"},
    ):
        with pytest.raises(Unprocessable) as raised:
            apply_patch({"a": "x" * MEGABYTE}, [operation])
        assert len(raised.value.message) < 2_000


def test_a_json_patch_has_at_most_ten_thousand_operations() -> None:
    with pytest.raises(errors.RequestTooLarge, match="got 10001"):
        apply_patch({}, [{"op": "add", "path": "/a", "value": 1}] * 10_001)


@pytest.mark.parametrize("operation", [3, "x", None, [], {"op": "copy"}, {"op": 3}, {}])
def test_what_is_no_operation_is_refused(operation: Any) -> None:
    with pytest.raises((Unprocessable, errors.BadRequest)):
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
    },
    BUILT_IN,
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


@pytest.mark.parametrize("resource", BUILT_IN.resources(), ids=lambda resource: resource.name)
def test_every_kind_can_be_decoded_from_parts(resource: scheme.Resource) -> None:
    empty = {"apiVersion": resource.api_version, "kind": resource.kind}
    assert codec.decode(empty, resource).kind == resource.kind


def test_what_a_patch_does_not_name_is_shared_with_the_old_object() -> None:
    body = b'{"status":{"phase":"Failed"}}'
    new = patches.on_objects(patches.parse(patches.MERGE_PATCH, body, PODS), PODS, body)(POD)
    assert codec.list_unshared(POD, new) == {"status"}
