"""Tests that the ReplicaSet controller's logic works for ReplicationControllers through their
kind.
"""

from __future__ import annotations

from typing import Any

from kcm import errors
from kcm.api.core_v1 import Pod, ReplicationController, ReplicationControllerSpec
from kcm.apimachinery.ownership import controller_of
from kcm.controllers.replicationcontroller import (
    ReplicationControllerController,
    ReplicationControllerOptions,
)
from kcm.kinds.defaults import apply
from kcm.reconcile.plan import Create, Failure, Outcome, UpdateStatus
from kcm.testing import builders
from kcm.testing.views import FakeView
from kcm.testing.world import World
from tests.set_builders import kubelet, pods_of, template

LABELS = {"app": "web"}


def controller(replicas: int = 2, **spec: Any) -> ReplicationController:
    fields = {"replicas": replicas, "template": template(LABELS)} | spec
    meta = builders.object_meta(
        "ReplicationController", "web", "default", overrides={"generation": 1}
    )
    return apply(ReplicationController(metadata=meta, spec=ReplicationControllerSpec(**fields)))


class Cluster:
    def __init__(self, replication_controller: ReplicationController) -> None:
        self.world, self.key = World(replication_controller), replication_controller.key
        self.controller = ReplicationControllerController()

    @property
    def stored(self) -> ReplicationController:
        obj = self.world.objects["replicationcontrollers", self.key]
        assert isinstance(obj, ReplicationController)
        return obj

    def settle(self) -> None:
        for _ in range(6):
            view = FakeView(
                *self.world.objects.values(), now=self.world.now, controller=self.controller
            )
            self.world.carry_out(self.controller.reconcile(self.key, view))
            kubelet(self.world)

    def pods(self) -> list[Pod]:
        return pods_of(self.world)


def test_it_keeps_its_number_of_pods_and_owns_them() -> None:
    cluster = Cluster(controller(3))
    cluster.settle()
    owners = [controller_of(pod) for pod in cluster.pods()]
    assert [(o.kind, o.api_version) for o in owners if o] == [("ReplicationController", "v1")] * 3
    status = cluster.stored.status
    counts = (status.replicas, status.ready_replicas, status.fully_labeled_replicas)
    assert counts == (3, 3, 3)
    cluster.world.put(cluster.stored.with_spec(cluster.stored.spec.replace(replicas=1)))
    cluster.settle()
    assert len(cluster.pods()) == 1


def test_the_selector_is_the_templates_labels_unless_given() -> None:
    assert controller().spec.selector == LABELS
    assert controller(selector={"app": "web"}).labels == LABELS


def test_orphans_that_match_are_adopted_and_others_left_alone() -> None:
    cluster = Cluster(controller(1))
    cluster.world.put(builders.pod("mine", labels=LABELS, phase="Running", ready=True))
    cluster.world.put(builders.pod("other", labels={"app": "x"}, phase="Running"))
    cluster.settle()
    assert [pod.name for pod in cluster.pods() if controller_of(pod)] == ["mine"]


def test_a_failure_shows_as_a_condition_of_its_own_kind() -> None:
    replication_controller = controller(1)
    plan = ReplicationControllerController().reconcile(
        replication_controller.key, FakeView(replication_controller)
    )
    create = next(write for write in plan.writes if isinstance(write, Create))
    update = plan.status_after(Outcome(failures=(Failure(create, errors.Forbidden("no")),)))
    assert isinstance(update, UpdateStatus)
    assert isinstance(update.new, ReplicationController)
    (condition,) = update.new.status.conditions or []
    assert (type(condition).__name__, condition.reason) == (
        "ReplicationControllerCondition",
        "FailedCreate",
    )


def test_one_without_a_template_or_that_is_gone_makes_no_pods() -> None:
    wanted = ReplicationControllerController(ReplicationControllerOptions(concurrent_rc_syncs=3))
    assert wanted.concurrent_syncs() == 3
    assert wanted.reconcile("default/none", FakeView()).writes == []
