"""Which pods are tried, in which order, and what wakes unschedulable pods."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from kcm.api.core_v1 import Node, Pod, PodSchedulingGate
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.scheduler import SchedulerController
from kcm.controllers.scheduler.metrics import PENDING
from kcm.controllers.scheduler.queue import LastAttempt
from kcm.testing.builders import START, namespace
from kcm.testing.views import NOW
from tests.unit.controllers.scheduler.world import ZONE, bindings, controller, node, pod, run, taint


def test_what_is_remembered_can_be_read_again() -> None:
    parked = LastAttempt(3, 1700000000.5, 17, 99, ("NodeAffinity", "NodeResourcesFit"))
    assert LastAttempt.parse(str(parked)) == parked
    assert LastAttempt.parse(str(LastAttempt(1, 0.0, 0, 0, ()))) == LastAttempt(1, 0.0, 0, 0, ())
    assert [LastAttempt.parse(text) for text in ("", "x", "1 2 3", "a b c d e")] == [None] * 4


def test_the_most_important_pods_come_first_then_the_oldest() -> None:
    def build_creation_time(minute: int) -> dict[str, Any]:
        return {"creation_timestamp": START + timedelta(minutes=minute)}

    pods = [
        pod("young", cpu="1", metadata=build_creation_time(3)),
        pod("old", cpu="1", metadata=build_creation_time(1)),
        pod("vip", cpu="1", priority=5, metadata=build_creation_time(9)),
    ]
    plan = run(controller(), node("n1"), *pods)
    assert list(bindings(plan)) == ["vip", "old", "young"]


def test_pods_of_others_on_their_way_out_or_behind_a_gate_are_left_alone() -> None:
    pods = [
        pod("theirs", scheduler_name="theirs"),
        pod("gated", scheduling_gates=[PodSchedulingGate(name="g")]),
        pod("going", deleting=START),
        pod("ended", phase="Failed"),
    ]
    plan = run(controller(), node("n1"), *pods)
    assert not plan.writes
    assert json.loads((plan.state or {})[PENDING])["gated"] == 1
    assert plan.requeue_after is None


class Story:
    """One scheduler, pass after pass."""

    def __init__(self, *objects: KubeObject, **options: Any) -> None:
        self.objects = {obj.key if isinstance(obj, Pod) else obj.name: obj for obj in objects}
        self.scheduler = controller(**options)
        self.memory: dict[str, str] = {}
        self.now = NOW
        self.position = 1
        self.requeue: float | None = None

    def try_pods(
        self, after: float = 0.0, scheduler: SchedulerController | None = None
    ) -> list[str]:
        """Returns the pods that the next pass tries, whether or not it binds them."""
        self.now += timedelta(seconds=after)
        self.position += 10
        plan = run(
            scheduler or self.scheduler,
            *self.objects.values(),
            memory=self.memory,
            now=self.now,
            position=self.position,
        )
        self.memory = dict(plan.state or {})
        self.requeue = plan.requeue_after
        failed = [event.about.name for event in plan.events if event.reason == "FailedScheduling"]
        return sorted([*bindings(plan), *failed])

    def put(self, *objects: KubeObject) -> None:
        for obj in objects:
            self.objects[obj.key if isinstance(obj, Pod) else obj.name] = obj

    def drop(self, name: str) -> None:
        del self.objects[name]

    @property
    def queues(self) -> dict[str, int]:
        counts: dict[str, int] = json.loads(self.memory[PENDING])
        return {name: count for name, count in counts.items() if count}


def test_a_pod_that_found_no_node_is_tried_again_after_five_minutes() -> None:
    story = Story(node("n1"), pod("p", cpu="8"))
    assert story.try_pods() == ["p"]
    assert story.requeue == 300
    assert story.try_pods(after=100) == []
    assert story.queues == {"unschedulable": 1}
    assert story.requeue == pytest.approx(200)
    assert story.try_pods(after=200) == ["p"]


def test_woken_it_waits_out_a_backoff_that_doubles_up_to_ten_seconds() -> None:
    story = Story(node("n1"), pod("p", cpu="8"))
    assert story.try_pods() == ["p"]
    for number, backoff in enumerate((1, 2, 4, 8, 10, 10)):
        story.put(node(f"more{number}", cpu="5", taints=[]))
        story.put(node("n1", cpu=str(4 + (number + 1) / 10)))
        assert story.try_pods(after=0.5) == []
        assert story.queues == {"backoff": 1}
        assert story.requeue == pytest.approx(backoff - 0.5)
        assert story.try_pods(after=backoff - 0.5) == ["p"]


def test_a_process_that_does_not_know_what_happened_tries_at_once() -> None:
    story = Story(node("n1"), pod("p", cpu="8"))
    assert story.try_pods() == ["p"]
    assert story.try_pods(after=5) == []
    assert story.try_pods(after=5, scheduler=controller()) == ["p"]


def test_what_the_pod_asks_for_now_is_worth_a_try() -> None:
    story = Story(node("n1"), pod("p", cpu="8"))
    assert story.try_pods() == ["p"]
    story.put(pod("p", cpu="1", metadata={"generation": 2}))
    assert story.try_pods(after=2) == ["p"]


def filler(cpu: str = "4", name: str = "filler", where: str = "n1", **fields: Any) -> Pod:
    return pod(name, node=where, cpu=cpu, priority=9, **fields)


HERMIT = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": ZONE}
        ]
    }
}
SOCIAL = {"podAffinity": HERMIT["podAntiAffinity"]}
EVEN = [
    {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
]
X = {"app": "x"}


@pytest.mark.parametrize(
    ("before", "what", "event", "wakes"),
    [
        ([node("n1"), filler()], pod("p", cpu="1"), [node("n2")], True),
        ([node("n1"), filler()], pod("p", cpu="1"), [node("n2", unschedulable=True)], False),
        ([node("n1"), filler()], pod("p", cpu="1"), [node("n1", cpu="8")], True),
        ([node("n1"), filler()], pod("p", cpu="1"), [node("n1", labels={"a": "b"})], False),
        ([node("n1"), filler()], pod("p", cpu="1"), [filler(phase="Succeeded")], True),
        ([node("n1", taints=[taint()])], pod("p"), [node("n1")], True),
        ([node("n1", taints=[taint()])], pod("p"), [node("n1", cpu="8", taints=[taint()])], False),
        ([node("n1", unschedulable=True)], pod("p"), [node("n1")], True),
        ([node("n1")], pod("p", node_selector={"a": "b"}), [node("n1", labels={"a": "b"})], True),
        ([node("n1")], pod("p", node_selector={"a": "b"}), [node("n1", labels={"a": "c"})], False),
        ([node("n1", zone="a")], pod("p", affinity=SOCIAL), [filler("1", labels=X)], True),
        ([node("n1", zone="a")], pod("p", affinity=SOCIAL), [filler("1")], False),
        ([node("n1", zone="a")], pod("p", affinity=SOCIAL), [namespace("x")], True),
        ([node("n1")], pod("p", cpu="8"), [namespace("x")], False),
        (
            [node("n1", zone="a"), filler("1", labels=X)],
            pod("p", affinity=HERMIT),
            [filler("1", labels=X, phase="Succeeded")],
            True,
        ),
        (
            [node("n1", zone="a"), node("n2", zone="b", cpu="1"), filler("1", labels=X)],
            pod("p", cpu="2", labels=X, topology_spread_constraints=EVEN),
            [filler("1", "other", "n2", labels=X)],
            True,
        ),
    ],
)
def test_only_what_can_help_wakes_a_pod(
    before: Sequence[Node | Pod], what: Pod, event: Sequence[Node | Pod], wakes: bool
) -> None:
    story = Story(*before, what)
    assert story.try_pods() == ["p"]
    story.put(*event)
    story.try_pods(after=0.1)
    assert (story.queues == {"backoff": 1}) is wakes


def test_a_pod_that_waits_for_one_that_is_placed_later_in_the_pass_is_woken() -> None:
    social = pod("a", affinity=SOCIAL, priority=5)
    story = Story(node("n1", zone="a"), social, pod("b", labels=X))
    assert story.try_pods() == ["a", "b"]
    story.put(pod("b", labels=X, node="n1"))
    assert story.try_pods(after=2) == ["a"]


def test_who_has_a_place_kept_does_not_wait_for_the_backoff() -> None:
    story = Story(node("n1"), pod("low", node="n1", cpu="4"), pod("vip", cpu="4", priority=9))
    assert story.try_pods() == ["vip"]
    story.drop("default/low")
    story.put(pod("vip", cpu="4", priority=9, status={"nominated_node_name": "n1"}))
    assert story.try_pods(after=0.1) == ["vip"]
    assert story.requeue == 1.0


def test_more_pods_than_a_pass_takes_are_tried_in_the_next() -> None:
    story = Story(node("n1", cpu="64", pods=1000), *(pod(f"p{n}") for n in range(600)))
    assert len(story.try_pods()) == 500
    assert story.requeue == 0.0
    assert story.queues == {"active": 100}


def test_memory_forgets_pods_that_are_gone() -> None:
    story = Story(node("n1"), pod("p", cpu="8"))
    story.try_pods()
    assert len(story.memory) == 2
    story.drop("default/p")
    story.try_pods()
    assert list(story.memory) == [PENDING]
