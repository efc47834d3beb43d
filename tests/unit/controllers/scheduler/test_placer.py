"""Which node is chosen, and how many nodes are tried."""

from __future__ import annotations

import gc
import random
import weakref

import pytest

from kcm.controllers.scheduler import SchedulerOptions
from kcm.controllers.scheduler.placer import Placer, feasible_nodes_to_find
from kcm.controllers.scheduler.snapshot import Snapshot
from kcm.controllers.scheduler.template import signature
from kcm.testing.builders import START
from tests.unit.controllers.scheduler.world import ZONE, Scene, node, pod


@pytest.mark.parametrize(
    ("nodes", "percentage", "wanted"),
    [
        (10, 0, 10),
        (99, 0, 99),
        (100, 0, 100),
        (1000, 0, 420),
        (5000, 0, 500),
        (6000, 0, 300),
        (10000, 0, 500),
        (1000, 40, 400),
        (1000, 5, 100),
        (1000, 100, 1000),
    ],
)
def test_the_larger_the_cluster_the_smaller_the_part_that_is_searched(
    nodes: int, percentage: int, wanted: int
) -> None:
    assert feasible_nodes_to_find(nodes, percentage) == wanted


def test_the_emptiest_node_is_chosen() -> None:
    scene = Scene(node("n1"), node("n2"), pod("a", node="n1", cpu="3"))
    assert scene.place(pod("p", cpu="1")) == "n2"


def test_ties_are_broken_by_the_generator() -> None:
    nodes = [node(f"n{n}") for n in range(10)]
    chosen = set()
    for seed in range(20):
        scene = Scene(*nodes)
        scene.placer = Placer(
            scene.snapshot, scene.templates, SchedulerOptions(), random.Random(seed)
        )
        chosen.add(scene.place(pod("p", cpu="1")))
    assert len(chosen) > 3


def test_the_next_search_begins_where_the_last_one_ended() -> None:
    options = SchedulerOptions(percentage_of_nodes_to_score=5)
    scene = Scene(*(node(f"n{n}", pods=1) for n in range(300)), options=options)
    placed = {scene.place(pod(f"p{n}", cpu="1")) for n in range(300)}
    assert len(placed) == 300
    assert scene.place(pod("p300", cpu="1")) == ""


def test_nodes_are_tried_zone_by_zone_in_turn() -> None:
    names = {"a": "123", "b": "45", "c": "6"}
    snapshot = Snapshot()
    nodes = [node(f"n{digit}", zone=zone) for zone, digits in names.items() for digit in digits]
    snapshot.update(1, nodes, [])
    assert [info.labels[ZONE] for info in snapshot.nodes] == ["a", "b", "c", "a", "b", "a"]


def test_without_nodes_nothing_fits() -> None:
    assert Scene().why(pod()) == "0/0 nodes are available:"


def test_every_reason_is_counted() -> None:
    scene = Scene(node("n1"), node("n2"), node("n3", unschedulable=True))
    assert scene.why(pod(cpu="8")) == (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."
    )


def test_a_template_is_asked_once_while_nothing_changes() -> None:
    scene = Scene(node("n1"))
    first, second = scene.info(pod("a", cpu="8")), scene.info(pod("b", cpu="8"))
    assert scene.placer.place(first) is scene.placer.place(second)
    assert scene.templates.of(first) is scene.templates.of(second)


def test_pods_that_differ_in_what_filters_read_are_of_different_templates() -> None:
    plain = pod("a")
    others = [
        pod("b", cpu="1"),
        pod("c", labels={"a": "b"}),
        pod("d", node_selector={"a": "b"}),
        pod("e", priority=5),
        pod("f", affinity={"nodeAffinity": {}}),
        pod("g", topology_spread_constraints=[{}]),
        pod("h", namespace="other"),
    ]
    scene = Scene()
    signatures = {signature(scene.info(p)) for p in (plain, *others)}
    assert len(signatures) == 8
    assert signature(scene.info(pod("z"))) in signatures


class TestNominatedPods:
    def test_their_place_is_kept_from_less_and_equally_important_ones(self) -> None:
        nominated = pod("vip", cpu="4", priority=10, status={"nominated_node_name": "n1"})
        scene = Scene(node("n1"), nominated)
        assert scene.place(pod("low", cpu="1", priority=1)) == ""
        assert scene.place(pod("same", cpu="1", priority=10)) == ""
        assert scene.place(pod("high", cpu="1", priority=11)) == "n1"

    def test_they_take_it_themselves_even_if_another_is_emptier(self) -> None:
        nominated = pod("vip", cpu="1", priority=10, status={"nominated_node_name": "n1"})
        scene = Scene(node("n1"), node("n2"), pod("a", node="n1", cpu="2"), nominated)
        assert scene.place(nominated) == "n1"

    def test_where_it_no_longer_fits_they_go_elsewhere(self) -> None:
        nominated = pod("vip", cpu="2", priority=10, status={"nominated_node_name": "n1"})
        scene = Scene(node("n1"), node("n2"), pod("a", node="n1", cpu="3"), nominated)
        assert scene.place(nominated) == "n2"


class TestSnapshot:
    def test_follows_what_comes_changes_and_goes(self) -> None:
        snapshot = Snapshot()
        a, b = pod("a", node="n1", cpu="1"), pod("b", node="n1", cpu="1")
        snapshot.update(1, [node("n1")], [a, b])
        assert snapshot.by_name["n1"].used_cpu == 2000
        snapshot.update(2, [node("n1", cpu="8")], [a])
        assert snapshot.by_name["n1"].used_cpu == 1000
        assert snapshot.nodes[0].cpu == 8000
        snapshot.update(3, [], [a])
        assert snapshot.nodes == []
        assert snapshot.by_name["n1"].used_cpu == 1000
        snapshot.update(4, [node("n1")], [a])
        assert snapshot.nodes[0].used_cpu == 1000
        snapshot.update(5, [], [])
        assert not snapshot.by_name

    def test_what_was_assumed_and_refused_is_taken_back(self) -> None:
        scene = Scene(node("n1"))
        waiting = pod("p", cpu="1")
        nodes = [scene.snapshot.nodes[0].node]
        assert nodes[0] is not None
        scene.snapshot.update(2, [nodes[0]], [waiting])
        assert scene.place(waiting) == "n1"
        assert scene.snapshot.nodes[0].used_cpu == 1000
        scene.snapshot.update(3, [nodes[0]], [waiting])
        assert scene.snapshot.nodes[0].used_cpu == 0
        assert list(scene.snapshot.pending) == [waiting.uid]

    def test_an_ended_pod_takes_nothing(self) -> None:
        snapshot = Snapshot()
        snapshot.update(1, [node("n1")], [pod("a", node="n1", cpu="1")])
        snapshot.update(2, [node("n1")], [pod("a", node="n1", cpu="1", phase="Failed")])
        assert snapshot.by_name["n1"].used_cpu == 0
        assert not snapshot.pods

    def test_of_pods_on_nodes_it_keeps_no_old_states(self) -> None:
        snapshot = Snapshot()
        bound, waiting = pod("a", node="n1", cpu="1"), pod("b", cpu="1")
        seen = weakref.ref(bound)
        snapshot.update(1, [node("n1")], [bound, waiting])
        del bound
        gc.collect()
        assert seen() is None
        assert snapshot.pending[waiting.uid].source is waiting

    def test_follows_what_does_not_count_for_placing(self) -> None:
        snapshot = Snapshot()
        snapshot.update(1, [node("n1")], [pod("a", node="n1")])
        (known,) = snapshot.pods.values()
        assert known.started is None
        snapshot.update(2, [node("n1")], [pod("a", node="n1", status={"start_time": START})])
        assert list(snapshot.pods.values()) == [known]
        assert known.started == START
