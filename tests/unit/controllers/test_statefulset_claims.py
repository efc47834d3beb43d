"""Tests the volume claims of a StatefulSet, and with which owner they are deleted."""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import (
    PersistentVolumeClaim,
)
from kcm.api.core_v1.volume_sources import PersistentVolumeClaimVolumeSource
from kcm.reconcile.plan import Create
from kcm.testing import builders
from tests.set_builders import kubelet
from tests.unit.controllers.statefulset_world import (
    CLAIMS,
    Cluster,
    build_retention_policy,
)

# --- claims


def test_every_pod_gets_claims_before_it_is_made() -> None:
    cluster = Cluster(replicas=2, volume_claim_templates=CLAIMS)
    plan = cluster.sync()
    kinds = [write.obj.kind for write in plan.writes if isinstance(write, Create)]
    assert kinds == ["ControllerRevision", "PersistentVolumeClaim", "Pod"]
    cluster.settle()
    assert cluster.claims() == {"data-web-0": "", "data-web-1": ""}
    claim = cluster.world.of(PersistentVolumeClaim)[0]
    assert claim.labels == {"app": "web", "tier": "db"}
    (volume,) = cluster.pods()[0].spec.volumes or []
    assert volume.persistent_volume_claim == PersistentVolumeClaimVolumeSource(
        claim_name="data-web-0"
    )
    assert cluster.events[:2] == [
        "SuccessfulCreate: create Claim data-web-0 Pod web-0 in StatefulSet web success",
        "SuccessfulCreate: create Pod web-0 in StatefulSet web successful",
    ]


def test_claims_outlive_pods() -> None:
    cluster = Cluster(replicas=2, volume_claim_templates=CLAIMS)
    cluster.settle()
    uids = {claim.uid for claim in cluster.world.of(PersistentVolumeClaim)}
    cluster.change(replicas=0)
    cluster.settle()
    cluster.change(replicas=2)
    cluster.settle()
    assert {claim.uid for claim in cluster.world.of(PersistentVolumeClaim)} == uids


@pytest.mark.parametrize(
    ("when_deleted", "when_scaled", "kept", "condemned"),
    [
        ("Retain", "Retain", "", ""),
        ("Delete", "Retain", "StatefulSet", "StatefulSet"),
        ("Retain", "Delete", "", "Pod"),
        ("Delete", "Delete", "StatefulSet", "Pod"),
    ],
)
def test_claims_go_with_whom_the_policy_says(
    when_deleted: str, when_scaled: str, kept: str, condemned: str
) -> None:
    cluster = Cluster(replicas=2, **build_retention_policy(when_deleted, when_scaled))
    cluster.settle()
    assert cluster.claims() == {"data-web-0": kept, "data-web-1": kept}
    cluster.change(replicas=1)
    cluster.sync()
    assert cluster.claims() == {"data-web-0": kept, "data-web-1": condemned}


def test_a_changed_policy_reaches_claims_that_there_are() -> None:
    cluster = Cluster(replicas=1, **build_retention_policy("Delete", "Retain"))
    cluster.settle()
    cluster.change(**build_retention_policy("Retain", "Retain"))
    cluster.settle()
    assert cluster.claims() == {"data-web-0": ""}


def test_a_claim_that_somebody_else_manages_is_left_to_them() -> None:
    cluster = Cluster(replicas=1, **build_retention_policy("Delete", "Delete"))
    cluster.settle()
    claim = cluster.world.of(PersistentVolumeClaim)[0]
    other = builders.owner_reference(builders.replica_set("other"), controller=True)
    cluster.world.put(claim.with_metadata(owner_references=[other]))
    cluster.settle()
    assert cluster.claims() == {"data-web-0": "ReplicaSet"}


def test_a_claim_of_an_earlier_pod_is_waited_for() -> None:
    cluster = Cluster(replicas=1, **build_retention_policy("Retain", "Delete"))
    cluster.settle()
    cluster.change(replicas=0)
    cluster.sync()  # the claim goes with the pod, but the collector is late
    kubelet(cluster.world)
    cluster.change(replicas=1)
    plan = cluster.sync()
    assert (cluster.names(), plan.requeue_after) == ([], 1.0)
    cluster.world.remove(cluster.world.objects["persistentvolumeclaims", "default/data-web-0"])
    cluster.settle()
    assert cluster.names() == ["web-0"]
