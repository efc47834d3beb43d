"""Tests which pods are deleted first, by each criterion of upstream's ActivePodsWithRanks."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from kcm.api.core_v1 import Container, ContainerStatus, Pod
from kcm.controllers.replicaset.deletion_order import (
    AGE_RATIO,
    DELETION_COST,
    age_ratios,
    deletion_cost,
    first_to_delete,
)
from kcm.testing.builders import pod
from kcm.testing.views import NOW

READY: dict[str, Any] = {"phase": "Running", "ready": True, "node": "n1"}


def order(*pods: Pod, related: tuple[Pod, ...] = ()) -> list[str]:
    """Returns the names of the pods to delete, all but one; asserts that the input's order does not
    matter.
    """
    for seed in range(5):
        shuffled = list(pods)
        random.Random(seed).shuffle(shuffled)
        victims = first_to_delete(shuffled, len(pods) - 1, related, NOW)
        names = [p.name for p in victims]
        assert names == [p.name for p in pods][:-1], seed
    return names


def ago(seconds: float) -> dict[str, Any]:
    return {"ready_since": NOW - timedelta(seconds=seconds)}


def build_creation_fields(seconds: float, **more: Any) -> dict[str, Any]:
    return {"metadata": {"creation_timestamp": NOW - timedelta(seconds=seconds), **more}}


def build_restart_fields(count: int) -> dict[str, Any]:
    return {"status": {"container_statuses": [ContainerStatus(name="c", restart_count=count)]}}


def cost(text: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {DELETION_COST: text}}}


def test_unassigned_pods_go_before_assigned_ones() -> None:
    order(pod("a", phase="Running"), pod("b", phase="Pending", node="n1"))


def test_pending_goes_before_unknown_and_unknown_before_running() -> None:
    phases = ("Pending", "Unknown", "Running")
    order(*(pod(phase.lower(), phase=phase, node="n1") for phase in phases))


def test_not_ready_goes_before_ready() -> None:
    order(pod("a", **(READY | {"ready": False})), pod("b", **READY))


def test_the_cheaper_deletion_goes_first() -> None:
    order(
        pod("cheap", **READY, **cost("-5")),
        pod("default", **READY),
        pod("dear", **READY, **cost("7")),
    )


def test_readiness_counts_more_than_cost() -> None:
    order(pod("a", **(READY | {"ready": False}), **cost("100")), pod("b", **READY))


def test_the_fuller_node_gives_first() -> None:
    on: dict[str, Any] = {"phase": "Running", "ready": True}
    pods = [pod("a", node="full", **on), pod("b", node="half", **on), pod("c", node="empty", **on)]
    related = [pod(f"r{n}", node="full", **on) for n in range(2)] + [pod("h", node="half", **on)]
    dead = [pod(f"d{n}", node="empty", phase="Failed") for n in range(5)]
    order(*pods, related=(*related, *dead))


def test_the_one_ready_for_the_shorter_time_goes_first() -> None:
    order(pod("young", **READY, **ago(10)), pod("old", **READY, **ago(1000)))


def test_no_ready_time_at_all_counts_as_youngest() -> None:
    order(pod("never", **(READY | {"ready_since": None})), pod("old", **READY, **ago(1000)))


def test_ready_times_of_one_magnitude_are_decided_by_uid() -> None:
    first = pod("first", **READY, **ago(700), metadata={"uid": "a"})
    second = pod("second", **READY, **ago(600), metadata={"uid": "b"})
    order(first, second)


def test_a_ready_time_to_come_is_of_the_smallest_magnitude() -> None:
    order(pod("future", **READY, **ago(-60)), pod("now", **READY, **ago(1)))


def test_more_restarts_go_before_fewer() -> None:
    order(
        pod("a", **READY, **build_restart_fields(9)), pod("b", **READY, **build_restart_fields(1))
    )


def test_with_equal_restarts_those_of_sidecars_count() -> None:
    sidecar = Container(name="s", image="s", restart_policy="Always")
    plain = Container(name="i", image="i")

    def with_init(name: str, init: Container, count: int) -> Pod:
        statuses = [ContainerStatus(name=init.name, restart_count=count)]
        return pod(
            name, **READY, status={"init_container_statuses": statuses}, init_containers=[init]
        )

    order(with_init("a", sidecar, 3), with_init("b", sidecar, 2), with_init("c", plain, 9))


def test_the_younger_of_otherwise_equal_ones_goes_first() -> None:
    order(
        pod("young", **READY, **build_creation_fields(10)),
        pod("old", **READY, **build_creation_fields(10_000)),
    )


def test_ages_of_one_magnitude_are_decided_by_uid() -> None:
    order(
        pod("first", **READY, **build_creation_fields(700, uid="a")),
        pod("second", **READY, **build_creation_fields(600, uid="b")),
    )


def test_when_all_go_none_is_ranked() -> None:
    pods = [pod("b", **READY), pod("a", phase="Pending")]
    assert first_to_delete(pods, 2, [], NOW) == pods


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("7", 7),
        ("-7", -7),
        ("+7", 7),
        ("0", 0),
        ("07", 0),
        ("-0", 0),
        ("1.5", 0),
        ("many", 0),
        ("2147483647", 2147483647),
        ("2147483648", 0),
        ("-2147483648", -2147483648),
        ("\u0667", 0),
    ],
)
def test_a_deletion_cost_is_a_32_bit_number_without_leading_zeros(text: str, expected: int) -> None:
    assert deletion_cost(pod(metadata={"annotations": {DELETION_COST: text}})) == expected


def test_the_age_of_the_chosen_is_counted_against_the_youngest() -> None:
    pods = [
        pod("young", **READY, **build_creation_fields(10)),
        pod("old", **READY, **build_creation_fields(15)),
        pod("new", phase="Pending", **build_creation_fields(1)),
    ]
    assert age_ratios(pods, pods[1:], NOW) == AGE_RATIO.observe(1.5)
    assert age_ratios(pods[2:], pods[2:], NOW) == {}
