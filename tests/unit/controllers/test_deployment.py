"""Tests of Deployments: rollouts over many syncs, and the computations of a sync as tables."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kcm.api.apps_v1 import (
    Deployment,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetCondition,
)
from kcm.api.core_v1 import Pod, PodCondition
from kcm.apimachinery.meta_v1 import LabelSelector
from kcm.apimachinery.ownership import controller_of
from kcm.controllers.deployment import DeploymentController
from kcm.controllers.deployment.bounds import max_surge, max_unavailable
from kcm.controllers.deployment.controller import deployment_of_last_pod
from kcm.controllers.deployment.revisions import (
    HASH,
    HISTORY,
    REVISION,
    name_of_set,
    template_hash,
)
from kcm.controllers.replicaset import ReplicaSetController
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import Outcome, Plan, Update
from kcm.testing.builders import container, deployment, pod, replica_set
from kcm.testing.views import FakeView
from kcm.testing.world import World
from tests.unit.controllers.deployments import build_rolling_update

# --- rollouts over many syncs


class Cluster:
    """The Deployment and ReplicaSet controllers in a World; pods with the image `broken` never get
    ready.
    """

    def __init__(self, owner: Deployment, **more: Any) -> None:
        self.world = World(owner, **more)
        self.key = owner.key
        self.broken = ""  # image whose pods never get ready
        self.fewest, self.most = 99, 0

    def settle(self, rounds: int = 60) -> None:
        """Syncs all objects until nothing changes."""
        for _ in range(rounds):
            before = dict(self.world.objects)
            self.deployments()
            self.sync_replica_sets()
            self.kubelet()
            if before == self.world.objects:
                return
        raise AssertionError("it does not come to rest")

    def deployments(self) -> Plan:
        plan = DeploymentController().reconcile(self.key, self.world.view())
        self.world.carry_out(plan)
        return plan

    def sync_replica_sets(self) -> None:
        for rs in self.world.of(ReplicaSet):
            self.world.carry_out(ReplicaSetController().reconcile(rs.key, self.world.view()))
        ready = [p for p in self.world.of(Pod) if isinstance(p, Pod) and is_ready(p)]
        self.fewest = min(self.fewest, len(ready))
        self.most = max(self.most, len(self.world.of(Pod)))

    def kubelet(self) -> None:
        for obj in self.world.of(Pod):
            assert isinstance(obj, Pod)
            if obj.spec.containers[0].image != self.broken and not is_ready(obj):
                self._get_ready(obj)

    def _get_ready(self, pod: Pod) -> None:
        ready = PodCondition(type="Ready", status="True", last_transition_time=self.world.now)
        status = pod.status.replace(phase="Running", conditions=[ready])
        self.world.put(pod.with_status(status))

    @property
    def deployment(self) -> Deployment:
        (obj,) = self.world.of(Deployment)
        assert isinstance(obj, Deployment)
        return obj

    def change(self, **spec: Any) -> None:
        """Changes fields of the Deployment's spec, as a user does."""
        old = self.deployment
        self.world.write(Update(old.with_spec(old.spec.replace(**spec)), old))

    def image(self, image: str) -> None:
        template = self.deployment.spec.template
        spec = template.spec.replace(containers=[container(image=image)])
        self.change(template=template.replace(spec=spec))

    def sizes(self) -> dict[str, int]:
        """Returns the replicas that each ReplicaSet's spec asks for, by image."""
        return {
            rs.spec.template.spec.containers[0].image or "": rs.spec.replicas or 0
            for rs in self.world.of(ReplicaSet)
            if isinstance(rs, ReplicaSet)
        }

    def condition(self, type_: str) -> tuple[str, str | None]:
        conditions = {c.type: (c.status, c.reason) for c in self.deployment.status.conditions or ()}
        return conditions.get(type_, ("", None))


def is_ready(pod: Pod) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions or ())


def test_a_new_deployment_gets_one_set_and_its_revision() -> None:
    cluster = Cluster(deployment(replicas=3))
    cluster.settle()
    (rs,) = cluster.world.of(ReplicaSet)
    assert rs.name.startswith("web-")
    assert rs.labels[HASH] == rs.name.removeprefix("web-")
    assert rs.annotations[REVISION] == cluster.deployment.annotations[REVISION] == "1"
    status = cluster.deployment.status
    assert (status.replicas, status.updated_replicas, status.available_replicas) == (3, 3, 3)
    assert cluster.condition("Available") == ("True", "MinimumReplicasAvailable")
    assert cluster.condition("Progressing") == ("True", "NewReplicaSetAvailable")
    assert cluster.deployment.metadata.generation == 1


@pytest.mark.parametrize(("surge", "unavailable"), [(1, 0), (0, 1), ("25%", "25%"), (3, 2)])
def test_a_rollout_stays_within_its_bounds(surge: Any, unavailable: Any) -> None:
    cluster = Cluster(deployment(replicas=8, strategy=build_rolling_update(surge, unavailable)))
    cluster.settle()
    cluster.fewest, cluster.most = 99, 0
    cluster.image("nginx:2")
    cluster.settle()
    assert cluster.sizes() == {"nginx:1.25": 0, "nginx:2": 8}
    assert cluster.fewest >= 8 - max_unavailable(cluster.deployment)
    assert cluster.most <= 8 + max_surge(cluster.deployment)
    assert cluster.deployment.annotations[REVISION] == "2"


def test_a_bad_image_stops_at_the_bounds_and_misses_its_deadline() -> None:
    cluster = Cluster(
        deployment(replicas=4, strategy=build_rolling_update(1, 1), progress_deadline_seconds=60)
    )
    cluster.settle()
    cluster.broken = "broken:1"
    cluster.image("broken:1")
    cluster.settle()
    assert cluster.sizes() == {"nginx:1.25": 3, "broken:1": 2}
    plan = cluster.deployments()
    assert plan.requeue_after == 61
    cluster.world.now += timedelta(seconds=61)
    cluster.settle()
    assert cluster.condition("Progressing") == ("False", "ProgressDeadlineExceeded")
    assert cluster.deployments().requeue_after is None
    cluster.image("nginx:1.25")  # undone
    cluster.settle()
    assert cluster.sizes() == {"nginx:1.25": 4, "broken:1": 0}
    assert cluster.condition("Progressing") == ("True", "NewReplicaSetAvailable")


def test_an_undo_brings_the_old_set_back_under_a_new_revision() -> None:
    cluster = Cluster(deployment(replicas=2))
    for image in ("nginx:1.25", "nginx:2", "nginx:1.25"):
        cluster.image(image)
        cluster.settle()
    annotations_by_image = {
        rs.spec.template.spec.containers[0].image: dict(rs.annotations)
        for rs in cluster.world.of(ReplicaSet)
        if isinstance(rs, ReplicaSet)
    }
    assert annotations_by_image["nginx:1.25"][REVISION] == "3"
    assert annotations_by_image["nginx:1.25"][HISTORY] == "1"
    assert annotations_by_image["nginx:2"][REVISION] == "2"


def test_a_pause_keeps_the_template_and_scales_and_tells_both() -> None:
    cluster = Cluster(deployment(replicas=2))
    cluster.settle()
    cluster.change(paused=True)
    cluster.image("nginx:2")
    cluster.settle()
    assert cluster.sizes() == {"nginx:1.25": 2}
    assert cluster.condition("Progressing") == ("Unknown", "DeploymentPaused")
    cluster.change(replicas=4)
    cluster.settle()
    assert cluster.sizes() == {"nginx:1.25": 4}
    cluster.change(paused=False)
    cluster.settle()
    assert cluster.sizes() == {"nginx:1.25": 0, "nginx:2": 4}


def test_recreate_waits_for_the_last_old_pod() -> None:
    cluster = Cluster(deployment(replicas=2, strategy=DeploymentStrategy(type="Recreate")))
    cluster.settle()
    for obj in cluster.world.of(Pod):
        held = obj.with_metadata(finalizers=["example.com/held"])
        cluster.world.put(held)
    cluster.image("nginx:2")
    cluster.settle()
    assert cluster.sizes() == {"nginx:1.25": 0}
    for obj in cluster.world.of(Pod):
        cluster.world.remove(cluster.world.objects["pods", obj.key])
    cluster.settle()
    assert cluster.sizes() == {"nginx:1.25": 0, "nginx:2": 2}


def test_a_pod_that_goes_wakes_a_recreate_only() -> None:
    for type_, expected in (("Recreate", ["default/web"]), ("RollingUpdate", [])):
        owner = deployment(strategy=DeploymentStrategy(type=type_))
        rs = replica_set("web-1", owner=owner)
        gone = Change(pod("web-1-a", owner=rs), None)
        assert list(deployment_of_last_pod(gone, FakeView(owner, rs))) == expected


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        pytest.param([], ["default/web"], id="the last one"),
        pytest.param([("web-1", "Running")], [], id="one of its own set is left"),
        pytest.param([("web-2", "Pending")], [], id="one of another set is left"),
        pytest.param([("web-1", "Failed")], ["default/web"], id="only one that has ended"),
        pytest.param([("other-1", "Running")], ["default/web"], id="one of somebody else's"),
    ],
)
def test_only_the_last_pod_that_goes_wakes_a_recreate(
    others: list[tuple[str, str]], expected: list[str]
) -> None:
    """Upstream's TestPodDeletionEnqueuesRecreateDeployment and its two neighbours."""
    owner = deployment(strategy=DeploymentStrategy(type="Recreate"))
    sets = {name: replica_set(name, owner=owner) for name in ("web-1", "web-2")}
    sets["other-1"] = replica_set("other-1")
    left = [pod(f"{name}-b", owner=sets[name], phase=phase) for name, phase in others]
    gone = Change(pod("web-1-a", owner=sets["web-1"]), None)
    assert list(deployment_of_last_pod(gone, FakeView(owner, *sets.values(), *left))) == expected


def test_old_sets_beyond_the_limit_go_once_they_are_empty() -> None:
    cluster = Cluster(deployment(replicas=1, revision_history_limit=1))
    for number in range(4):
        cluster.image(f"nginx:{number}")
        cluster.settle()
    assert cluster.sizes() == {"nginx:2": 0, "nginx:3": 1}


def test_a_name_that_is_taken_is_counted_and_another_one_found() -> None:
    owner = deployment(replicas=1)
    name = f"web-{template_hash(owner.spec.template, None)}"
    stranger = replica_set(name, labels={"app": "other"})
    cluster = Cluster(owner)
    cluster.world.put(stranger)
    cluster.settle()
    assert cluster.deployment.status.collision_count == 1
    assert cluster.condition("Progressing") == ("True", "NewReplicaSetAvailable")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a" * 242, "a" * 242),
        ("a" * 253, "a" * 242),
        ("a" * 241 + "." + "a" * 11, "a" * 241),  # a dot before the dash would be refused
    ],
)
def test_a_set_is_named_after_as_much_of_the_name_as_has_room(name: str, expected: str) -> None:
    """Upstream's TestGenerateReplicaSetName (pkg/controller/deployment, 1.34): the hash has ten
    digits.
    """
    assert name_of_set(name, "1234567890") == f"{expected}-1234567890"


def test_orphans_of_the_same_template_are_adopted() -> None:
    owner = deployment(replicas=2)
    labels = dict(owner.spec.template.metadata.labels or {}) | {HASH: "x"}
    template = owner.spec.template.replace(
        metadata=owner.spec.template.metadata.replace(labels=labels)
    )
    cluster = Cluster(owner)
    orphan = replica_set("orphan", replicas=2, labels=labels, template=template)
    cluster.world.put(orphan)
    cluster.settle()
    (rs,) = cluster.world.of(ReplicaSet)
    reference = controller_of(rs)
    assert (rs.name, reference.name if reference else "") == ("orphan", "web")


def test_scaling_in_the_middle_of_a_rollout_is_shared_out() -> None:
    cluster = Cluster(deployment(replicas=10, strategy=build_rolling_update(0, 5)))
    cluster.settle()
    cluster.broken = "nginx:2"
    cluster.image("nginx:2")
    cluster.settle()
    assert cluster.sizes() == {"nginx:1.25": 5, "nginx:2": 5}
    cluster.change(replicas=20)
    cluster.deployments()
    assert cluster.sizes() == {"nginx:1.25": 10, "nginx:2": 10}


def test_one_that_selects_everything_is_told_and_left_alone() -> None:
    owner = deployment()
    owner = owner.with_spec(owner.spec.replace(selector=LabelSelector()))
    plan = DeploymentController().reconcile(owner.key, FakeView(owner))
    assert [event.reason for event in plan.events] == ["SelectingAll"]
    assert plan.status_after(Outcome()) is None


def test_one_that_is_deleted_only_counts() -> None:
    cluster = Cluster(deployment(replicas=2))
    cluster.settle()
    old = cluster.deployment
    ending = {"deletion_timestamp": cluster.world.now, "finalizers": ["example.com/x"]}
    cluster.world.put(old.with_metadata(**ending))
    cluster.image("nginx:2")
    assert cluster.deployments().writes == []


def test_a_failing_set_shows_in_the_deployment() -> None:
    replica_set_condition = ReplicaSetCondition(
        type="ReplicaFailure", status="True", reason="FailedCreate"
    )
    cluster = Cluster(deployment(replicas=1))
    cluster.settle()
    (rs,) = cluster.world.of(ReplicaSet)
    assert isinstance(rs, ReplicaSet)
    status = rs.status.replace(conditions=[replica_set_condition])
    cluster.world.put(rs.with_status(status))
    cluster.deployments()
    assert cluster.condition("ReplicaFailure") == ("True", "FailedCreate")
