"""Tests of DaemonSets over many syncs in a World."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from kcm.api.apps_v1 import (
    ControllerRevision,
    DaemonSet,
    DaemonSetUpdateStrategy,
)
from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import LabelSelector
from kcm.apimachinery.ownership import controller_of
from kcm.controllers.daemonset import DaemonSetController
from kcm.controllers.daemonset.placement import (
    node_of,
)
from kcm.helpers.history import REVISION_HASH
from kcm.kinds.defaults import apply
from kcm.reconcile.plan import Create, Delete, Plan
from kcm.testing import builders
from kcm.testing.views import NOW, FakeView
from kcm.testing.world import World
from tests.set_builders import daemon_set, image_of, kubelet, pods_of, template
from tests.unit.controllers.daemonsets import LABELS, build_rolling_update, taint

# --- over many syncs


class Cluster:
    """A DaemonSet controller, a scheduler and kubelets in a World."""

    def __init__(self, *nodes: str, **spec: Any) -> None:
        owner = daemon_set(**spec)
        self.key = owner.key
        self.world = World(owner, *map(builders.node, nodes or ("n1", "n2", "n3")))
        self.memory: dict[str, str] = {}
        self.broken = ""
        self.fewest = 99
        self.events: list[str] = []

    @property
    def stored(self) -> DaemonSet:
        obj = self.world.objects["daemonsets.apps", self.key]
        assert isinstance(obj, DaemonSet)
        return obj

    def sync(self) -> Plan:
        objects = self.world.objects.values()
        view = FakeView(*objects, now=self.world.now, memory=self.memory)
        plan = DaemonSetController().reconcile(self.key, view)
        outcome = self.world.carry_out(plan)
        self.memory = dict(plan.state or {})
        derived = plan.events_after(outcome)
        self.events += [event.reason for event in (*plan.events, *derived)]
        return plan

    def run(self) -> None:
        """Binds the pods without a node, and starts the pods as kubelets do."""
        for pod in self.pods():
            if not pod.spec.node_name and not pod.deleting:
                self.world.put(pod.with_spec(pod.spec.replace(node_name=node_of(pod))))
        kubelet(self.world, lambda pod: image_of(pod) == self.broken)

    def rounds(self, count: int = 40) -> Iterator[Plan]:
        for _ in range(count):
            before = dict(self.world.objects)
            yield self.sync()
            self.run()
            ready = sum(pod.status.phase == "Running" for pod in self.pods() if not pod.deleting)
            self.fewest = min(self.fewest, ready)
            if self.world.objects == before:
                return

    def settle(self) -> None:
        for _ in self.rounds():
            pass

    def image(self, image: str) -> None:
        daemon_set = self.stored
        spec = daemon_set.spec.replace(template=template(LABELS, image))
        self.world.put(apply(daemon_set.with_spec(spec)))

    def pods(self) -> list[Pod]:
        return pods_of(self.world)

    def list_images(self) -> list[str]:
        return sorted(f"{node_of(pod)} {image_of(pod).rpartition(':')[2]}" for pod in self.pods())


def test_every_node_gets_one_pod_and_new_nodes_too() -> None:
    cluster = Cluster("n1", "n2")
    cluster.settle()
    assert cluster.list_images() == ["n1 1.25", "n2 1.25"]
    cluster.world.put(builders.node("n3"))
    cluster.settle()
    assert cluster.list_images() == ["n1 1.25", "n2 1.25", "n3 1.25"]
    status = cluster.stored.status
    assert status.desired_number_scheduled == status.current_number_scheduled == 3
    assert status.number_ready == status.number_available == status.updated_number_scheduled == 3
    assert (status.number_misscheduled, status.number_unavailable) == (0, None)


def test_a_node_that_is_no_longer_meant_loses_its_pod() -> None:
    cluster = Cluster("n1", "n2")
    cluster.settle()
    cluster.world.put(builders.node("n2", taints=[taint("NoSchedule")]))
    cluster.settle()
    assert cluster.list_images() == ["n1 1.25", "n2 1.25"]  # it stays, astray
    assert cluster.stored.status.number_misscheduled == 1
    cluster.world.put(builders.node("n2", taints=[taint("NoExecute")]))
    cluster.settle()
    assert cluster.list_images() == ["n1 1.25"]


def test_of_several_pods_on_a_node_the_oldest_stays() -> None:
    cluster = Cluster("n1")
    cluster.settle()
    (pod,) = cluster.pods()
    younger = pod.with_metadata(
        name="second", uid="2", creation_timestamp=cluster.world.now + timedelta(seconds=1)
    )
    cluster.world.put(younger)
    cluster.settle()
    assert [other_pod.name for other_pod in cluster.pods()] == [pod.name]


def test_pods_that_wait_for_a_node_that_is_gone_go() -> None:
    cluster = Cluster("n1", "n2")
    cluster.sync()
    cluster.world.remove(cluster.world.objects["nodes", "n2"])
    cluster.settle()
    assert cluster.list_images() == ["n1 1.25"]


def test_failed_pods_are_replaced_with_patience() -> None:
    cluster = Cluster("n1")
    cluster.settle()
    waits = []
    for _ in range(3):
        (pod,) = cluster.pods()
        cluster.world.put(pod.with_status(pod.status.replace(phase="Failed")))
        plan = cluster.sync()
        waits.append(plan.requeue_after)
        if plan.requeue_after:
            cluster.world.now += timedelta(seconds=plan.requeue_after)
            cluster.sync()
        cluster.settle()
    assert waits == [None, 1.0, 2.0]
    assert cluster.events.count("FailedDaemonPod") == 3


def test_pods_that_succeeded_are_replaced_at_once() -> None:
    cluster = Cluster("n1")
    cluster.settle()
    (pod,) = cluster.pods()
    cluster.world.put(pod.with_status(pod.status.replace(phase="Succeeded")))
    cluster.settle()
    assert cluster.pods()[0].status.phase == "Running"
    assert "SucceededDaemonPod" in cluster.events


@pytest.mark.parametrize(("unavailable", "fewest"), [(1, 3), (2, 2), ("50%", 2), ("100%", 0)])
def test_an_update_keeps_to_its_bound(unavailable: int | str, fewest: int) -> None:
    cluster = Cluster("n1", "n2", "n3", "n4", **build_rolling_update(unavailable))
    cluster.settle()
    cluster.fewest = 99
    cluster.image("nginx:2")
    deleted = []
    for plan in cluster.rounds():
        deleted.append(sum(isinstance(w, Delete) and isinstance(w.old, Pod) for w in plan.writes))
    assert max(deleted) == 4 - fewest
    assert cluster.list_images() == ["n1 2", "n2 2", "n3 2", "n4 2"]


def test_a_bad_image_stops_at_the_bound_and_is_undone() -> None:
    cluster = Cluster(**build_rolling_update(1))
    cluster.settle()
    cluster.broken = "broken:1"
    cluster.image("broken:1")
    cluster.settle()
    assert sum(image_of(pod) == "broken:1" for pod in cluster.pods()) == 1
    assert cluster.stored.status.number_unavailable == 1
    cluster.image("nginx:1.25")
    cluster.settle()
    assert {image_of(pod) for pod in cluster.pods()} == {"nginx:1.25"}
    revisions = [
        r for r in cluster.world.of(ControllerRevision) if isinstance(r, ControllerRevision)
    ]
    assert sorted(revision.revision for revision in revisions) == [2, 3]


def test_with_surge_the_new_pod_comes_first() -> None:
    cluster = Cluster("n1", "n2", **build_rolling_update(0, 1))
    cluster.settle()
    cluster.image("nginx:2")
    cluster.sync()
    assert len(cluster.pods()) == 3
    most = 0
    for _ in cluster.rounds():
        most = max(most, len(cluster.pods()))
        assert len({node_of(p) for p in cluster.pods() if p.status.phase == "Running"}) == 2
    assert most == 3
    assert cluster.list_images() == ["n1 2", "n2 2"]


def test_with_surge_a_broken_image_takes_no_good_pod_away() -> None:
    cluster = Cluster("n1", "n2", **build_rolling_update(0, 1))
    cluster.settle()
    cluster.broken = "broken:1"
    cluster.image("broken:1")
    cluster.settle()
    assert [image_of(pod) for pod in cluster.pods()].count("nginx:1.25") == 2
    assert len(cluster.pods()) == 3


def test_on_delete_waits_for_somebody_to_delete() -> None:
    cluster = Cluster("n1", "n2", update_strategy=DaemonSetUpdateStrategy(type="OnDelete"))
    cluster.settle()
    cluster.image("nginx:2")
    cluster.settle()
    assert cluster.list_images() == ["n1 1.25", "n2 1.25"]
    assert cluster.stored.status.updated_number_scheduled is None
    cluster.world.delete(next(pod for pod in cluster.pods() if node_of(pod) == "n1"))
    cluster.settle()
    assert cluster.list_images() == ["n1 2", "n2 1.25"]


def test_old_revisions_beyond_the_limit_go() -> None:
    cluster = Cluster("n1", revision_history_limit=1)
    for number in range(4):
        cluster.image(f"nginx:{number}")
        cluster.settle()
    revisions = [
        r for r in cluster.world.of(ControllerRevision) if isinstance(r, ControllerRevision)
    ]
    assert sorted(revision.revision for revision in revisions) == [3, 4]
    hashes = {revision.labels[REVISION_HASH] for revision in revisions}
    assert cluster.pods()[0].labels[REVISION_HASH] in hashes


def test_a_pod_counts_as_available_when_its_time_is_up() -> None:
    cluster = Cluster("n1", min_ready_seconds=30)
    cluster.settle()
    cluster.world.now += timedelta(seconds=10)
    assert cluster.sync().requeue_after == 20
    assert cluster.stored.status.number_available is None
    cluster.world.now += timedelta(seconds=21)
    cluster.sync()
    assert cluster.stored.status.number_available == 1


def test_orphans_are_adopted() -> None:
    cluster = Cluster("n1")
    cluster.world.put(builders.pod("mine", labels=LABELS, node="n1", phase="Running", ready=True))
    cluster.sync()
    owner = controller_of(cluster.pods()[0])
    assert owner is not None
    assert owner.name == "agent"


def test_many_nodes_are_served_in_bursts() -> None:
    cluster = Cluster(*(f"n{number}" for number in range(300)))
    plan = cluster.sync()
    created = [w for w in plan.writes if isinstance(w, Create) and isinstance(w.obj, Pod)]
    assert len(created) == 250
    cluster.sync()
    assert len(cluster.pods()) == 300


def test_one_that_selects_everything_is_told_and_left_alone() -> None:
    owner = daemon_set()
    owner = owner.with_spec(owner.spec.replace(selector=LabelSelector()))
    plan = DaemonSetController().reconcile(owner.key, FakeView(owner, builders.node("n1")))
    assert [event.reason for event in plan.events] == ["SelectingAll"]
    assert plan.writes == []


def test_one_that_is_deleted_or_gone_is_left_alone() -> None:
    owner = daemon_set(metadata={"deletion_timestamp": NOW})
    controller = DaemonSetController()
    assert controller.reconcile(owner.key, FakeView(owner, builders.node("n1"))).writes == []
    assert controller.reconcile("default/none", FakeView()).writes == []


def test_only_declared_kinds_are_read() -> None:
    controller, owner = DaemonSetController(), daemon_set()
    view = FakeView(owner, builders.node("n1"), controller=controller)
    assert controller.reconcile(owner.key, view).writes
