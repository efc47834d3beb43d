"""Tests that a snapshot keeps no more of the past than the present is large."""

from __future__ import annotations

from kcm.controllers.scheduler.cluster_events import ClusterEventKind
from kcm.controllers.scheduler.snapshot import LEAST_KEPT, Snapshot
from kcm.testing.builders import node, pod


def test_pods_that_come_and_go_leave_little_behind() -> None:
    snapshot, place = Snapshot(), node("n1")
    for number in range(2 * LEAST_KEPT):
        present = pod(f"p-{number}", node="n1", phase="Running")
        snapshot.update(number + 1, [place], [present])
    assert list(snapshot.by_name["n1"].pods) == [present.uid]
    assert len(snapshot.log) <= LEAST_KEPT + 2
    assert len(snapshot.cluster_events) <= LEAST_KEPT + 2
    assert snapshot.known_since > 1


def test_a_burst_of_pods_is_followed_without_beginning_again() -> None:
    snapshot, place = Snapshot(), node("n1")
    snapshot.update(1, [place], [])
    layout = snapshot.layout
    pods = [pod(f"p-{n}", node="n1", phase="Running") for n in range(2 * LEAST_KEPT)]
    snapshot.update(2, [place], pods)
    snapshot.update(3, [place], pods)
    assert (snapshot.layout, len(snapshot.log)) == (layout, 2 * LEAST_KEPT)


def test_changes_of_attachments_and_of_other_storage_are_noted_once_each() -> None:
    snapshot = Snapshot()
    snapshot.update(1, [], [])
    snapshot.update_storage([], (1,), 1)
    assert not snapshot.cluster_events  # the first look shows no change
    for versions, attachments in (((1,), 2), ((1,), 2), ((2,), 2), ((2,), 2)):
        snapshot.update_storage([], versions, attachments)
    assert [event.kind for event in snapshot.cluster_events] == [
        ClusterEventKind.ATTACHMENTS,
        ClusterEventKind.STORAGE,
    ]
