from __future__ import annotations

import time
from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.apiserver.http.bodies.strategic import apply


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": list(containers), **spec}}


def patch_spec(target: dict[str, Any], **spec: Any) -> dict[str, Any]:
    spec = {name.replace("__", "/").replace("S_", "$"): value for name, value in spec.items()}
    patched_spec: dict[str, Any] = apply(target, {"spec": spec}, Pod)["spec"]
    return patched_spec


A, B, C = ({"name": name, "image": f"{name}:1"} for name in "abc")


def test_an_item_is_merged_by_its_key_and_a_new_one_is_appended() -> None:
    spec = patch_spec(pod(A, B), containers=[{"name": "b", "image": "b:2"}, C])
    assert spec["containers"] == [A, {"name": "b", "image": "b:2"}, C]


def test_nested_lists_merge_by_their_own_keys() -> None:
    first = A | {"env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]}
    spec = patch_spec(pod(first), containers=[{"name": "a", "env": [{"name": "Y", "value": "3"}]}])
    assert spec["containers"][0]["env"] == [
        {"name": "X", "value": "1"},
        {"name": "Y", "value": "3"},
    ]


def test_an_item_is_deleted_by_a_directive() -> None:
    spec = patch_spec(pod(A, B), containers=[{"name": "a", "$patch": "delete"}])
    assert spec["containers"] == [B]


def test_a_list_is_replaced_by_a_directive() -> None:
    spec = patch_spec(pod(A, B), containers=[C, {"$patch": "replace"}])
    assert spec["containers"] == [C]


def test_a_struct_is_replaced_or_emptied_by_a_directive() -> None:
    target = pod(A, securityContext={"runAsUser": 1, "fsGroup": 2})
    spec = patch_spec(target, securityContext={"$patch": "replace", "runAsUser": 3})
    assert spec["securityContext"] == {"runAsUser": 3}
    assert patch_spec(target, securityContext={"$patch": "delete"})["securityContext"] == {}


def test_retain_keys_drops_the_alternatives() -> None:
    target = pod(A, volumes=[{"name": "v", "emptyDir": {}}])
    volume = {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}
    assert patch_spec(target, volumes=[volume])["volumes"] == [
        {"name": "v", "hostPath": {"path": "/x"}}
    ]


def test_the_order_that_the_patch_sets_wins_and_others_keep_their_place() -> None:
    order = {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}
    target = pod(A, B)
    updated = apply(target, {"spec": order | {"containers": [C]}}, Pod)["spec"]["containers"]
    assert [item["name"] for item in updated] == ["c", "a", "b"]
    only = {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}
    updated = apply(target, {"spec": only}, Pod)["spec"]["containers"]
    assert [item["name"] for item in updated] == ["b", "a"]


def test_plain_values_merge_as_a_set_and_go_by_name() -> None:
    target = {"metadata": {"finalizers": ["a", "b"]}}
    added = apply(target, {"metadata": {"finalizers": ["c", "a"]}}, Pod)
    assert added["metadata"]["finalizers"] == ["c", "a", "b"]  # as upstream orders them
    removed = apply(target, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}, Pod)
    assert removed["metadata"]["finalizers"] == ["b"]


def test_what_only_the_patch_has_comes_first() -> None:
    containers = patch_spec(pod(A), containers=[B])["containers"]
    assert [container["name"] for container in containers] == [B["name"], A["name"]]


def test_an_order_that_contradicts_the_items_is_refused() -> None:
    patch = {"finalizers": ["c", "a"], "$setElementOrder/finalizers": ["a", "c"]}
    with pytest.raises(errors.BadRequest, match="doesn't match \\$setElementOrder"):
        apply({"metadata": {"finalizers": ["b"]}}, {"metadata": patch}, Pod)


def test_lists_without_a_key_are_replaced() -> None:
    target = pod(A, tolerations=[{"key": "x"}])
    assert patch_spec(target, tolerations=[{"key": "y"}])["tolerations"] == [{"key": "y"}]


def test_null_removes_and_nothing_of_the_arguments_changes() -> None:
    target, patch = pod(A, nodeName="n"), {"spec": {"nodeName": None, "containers": [B]}}
    before = (repr(target), repr(patch))
    assert "nodeName" not in apply(target, patch, Pod)["spec"]
    assert (repr(target), repr(patch)) == before


@pytest.mark.parametrize(
    "patch",
    [
        {"$patch": "explode"},
        {"$patch": {}},
        {"$patch": []},
        {"spec": {"$patch": {"a": 1}}},
        {"spec": {"containers": [{"name": "a", "$patch": {}}]}},
        {"spec": {"containers": [B] * 200}},
        {"spec": {"containers": [{"image": "no name"}]}},
        {"spec": {"containers": ["text"]}},
        {"spec": {"$setElementOrder/containers": "x", "containers": [A]}},
        {"spec": {"volumes": [{"name": "v", "$retainKeys": [], "emptyDir": {}}]}},
        {"spec": {"$retainKeys": [{"not": "a name"}], "nodeName": "n"}},
    ],
)
def test_a_patch_that_makes_no_sense_is_refused(patch: dict[str, Any]) -> None:
    with pytest.raises(errors.BadRequest):
        apply(pod(A), patch, Pod)


def test_no_directive_ends_up_in_what_is_new() -> None:
    new = C | {"env": [{"name": "X", "$patch": "delete"}, {"name": "Y", "value": None}]}
    containers = patch_spec(pod(), containers=[new])["containers"]
    assert containers == [C | {"env": [{"name": "Y"}]}]


MANY = 16_000


def test_long_lists_are_merged_and_ordered_in_linear_time() -> None:
    names = [{"name": f"V{n}"} for n in range(MANY)]
    target = pod(A | {"env": [entry | {"value": "old"} for entry in names]})
    patch = {
        "name": A["name"],
        "$setElementOrder/env": names[::-1],
        "env": [entry | {"value": "new"} for entry in names[: MANY // 2][::-1]]
        + [{"name": f"V{n}", "$patch": "delete"} for n in range(MANY - 10, MANY)],
    }
    before = time.process_time()
    env = patch_spec(target, containers=[patch])["containers"][0]["env"]
    assert [env[0], env[-1]] == [
        {"name": f"V{MANY - 11}", "value": "old"},
        {"name": "V0", "value": "new"},
    ]
    assert time.process_time() - before < 10


def test_long_sets_are_merged_in_linear_time() -> None:
    names = [f"example.com/{n}" for n in range(MANY)]
    target = {"metadata": {"finalizers": names}}
    patch = {
        "finalizers": names[::-1],
        "$setElementOrder/finalizers": names[::-1],
        "$deleteFromPrimitiveList/finalizers": names[2:],
    }
    before = time.process_time()
    assert apply(target, {"metadata": patch}, Pod)["metadata"]["finalizers"] == names[1::-1]
    assert time.process_time() - before < 10
