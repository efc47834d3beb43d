"""Patches as functions on JSON."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from kcm import errors
from kcm.api import scheme
from kcm.apiserver.objects import patches

PODS = scheme.by_name("pods")
MEGABYTE = 1_000_000


def apply_patch(
    target: dict[str, Any], patch: Any, kind: str = patches.JSON_PATCH
) -> dict[str, Any]:
    return patches.parse(kind, json.dumps(patch).encode(), PODS)(target)


def build_copy(source: str, to: str) -> dict[str, str]:
    return {"op": "copy", "from": source, "path": to}


def test_a_json_patch_leaves_its_target_as_it_was() -> None:
    target = {"a": [1], "b": {}}
    done = apply_patch(
        target, [build_copy("/a", "/b/c"), {"op": "add", "path": "/b/c/-", "value": 2}]
    )
    assert (target, done) == ({"a": [1], "b": {}}, {"a": [1], "b": {"c": [1, 2]}})


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
