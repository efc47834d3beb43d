"""Tests of StatefulSets over many syncs in a World."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.api.apps_v1 import (
    StatefulSetOrdinals,
)
from kcm.api.core_v1 import (
    Pod,
)
from kcm.apimachinery.ownership import controller_of
from kcm.controllers.statefulset import StatefulSetController
from kcm.controllers.statefulset.identity import POD_INDEX, POD_NAME, revision_of
from kcm.reconcile.plan import Create, Failure, Outcome
from kcm.testing import builders
from kcm.testing.views import FakeView
from tests.set_builders import kubelet, stateful_set
from tests.unit.controllers.statefulset_world import (
    CLAIMS,
    ON_DELETE,
    PARALLEL,
    Cluster,
)

# --- identity


def test_pods_have_names_labels_and_hosts_of_their_own() -> None:
    cluster = Cluster(replicas=2, ordinals=StatefulSetOrdinals(start=5))
    cluster.settle()
    assert cluster.names() == ["web-5", "web-6"]
    pod = cluster.pods()[0]
    assert (pod.labels[POD_NAME], pod.labels[POD_INDEX]) == ("web-5", "5")
    assert revision_of(pod) == cluster.stored.status.update_revision
    assert (pod.spec.hostname, pod.spec.subdomain) == ("web-5", "web")
    owner = controller_of(pod)
    assert owner is not None
    assert owner.uid == cluster.stored.uid


def test_labels_that_a_pod_lost_come_back() -> None:
    cluster = Cluster(replicas=1, **ON_DELETE)
    cluster.settle()
    cluster.world.put(cluster.pods()[0].with_metadata(labels={"app": "web"}))
    cluster.sync()
    assert cluster.pods()[0].labels[POD_INDEX] == "0"
    assert "SuccessfulUpdate: update Pod web-0 in StatefulSet web successful" in cluster.events


def test_orphans_of_its_names_are_adopted_and_others_left_alone() -> None:
    cluster = Cluster(replicas=1, **ON_DELETE)
    for name in ("web-0", "stranger-0", "web-x"):
        cluster.world.put(builders.pod(name, labels={"app": "web"}, phase="Running", ready=True))
    cluster.sync()
    owned = [pod.name for pod in cluster.pods() if controller_of(pod)]
    assert owned == ["web-0"]


# --- order


def test_pods_come_and_go_one_after_the_other() -> None:
    cluster = Cluster(replicas=3)
    cluster.settle()
    assert cluster.seen[:3] == ["web-0", "web-0 web-1", "web-0 web-1 web-2"]
    cluster.seen.clear()
    cluster.change(replicas=1)
    cluster.settle()
    assert cluster.names() == ["web-0"]
    assert "web-0 web-1" in cluster.seen


def test_a_pod_that_is_not_ready_holds_up_those_behind_it() -> None:
    cluster = Cluster(replicas=3)
    cluster.broken = "nginx:1.25"
    cluster.settle()
    assert cluster.names() == ["web-0"]


def test_in_parallel_all_come_and_go_at_once() -> None:
    cluster = Cluster(replicas=4, **PARALLEL)
    cluster.broken = "nginx:1.25"
    cluster.sync()
    assert len(cluster.names()) == 4
    cluster.change(replicas=1)
    cluster.sync()
    kubelet(cluster.world)
    assert cluster.names() == ["web-0"]


def test_a_hole_is_filled_before_the_set_shrinks() -> None:
    cluster = Cluster(replicas=3)
    cluster.settle()
    cluster.world.remove(cluster.world.objects["pods", "default/web-0"])
    cluster.change(replicas=2)
    cluster.sync()
    assert cluster.names() == ["web-0", "web-1", "web-2"]
    cluster.settle()
    assert cluster.names() == ["web-0", "web-1"]


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_has_ended_is_made_anew(phase: str) -> None:
    cluster = Cluster(replicas=2)
    cluster.settle()
    pod = cluster.pods()[0]
    cluster.world.put(pod.with_status(pod.status.replace(phase=phase)))
    cluster.settle()
    again = cluster.pods()[0]
    assert (again.name, again.status.phase) == ("web-0", "Running")
    assert again.uid != pod.uid


def test_a_terminating_pod_is_waited_for_in_order_only() -> None:
    for policy, expected in (("OrderedReady", []), ("Parallel", ["web-1"])):
        cluster = Cluster(replicas=1, pod_management_policy=policy)
        cluster.settle()
        held = cluster.pods()[0].with_metadata(deletion_timestamp=cluster.world.now)
        cluster.world.put(held.with_metadata(finalizers=["example.com/held"]))
        cluster.change(replicas=2)
        plan = cluster.sync()
        created = [write.obj.name for write in plan.writes if isinstance(write, Create)]
        assert created == expected


# --- status and the rest


def test_the_status_counts() -> None:
    cluster = Cluster(replicas=3)
    cluster.settle()
    status = cluster.stored.status
    assert (status.replicas, status.ready_replicas, status.available_replicas) == (3, 3, 3)
    assert (status.observed_generation, status.collision_count) == (1, 0)


def test_a_set_that_is_deleted_only_counts() -> None:
    cluster = Cluster(replicas=2)
    cluster.sync()
    cluster.world.put(
        cluster.stored.with_metadata(deletion_timestamp=cluster.world.now, finalizers=["a/b"]),
    )
    kubelet(cluster.world)
    assert cluster.sync().writes == []
    assert cluster.stored.status.ready_replicas == 1


def test_a_refusal_is_told() -> None:
    cluster = Cluster(replicas=1)
    plan = cluster.controller.reconcile(cluster.key, cluster.world.view())
    create = next(w for w in plan.writes if isinstance(w, Create) and isinstance(w.obj, Pod))
    refused = Outcome(failures=(Failure(create, errors.Forbidden("no")),))
    (event,) = plan.events_after(refused)
    assert event.message == "create Pod web-0 in StatefulSet web failed error: no"


def test_what_is_gone_is_nothing_to_do() -> None:
    assert StatefulSetController().reconcile("default/web", FakeView()).writes == []


def test_only_declared_kinds_are_read() -> None:
    controller = StatefulSetController()
    owner = stateful_set(volume_claim_templates=CLAIMS)
    assert controller.reconcile(owner.key, FakeView(owner, controller=controller)).writes


@pytest.mark.parametrize(("policy", "created"), [("OrderedReady", 1), ("Parallel", 500)])
def test_a_set_of_billions_takes_no_more_than_the_pods_of_one_sync(
    policy: str, created: int
) -> None:
    cluster = Cluster(replicas=2_000_000_000, pod_management_policy=policy)
    cluster.sync()
    assert len(cluster.pods()) == created


def test_pods_that_one_sync_did_not_create_are_those_of_the_next() -> None:
    cluster = Cluster(replicas=1_200, **PARALLEL)
    for created in (500, 1_000, 1_200, 1_200):
        cluster.sync()
        assert len(cluster.pods()) == created
