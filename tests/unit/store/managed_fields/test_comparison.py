from __future__ import annotations

import time
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm.api.core_v1 import Pod
from kcm.store.managed_fields.comparison import compare
from kcm.store.managed_fields.fieldsets import Paths, Values, add_holders, paths

Body = Mapping[str, Any]

ENVIRONMENT = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("AB")},
        optional={
            "value": st.sampled_from("xy"),
            "valueFrom": st.just({"fieldRef": {"fieldPath": "p"}}),
        },
    ),
    max_size=3,
)
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("cd")},
        optional={
            "env": ENVIRONMENT,
            "resources": st.sampled_from([{}, {"limits": {"cpu": "1"}}]),
            "args": st.lists(st.sampled_from("ab"), max_size=2),
        },
    ),
    max_size=3,
)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.just("Pod"),
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "uid": st.sampled_from("uv"),
                "labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy")),
                "finalizers": st.lists(st.sampled_from("fg")),
            },
        ),
        "spec": st.fixed_dictionaries({}, optional={"containers": CONTAINERS}),
        "status": st.fixed_dictionaries({}, optional={"phase": st.sampled_from("RP")}),
        "unknown": st.sampled_from(["x", [], [1], {}, {"a": None}, {"a": {"b": 1}}]),
    },
)


def list_changes(before: Body, after: Body) -> Paths:
    """Returns the changed paths by their definition: it looks every path up in both objects."""
    present = paths(after, Pod, nodes=True)
    holders = add_holders(frozenset(path[:-1] for path in present if len(path) > 1))
    old, new = Values(before, Pod), Values(after, Pod)
    return frozenset(
        path
        for path in present
        if (old.at(path) is None if path in holders else old.at(path) != new.at(path))
    )


def repeats_names(body: Body) -> bool:
    """Reports whether containers, or variables of one container, have the same name twice."""
    containers = body.get("spec", {}).get("containers", [])
    lists = [containers, *(container.get("env", []) for container in containers)]
    return any(len({item["name"] for item in items}) < len(items) for items in lists)


@given(BODIES, BODIES)
def test_a_comparison_finds_what_looking_up_every_path_finds(before: Body, after: Body) -> None:
    difference = compare(before, after, Pod)
    changes = list_changes(before, after)
    if repeats_names(before) or repeats_names(after):
        # The definition takes the value of the last item of a name. It says of an equal list that
        # a field changed which only an earlier item has.
        assert difference.changed <= changes
    else:
        assert difference.changed == changes
    assert difference.gone == paths(before, Pod, nodes=True) - paths(after, Pod, nodes=True)


@pytest.mark.parametrize(
    "env",
    [
        [],
        [{"name": "A", "value": "y"}],
        [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "p"}}}, {"name": "A"}],
    ],
    ids=["none", "one", "a name twice"],
)
def test_what_is_alike_on_both_sides_is_no_difference(env: list[dict[str, Any]]) -> None:
    body = {"spec": {"containers": [{"name": "c", "image": "x", "env": env}]}}
    difference = compare(body, deepcopy(body), Pod)
    assert (difference.changed, difference.gone) == (frozenset(), frozenset())


MANY = 20_000


def test_large_lists_with_repeated_keys_are_compared_in_linear_time() -> None:
    def large(value: str) -> dict[str, Any]:
        env = [{"name": f"V{n // 2}", "value": f"{value}{n}"} for n in range(MANY)]
        return {"spec": {"containers": [{"name": "c", "env": env}]}}

    before = time.process_time()
    assert len(compare(large("a"), large("b"), Pod).changed) == MANY // 2
    assert time.process_time() - before < 10
