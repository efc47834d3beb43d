"""The SyncHandler: which pods get work, which are rejected, which are cleaned up."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from kcm import errors
from kcm.api.core_v1 import Node, Pod, PodCondition, PodStatus
from kcm.kubelet.admission import AdmitHandler, Rejection
from kcm.kubelet.loop.handlers import PodHandlers
from kcm.kubelet.node.current_node import CurrentNode
from kcm.kubelet.pod_workers.active_pods import ActivePods
from kcm.kubelet.pod_workers.allocations import Allocations
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.kubelet.types import FILE, MIRROR_ANNOTATION, SOURCE_ANNOTATION
from kcm.reconcile.plan import Event
from kcm.testing.builders import node as build_node
from tests.unit.kubelet.loop.test_cleanup import World as Cleaned
from tests.unit.kubelet.views import NOW, pod


class Sink:
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def record(self, event: Event, component: str, host: str = "") -> None:
        self.reasons.append(event.reason)


class World(Cleaned):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.sink = Sink()
        self.stored: Node | None = None
        self.node = CurrentNode(build_node("n1"), self.find_node)
        self.surplus: list[tuple[str, bool]] = []
        manager: Any = self
        self.admit_handlers: list[AdmitHandler] = []
        active_pods = ActivePods(self.pods, self.states, self.statuses)
        recorder = KubeletEventRecorder(self.sink, "n1")
        self.handlers = PodHandlers(
            pods=self.pods,
            states=self.states,
            active_pods=active_pods,
            workers=self.workers,
            statuses=self.statuses,
            cache=self.cache,
            runtime_manager=manager,
            cleanup=self.cleanup,
            recorder=recorder,
            metrics=self.metrics,
            clock=self.clock,
            node=self.node,
            allocations=Allocations(active_pods.get_all, self.node.get, recorder),
            admit_handlers=self.admit_handlers,
        )

    def find_node(self) -> Node | None:
        if self.stored is None:
            raise errors.StoreUnavailable("away")
        return self.stored

    def remove_dead_containers(self, view: Any, exited_id: str, *, remove_all: bool) -> None:
        """Records the call, as RuntimeManager has it."""
        self.surplus.append((exited_id, remove_all))


def build_pod(name: str, **more: Any) -> Pod:
    meta = {"name": name, "uid": name, **more.pop("metadata", {})}
    return pod(metadata=meta, **more)


def test_new_pods_are_admitted_the_oldest_first(tmp_path: Path) -> None:
    world = World(tmp_path)
    ports = [{"container_port": 80, "host_port": 8080}]
    old = build_pod("old", metadata={"creation_timestamp": NOW})
    new = build_pod("new", metadata={"creation_timestamp": NOW + timedelta(seconds=1)})
    wanting = [
        one.with_spec(one.spec.replace(containers=[
            one.spec.containers[0].model_validate({"name": "main", "ports": ports})
        ]))
        for one in (new, old)
    ]  # fmt: skip
    world.handlers.handle_pod_additions(wanting)
    world.run("old")
    world.run("new")
    assert world.done == ["create"]
    refused = world.statuses.get("new")
    assert refused is not None
    assert (refused.phase, refused.reason) == ("Failed", "NodePorts")
    assert world.sink.reasons == ["NodePorts"]
    assert world.registry.get_sample_value("kubelet_containers_per_pod_count_count") == 1


def test_others_may_refuse_pods_too(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.admit_handlers.append(lambda *_: Rejection("Evicted", "under pressure"))
    world.handlers.handle_pod_additions([build_pod("a")])
    status = world.statuses.get("a")
    assert status is not None
    assert status.message == "Pod was rejected: under pressure"


def test_a_label_that_the_scheduler_has_seen_first_is_read(tmp_path: Path) -> None:
    world = World(tmp_path)
    selective = [build_pod(name, node_selector={"disk": "fast"}) for name in "ab"]
    world.handlers.handle_pod_additions(selective[:1])
    status = world.statuses.get("a")
    assert status is not None
    assert status.reason == "NodeAffinity"
    world.stored = build_node("n1", labels={"disk": "fast"})
    world.handlers.handle_pod_additions(selective[1:])
    assert world.statuses.get("b") is None


def test_what_has_ended_takes_up_no_room(tmp_path: Path) -> None:
    world = World(tmp_path)
    pods = [build_pod("runs"), build_pod("ended", phase="Succeeded"), build_pod("failed")]
    world.statuses.set(pods[2], PodStatus(phase="Failed"))
    assert [
        one.name for one in ActivePods(world.pods, world.states, world.statuses).filter(pods)
    ] == ["runs"]


def test_a_pod_that_goes_from_its_source_is_ended(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.handlers.handle_pod_additions([build_pod("a")])
    world.run("a")
    world.handlers.handle_pod_removes([build_pod("a")])
    world.run("a")
    assert world.done == ["create", "terminating", "terminated"]
    assert world.pods.pods() == []


def test_a_change_of_a_mirror_is_its_static_pods_business(tmp_path: Path) -> None:
    world = World(tmp_path)
    static = build_pod("a", metadata={"annotations": {SOURCE_ANNOTATION: FILE}})
    mirror = build_pod("a", metadata={"uid": "m", "annotations": {MIRROR_ANNOTATION: "x"}})
    world.handlers.handle_pod_additions([static])
    world.run("a")
    for handle in (world.handlers.handle_pod_additions, world.handlers.handle_pod_removes):
        handle([mirror])
        world.run("a")
    assert world.done == ["create", "update", "update"]


def test_static_pods_without_a_mirror_are_synced_until_they_have_one(tmp_path: Path) -> None:
    world = World(tmp_path)
    static = build_pod("a", metadata={"annotations": {SOURCE_ANNOTATION: FILE}})
    world.handlers.handle_pod_additions([static])
    world.run("a")
    world.handlers.handle_pod_cleanups()
    world.run("a")
    world.pods.add(build_pod("a", metadata={"uid": "m", "annotations": {MIRROR_ANNOTATION: "x"}}))
    world.handlers.handle_pod_cleanups()
    world.run("a")
    assert world.done == ["create", "sync"]


def test_reconcile_acts_on_gates_and_on_what_was_evicted(tmp_path: Path) -> None:
    world = World(tmp_path)
    ready = PodCondition(type="Ready", status="True")
    gated = build_pod(
        "a", readiness_gates=[{"condition_type": "x"}], status={"conditions": [ready]}
    )
    evicted = build_pod("b", status={"phase": "Failed", "reason": "Evicted"})
    world.handlers.handle_pod_reconcile([build_pod("c"), gated, evicted])
    world.run("a")
    world.run("c")
    assert world.done == ["sync"]
    assert world.surplus == [("", True)]


def test_pods_whose_time_is_over_are_synced(tmp_path: Path) -> None:
    world = World(tmp_path)
    late = build_pod("a", active_deadline_seconds=5)
    world.handlers.handle_pod_additions([late])
    world.statuses.set(late, PodStatus(phase="Running"))
    assert world.handlers.get_pods_to_sync() == []
    world.clock.step(5)
    assert [one.name for one in world.handlers.get_pods_to_sync()] == ["a"]
