"""Tests the TTL annotation of nodes, in seconds, by the size of the cluster."""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import Node
from kcm.controllers.ttl import ANNOTATION, NEW_NODES, TTLController, seconds_for
from kcm.sdk import Change
from kcm.testing.builders import node
from kcm.testing.views import FakeView
from kcm.testing.world import World

KEPT = {"kept": "yes"}


def nodes(size: int, said: str | None = None) -> list[Node]:
    metadata = {"annotations": KEPT if said is None else {**KEPT, ANNOTATION: said}}
    one = node("n", metadata=metadata)
    return [one.with_metadata(name=f"n{i}", uid=f"u{i}") for i in range(size)]


@pytest.mark.parametrize(
    ("size", "said", "seconds"),
    [
        (0, None, 0),
        (1, None, 0),
        (100, None, 0),
        (101, None, 15),
        (101, "0", 15),
        (95, "15", 15),  # within the overlap a step is kept
        (90, "15", 15),
        (89, "15", 0),
        (500, "15", 15),
        (501, "15", 30),
        (449, "30", 15),
        (1001, "30", 60),
        (2001, "60", 300),
        (2001, None, 300),
        (1800, "300", 300),
        (1799, "300", 60),
        (3, "300", 0),
        (3, "many", 0),
    ],
)
def test_the_size_of_the_cluster_decides(size: int, said: str | None, seconds: int) -> None:
    assert seconds_for(nodes(size, said)) == seconds


def test_every_node_is_told_and_once_is_enough() -> None:
    controller = TTLController()
    world = World(*nodes(3), *nodes(4, "0")[3:])
    plan = controller.annotate(FakeView(*world.objects.values(), controller=controller), {})
    assert len(plan.writes) == 3
    world.carry_out(plan)
    objects = world.of(Node)
    assert {obj.annotations[ANNOTATION] for obj in objects} == {"0"}
    assert {obj.annotations["kept"] for obj in objects} == {"yes"}
    assert controller.annotate(FakeView(*objects, controller=controller), {}).writes == []


def test_the_pass_comes_as_often_as_heartbeats() -> None:
    assert [(tick.name, tick.every) for tick in TTLController().ticks()] == [("ttl", 10.0)]


def test_new_nodes_are_told_at_once() -> None:
    world, controller = World(*nodes(3), *nodes(4, "0")[3:]), TTLController()
    view = FakeView(*world.objects.values(), controller=controller)
    world.carry_out(controller.reconcile(NEW_NODES, view))
    assert {obj.annotations[ANNOTATION] for obj in world.of(Node)} == {"0"}


@pytest.mark.parametrize(("said", "keys"), [(None, [NEW_NODES]), ("15", [])])
def test_a_change_of_a_node_without_the_annotation_is_a_new_node(
    said: str | None, keys: list[str]
) -> None:
    (watch,) = TTLController().watches()
    (one,) = nodes(1, said)
    assert list(watch.keys(Change(None, one), FakeView())) == keys
