"""Tests which status a ReplicaSet gets from its pods and the outcome of a sync."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kcm import errors
from kcm.api.apps_v1 import ReplicaSet, ReplicaSetCondition, ReplicaSetStatus
from kcm.api.core_v1 import Pod
from kcm.controllers.replicaset.status import ReplicaSetObservation, count_pods, status_after
from kcm.reconcile.plan import Create, Delete, Failure, Outcome
from kcm.testing.builders import START, pod, replica_set
from kcm.testing.views import NOW

REFUSED = Outcome(failures=[Failure(Create(pod("new")), errors.Forbidden("exceeded quota"))])
FAILING = ReplicaSetCondition(
    type="ReplicaFailure",
    status="True",
    reason="FailedCreate",
    message="earlier",
    last_transition_time=START,
)


def compute_status(rs: ReplicaSet, *pods: Pod, outcome: Outcome | None = None) -> ReplicaSetStatus:
    counts = count_pods(rs, pods, NOW)
    update = status_after(ReplicaSetObservation(rs, counts, None, NOW), outcome or Outcome())
    assert update is not None
    assert isinstance(update.new, ReplicaSet)
    return update.new.status


def build_running_pod(name: str, *, ready_for: float | None = None, labels: Any = None) -> Pod:
    since = NOW - timedelta(seconds=ready_for or 0)
    labels = labels or {"app": "web"}
    ready = ready_for is not None
    return pod(name, labels=labels, phase="Running", ready=ready, ready_since=since)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([], (0, None, None, None)),
        ([build_running_pod("a")], (1, 1, None, None)),
        ([build_running_pod("a", ready_for=5)], (1, 1, 1, None)),
        ([build_running_pod("a", ready_for=31)], (1, 1, 1, 1)),
        ([build_running_pod("a", ready_for=30)], (1, 1, 1, None)),
        ([build_running_pod("a", ready_for=31, labels={"app": "other"})], (1, None, 1, 1)),
        (
            [build_running_pod("a", labels={"app": "web", "more": "x"}), build_running_pod("b")],
            (2, 2, None, None),
        ),
        (
            [
                build_running_pod("a"),
                build_running_pod("b", labels={"app": "x"}),
                build_running_pod("c"),
            ],
            (3, 2, None, None),
        ),
    ],
)
def test_pods_count_by_how_far_they_have_come(
    pods: list[Pod], expected: tuple[int | None, ...]
) -> None:
    status = compute_status(replica_set(min_ready_seconds=30), *pods)
    assert expected == (
        status.replicas,
        status.fully_labeled_replicas,
        status.ready_replicas,
        status.available_replicas,
    )


def test_without_min_ready_seconds_ready_is_available() -> None:
    assert (
        compute_status(replica_set(), build_running_pod("a", ready_for=0)).available_replicas == 1
    )


def test_the_generation_acted_on_is_recorded() -> None:
    assert compute_status(replica_set(metadata={"generation": 7})).observed_generation == 7


def test_a_new_generation_alone_is_a_reason_to_write() -> None:
    rs = replica_set(metadata={"generation": 2}, status={"observed_generation": 1})
    assert compute_status(rs).observed_generation == 2


def test_nothing_is_written_when_nothing_changed() -> None:
    pods = [build_running_pod("a", ready_for=1)]
    rs = replica_set()
    rs = rs.with_status(compute_status(rs, *pods))
    counts = count_pods(rs, pods, NOW)
    assert status_after(ReplicaSetObservation(rs, counts, None, NOW), Outcome()) is None


def test_a_refused_creation_shows_as_replica_failure() -> None:
    (condition,) = compute_status(replica_set(), outcome=REFUSED).conditions or []
    assert (condition.type, condition.status) == ("ReplicaFailure", "True")
    assert (condition.reason, condition.message) == ("FailedCreate", "exceeded quota")
    assert condition.last_transition_time == NOW


def test_a_refused_deletion_shows_as_replica_failure() -> None:
    outcome = Outcome(failures=[Failure(Delete(pod("old")), errors.Forbidden("no"))])
    (condition,) = compute_status(replica_set(), outcome=outcome).conditions or []
    assert (condition.reason, condition.message) == ("FailedDelete", "unable to delete pods: no")


def test_the_first_failure_stays_until_one_sync_succeeds() -> None:
    rs = replica_set(status={"conditions": [FAILING]})
    assert compute_status(rs, outcome=REFUSED).conditions == [FAILING]
    assert compute_status(rs).conditions is None


def test_conditions_of_others_are_kept() -> None:
    foreign = ReplicaSetCondition(type="Theirs", status="True")
    rs = replica_set(status={"conditions": [foreign, FAILING]})
    assert compute_status(rs).conditions == [foreign]
    rs = replica_set(status={"conditions": [foreign]})
    assert [c.type for c in compute_status(rs, outcome=REFUSED).conditions or []] == [
        "Theirs",
        "ReplicaFailure",
    ]
