"""Tests objects whose owner reference names an owner of another namespace; any user can write
one.
"""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.ownership import new_controller_ref
from kcm.controllers.cronjob import CronJobController
from kcm.controllers.daemonset import DaemonSetController
from kcm.controllers.deployment import DeploymentController
from kcm.controllers.job import JobController
from kcm.controllers.replicaset import ReplicaSetController
from kcm.controllers.replicationcontroller import ReplicationControllerController
from kcm.controllers.statefulset import StatefulSetController
from kcm.reconcile.contract import Controller
from kcm.testing.builders import cron_job, deployment, job, node, pod, replica_set
from kcm.testing.views import FakeView
from kcm.testing.world import World
from tests.samples import sample
from tests.set_builders import daemon_set, stateful_set

FOREIGN = 5


def foreign(owner: KubeObject, names: list[str]) -> list[Pod]:
    """Returns pods of another namespace with the labels and owner reference of the owner's own
    pods.
    """
    return [
        pod(
            name,
            namespace="evil",
            labels={"app": owner.name},
            phase="Running",
            ready=True,
            node="n1",
            metadata={
                "owner_references": [new_controller_ref(owner)],
                "finalizers": ["batch.kubernetes.io/job-tracking"],
            },
        )
        for name in names
    ]


RC = sample("replicationcontrollers").with_metadata(name="web", uid="rc")
CASES: list[tuple[Controller, KubeObject]] = [
    (ReplicaSetController(), replica_set("web", replicas=2)),
    (
        ReplicationControllerController(),
        sample("replicationcontrollers").with_metadata(name="web", uid="rc"),
    ),
    (StatefulSetController(), stateful_set("web", replicas=2)),
    (DaemonSetController(), daemon_set("web")),
    (JobController(), job("web")),
    (DeploymentController(), deployment("web", replicas=2)),
    (CronJobController(), cron_job("web")),
]


@pytest.mark.parametrize(
    ("controller", "owner"), CASES, ids=[controller.short_name for controller, _ in CASES]
)
def test_what_another_namespace_claims_to_own_changes_nothing(
    controller: Controller, owner: KubeObject
) -> None:
    """A sync plans the same with these objects as without them, and changes none of them."""
    pods = foreign(owner, [f"web-{number}" for number in range(FOREIGN)])
    sets = [
        replica_set(f"web-{number}", namespace="evil", labels={"app": "web"}).with_metadata(
            owner_references=[new_controller_ref(owner)]
        )
        for number in range(2)
    ]
    jobs = [
        job(f"web-{number}", namespace="evil").with_metadata(
            owner_references=[new_controller_ref(owner)]
        )
        for number in range(2)
    ]
    alone = [owner, node("n1")]
    before = controller.reconcile(owner.key, FakeView(*alone))
    world = World(*alone, *pods, *sets, *jobs)
    after = controller.reconcile(owner.key, world.view())
    assert [type(write) for write in after.writes] == [type(write) for write in before.writes]
    world.carry_out(after)
    for obj in (*pods, *sets, *jobs):
        assert world.find(obj) == obj


def test_replicas_that_are_there_are_not_deleted_for_foreign_ones() -> None:
    owner = replica_set("web", replicas=2)
    own = [pod(f"own-{n}", owner=owner, phase="Running", ready=True) for n in range(2)]
    theirs = foreign(owner, [f"web-{number}" for number in range(FOREIGN)])
    plan = ReplicaSetController().reconcile(owner.key, FakeView(owner, *own, *theirs))
    assert plan.writes == []
