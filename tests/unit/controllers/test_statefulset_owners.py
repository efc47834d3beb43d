"""Tests the owners that a retention policy gives to claims, whatever owners they had before."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.apps_v1 import StatefulSet
from kcm.api.core_v1 import PersistentVolumeClaim, Pod
from kcm.apimachinery.meta_v1 import KubeObject, OwnerReference
from kcm.apimachinery.ownership import new_controller_ref
from kcm.controllers.statefulset.claims import claims_of, plan_retention
from kcm.controllers.statefulset.identity import has_identity
from kcm.reconcile.plan import Delete, Outcome
from kcm.testing import builders
from tests.set_builders import stateful_set
from tests.unit.controllers.statefulset_world import (
    CLAIMS,
    PARALLEL,
    Cluster,
    build_retention_policy,
)

SET = stateful_set(replicas=2)
KEPT, CONDEMNED = builders.pod("web-1", owner=SET), builders.pod("web-2", owner=SET)


def plain(owner: KubeObject, **changes: Any) -> OwnerReference:
    return builders.owner_reference(owner, **changes)


def build_controller_reference(owner: KubeObject, **changes: Any) -> OwnerReference:
    return new_controller_ref(owner).replace(**changes)


OTHERS = [plain(builders.pod("rand1")), plain(builders.pod("rand2"))]
STRANGER = build_controller_reference(builders.replica_set("random"))


def owners_after(policy: tuple[str, str], pod: Pod, references: list[OwnerReference]) -> list[str]:
    """Returns the claim's owners after a sync, as `Kind`, or as `Kind!` for the managing owner."""
    when_deleted, when_scaled = policy
    owner = stateful_set(replicas=2, **build_retention_policy(when_deleted, when_scaled))
    claim = next(claims_of(owner, pod.name)).with_metadata(owner_references=references or None)
    assert isinstance(claim, PersistentVolumeClaim)
    patch = plan_retention(owner, pod, claim)
    after = (patch.change(claim) if patch else claim).metadata.owner_references or []
    own = [r for r in after if r.name in (owner.name, pod.name)]
    assert [r for r in after if r not in own] == [r for r in references if r in [*OTHERS, STRANGER]]
    return [f"{r.kind}!" if r.controller else r.kind for r in own]


POLICIES = [
    pytest.param(("Retain", "Retain"), KEPT, [], id="retain"),
    pytest.param(("Delete", "Retain"), KEPT, ["StatefulSet!"], id="on SS delete"),
    pytest.param(("Retain", "Delete"), CONDEMNED, ["Pod!"], id="on scaledown only, condemned"),
    pytest.param(("Retain", "Delete"), KEPT, [], id="on scaledown only, remains"),
    pytest.param(("Delete", "Delete"), CONDEMNED, ["Pod!"], id="on both, condemned"),
    pytest.param(("Delete", "Delete"), KEPT, ["StatefulSet!"], id="on both, remains"),
]


@pytest.mark.parametrize(("policy", "pod", "expected"), POLICIES)
@pytest.mark.parametrize("others", [[], OTHERS], ids=["alone", "beside others"])
def test_a_claim_gets_the_owner_of_its_policy(
    policy: tuple[str, str], pod: Pod, expected: list[str], others: list[OwnerReference]
) -> None:
    """Upstream's TestIsClaimOwnerUpToDate and TestUpdateClaimOwnerRefForSetAndPod."""
    for of_pod in ([], [plain(pod)], [build_controller_reference(pod)]):
        for of_set in ([], [plain(SET)], [build_controller_reference(SET)]):
            assert owners_after(policy, pod, [*of_pod, *of_set, *others]) == expected


@pytest.mark.parametrize(("policy", "pod", "_"), POLICIES)
def test_a_claim_that_somebody_else_manages_has_neither_set_nor_pod(
    policy: tuple[str, str], pod: Pod, _: list[str]
) -> None:
    """Upstream's TestClaimOwnerUpToDateEdgeCases, and TestHasUnexpectedController."""
    for own in (
        [],
        [build_controller_reference(pod)],
        [build_controller_reference(SET)],
        [plain(SET), plain(pod)],
    ):
        assert owners_after(policy, pod, [*own, STRANGER]) == []


@pytest.mark.parametrize(
    ("references", "changed"),
    [
        pytest.param([build_controller_reference(SET)], False, id="set correctly"),
        pytest.param([plain(SET)], True, id="missing controller"),
        pytest.param([plain(SET, controller=False)], True, id="not the controller"),
        pytest.param(
            [build_controller_reference(SET, uid="earlier")], True, id="of an earlier set"
        ),
        pytest.param([plain(KEPT), build_controller_reference(SET)], True, id="the pod beside it"),
        pytest.param([], True, id="not present"),
    ],
)
def test_only_what_differs_is_written(references: list[OwnerReference], changed: bool) -> None:
    """Upstream's TestUpdateClaimControllerRef and TestNonController."""
    owner = stateful_set(replicas=2, **build_retention_policy("Delete", "Retain"))
    claim = next(claims_of(owner, KEPT.name)).with_metadata(owner_references=references or None)
    assert isinstance(claim, PersistentVolumeClaim)
    assert (plan_retention(owner, KEPT, claim) is not None) is changed
    assert owners_after(("Delete", "Retain"), KEPT, references) == ["StatefulSet!"]


def test_a_set_of_another_group_with_the_same_name_is_somebody_else() -> None:
    kruise = build_controller_reference(SET, api_version="apps.kruise.io/v1", uid="another")
    owner = stateful_set(replicas=2, **build_retention_policy("Delete", "Retain"))
    claim = next(claims_of(owner, KEPT.name)).with_metadata(owner_references=[kruise])
    assert isinstance(claim, PersistentVolumeClaim)
    assert plan_retention(owner, KEPT, claim) is None


# --- without an order


def start(cluster: Cluster, **changes: Any) -> None:
    """Syncs twice with pods that run but do not become ready, then changes the spec."""
    cluster.broken = "nginx:1.25"
    cluster.settle(rounds=2)
    cluster.change(**changes)


def test_claims_of_pods_that_are_not_ready_follow_a_changed_policy() -> None:
    cluster = Cluster(replicas=2, **PARALLEL, **build_retention_policy("Delete", "Retain"))
    start(cluster, **build_retention_policy("Retain", "Retain"))
    cluster.sync()
    assert cluster.claims() == {"data-web-0": "", "data-web-1": ""}


def test_claims_of_pods_that_end_follow_a_changed_policy() -> None:
    cluster = Cluster(replicas=1, **PARALLEL, **build_retention_policy("Delete", "Retain"))
    cluster.settle()
    (pod,) = cluster.pods()
    cluster.world.put(pod.with_metadata(deletion_timestamp=cluster.world.now, finalizers=["a/b"]))
    cluster.change(**build_retention_policy("Retain", "Retain"))
    cluster.sync()
    assert cluster.claims() == {"data-web-0": ""}


def test_in_order_pods_that_are_not_ready_are_waited_for() -> None:
    cluster = Cluster(replicas=2, **build_retention_policy("Delete", "Retain"))
    start(cluster, **build_retention_policy("Retain", "Retain"))
    cluster.sync()
    assert cluster.claims() == {"data-web-0": "StatefulSet"}


def test_claims_that_outlived_their_pod_follow_the_policy_when_it_is_made_again() -> None:
    cluster = Cluster(replicas=1, **build_retention_policy("Delete", "Retain"))
    cluster.settle()
    cluster.world.remove(*cluster.pods())
    cluster.change(**build_retention_policy("Retain", "Retain"))
    cluster.sync()
    assert cluster.claims() == {"data-web-0": ""}


def test_identity_is_restored_on_pods_that_are_not_ready() -> None:
    cluster = Cluster(replicas=2, **PARALLEL, volume_claim_templates=CLAIMS)
    start(cluster)
    for pod in cluster.pods():
        cluster.world.put(pod.with_metadata(labels={"app": "web"}))
    cluster.sync()
    assert all(has_identity(pod) for pod in cluster.pods())


# --- what could not be written


def test_a_pod_whose_deletion_failed_still_counts_as_current() -> None:
    cluster = Cluster(replicas=2)
    cluster.settle()
    cluster.image("nginx:2")
    plan = cluster.controller.reconcile(cluster.key, cluster.world.view())
    (deletion,) = [write for write in plan.writes if isinstance(write, Delete)]
    for done, expected in ((), 2), (((deletion, deletion.old),), 1):
        status = plan.status_after(Outcome(done=done))
        assert status is not None
        assert isinstance(status.new, StatefulSet)
        assert status.new.status.current_replicas == expected
