"""Tests updates and revisions of StatefulSets."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kcm.api.apps_v1 import (
    ControllerRevision,
    StatefulSetOrdinals,
)
from kcm.api.core_v1 import (
    ContainerState,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
)
from kcm.apimachinery.ownership import is_controlled_by
from tests.set_builders import kubelet
from tests.unit.controllers.statefulset_world import (
    ON_DELETE,
    Cluster,
    build_rolling_update,
)

# --- updates


def test_an_update_goes_from_the_last_to_the_first() -> None:
    cluster = Cluster(replicas=3)
    cluster.settle()
    cluster.image("nginx:2")
    images_by_round = []
    for _ in range(12):
        cluster.sync()
        kubelet(cluster.world)
        images_by_round.append(" ".join(image.rpartition(":")[2] for image in cluster.images()))
    assert [line for i, line in enumerate(images_by_round) if line not in images_by_round[:i]] == [
        "1.25 1.25",
        "1.25 1.25 2",
        "1.25 2",
        "1.25 2 2",
        "2 2",
        "2 2 2",
    ]
    status = cluster.stored.status
    assert status.current_revision == status.update_revision
    assert (status.current_replicas, status.updated_replicas) == (3, 3)
    assert [number for number, _ in cluster.revisions()] == [1, 2]


def test_a_partition_keeps_the_pods_below_it() -> None:
    cluster = Cluster(replicas=3, **build_rolling_update(partition=2))
    cluster.settle()
    cluster.image("nginx:2")
    cluster.settle()
    assert cluster.images() == ["nginx:1.25", "nginx:1.25", "nginx:2"]
    status = cluster.stored.status
    assert status.current_revision != status.update_revision
    assert (status.current_replicas, status.updated_replicas) == (2, 1)
    cluster.world.remove(cluster.world.objects["pods", "default/web-0"])
    cluster.settle()
    assert cluster.images() == ["nginx:1.25", "nginx:1.25", "nginx:2"]


def test_a_partition_counts_from_the_first_ordinal() -> None:
    cluster = Cluster(
        replicas=2, ordinals=StatefulSetOrdinals(start=7), **build_rolling_update(partition=1)
    )
    cluster.settle()
    cluster.image("nginx:2")
    cluster.settle()
    assert cluster.images() == ["nginx:1.25", "nginx:2"]


def test_on_delete_waits_for_somebody_to_delete() -> None:
    cluster = Cluster(replicas=2, **ON_DELETE)
    cluster.settle()
    cluster.image("nginx:2")
    cluster.settle()
    assert cluster.images() == ["nginx:1.25", "nginx:1.25"]
    cluster.world.remove(cluster.world.objects["pods", "default/web-1"])
    cluster.settle()
    assert cluster.images() == ["nginx:1.25", "nginx:2"]


@pytest.mark.parametrize(
    ("gate", "unavailable", "left"),
    [(True, 2, 3), (True, "50%", 3), (True, "10%", 4), (True, None, 4), (False, 2, 4)],
)
def test_max_unavailable_is_honoured_behind_its_gate(
    gate: bool, unavailable: int | str | None, left: int
) -> None:
    cluster = Cluster(gate=gate, replicas=5, **build_rolling_update(unavailable=unavailable))
    cluster.settle()
    cluster.image("nginx:2")
    cluster.sync()
    assert sum(not pod.deleting for pod in cluster.pods()) == left
    cluster.settle()
    assert set(cluster.images()) == {"nginx:2"}


# --- revisions


def test_an_undo_brings_the_old_revision_back_under_a_new_number() -> None:
    cluster = Cluster(replicas=1)
    for image in ("nginx:1.25", "nginx:2", "nginx:1.25"):
        cluster.image(image)
        cluster.settle()
    assert [number for number, _ in cluster.revisions()] == [2, 3]
    assert cluster.stored.status.update_revision == cluster.revisions()[-1][1]


def test_old_revisions_beyond_the_limit_go() -> None:
    cluster = Cluster(replicas=1, revision_history_limit=1)
    for number in range(5):
        cluster.image(f"nginx:{number}")
        cluster.settle()
    assert [number for number, _ in cluster.revisions()] == [4, 5]


def test_a_name_that_is_taken_is_counted() -> None:
    cluster = Cluster(replicas=1)
    cluster.settle()
    (revision,) = cluster.world.of(ControllerRevision)
    other = Cluster(replicas=1)
    stranger = revision.with_metadata(owner_references=None, labels={"app": "x"})
    assert isinstance(stranger, ControllerRevision)
    other.world.put(stranger.replace(data={"other": 1}))
    other.settle()
    assert other.stored.status.collision_count == 1
    assert other.names() == ["web-0"]


def test_orphaned_revisions_are_adopted() -> None:
    cluster = Cluster(replicas=1)
    cluster.settle()
    (revision,) = cluster.world.of(ControllerRevision)
    cluster.world.put(revision.with_metadata(owner_references=None))
    cluster.settle()
    (revision,) = cluster.world.of(ControllerRevision)
    assert is_controlled_by(revision, cluster.stored)


# --- the known traps


def set_waiting(pod: Pod, reason: str) -> Pod:
    state = ContainerState(waiting=ContainerStateWaiting(reason=reason))
    status = ContainerStatus(name="c", state=state)
    return pod.with_status(pod.status.replace(container_statuses=[status]))


def test_a_rollback_that_waits_for_a_broken_pod_says_so_67250() -> None:
    cluster = Cluster(replicas=2)
    cluster.settle()
    cluster.broken = "broken:1"
    cluster.image("broken:1")
    cluster.settle()
    cluster.world.put(set_waiting(cluster.pods()[1], "ImagePullBackOff"))
    cluster.settle()
    assert not cluster.stored.status.conditions  # a failing update is no stall
    cluster.image("nginx:1.25")
    cluster.events.clear()
    cluster.settle()
    assert cluster.images() == ["nginx:1.25", "broken:1"]  # as upstream: it waits
    (condition,) = cluster.stored.status.conditions or []
    assert (condition.type, condition.status, condition.reason) == (
        "Stalled",
        "True",
        "OldPodNotReady",
    )
    (event,) = cluster.events
    assert "delete the pod to go on" in event
    cluster.world.remove(cluster.world.objects["pods", "default/web-1"])
    cluster.settle()
    assert cluster.images() == ["nginx:1.25", "nginx:1.25"]
    assert cluster.stored.status.conditions is None


def test_a_pod_counts_as_available_exactly_when_its_time_is_up_136831() -> None:
    cluster = Cluster(replicas=2, min_ready_seconds=30)
    cluster.sync()
    kubelet(cluster.world)
    cluster.world.now += timedelta(seconds=10)
    plan = cluster.sync()
    assert plan.requeue_after == 20
    assert cluster.names() == ["web-0"]
    assert (cluster.stored.status.ready_replicas, cluster.stored.status.available_replicas) == (
        1,
        0,
    )
    cluster.world.now += timedelta(seconds=21)
    plan = cluster.sync()
    assert cluster.stored.status.available_replicas == 1
    assert cluster.names() == ["web-0", "web-1"]
    kubelet(cluster.world)
    cluster.world.now += timedelta(seconds=5)
    assert cluster.sync().requeue_after == 25
