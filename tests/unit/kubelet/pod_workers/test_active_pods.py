"""The pods that count against the node's resources."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.kubelet.pod_workers.active_pods import ActivePods
from kcm.kubelet.pod_workers.pod_states import PodStates
from kcm.kubelet.pod_workers.pod_sync_status import PodSyncStatus
from kcm.kubelet.pods.pod_manager import PodManager
from kcm.kubelet.status.manager import StatusManager
from kcm.testing.clock import FakeClock
from tests.unit.kubelet.views import NOW, pod

UID = pod().uid or ""


@pytest.mark.parametrize(
    ("phase", "ends", "ended", "active"),
    [
        ("Running", False, False, True),
        ("Running", True, False, True),
        ("Running", True, True, False),
        ("Succeeded", False, False, False),
        ("Failed", True, False, True),
    ],
)
def test_a_pod_counts_until_its_containers_have_ended(
    phase: str, ends: bool, ended: bool, active: bool
) -> None:
    pods, states = PodManager(), PodStates()
    store: Any = None  # nothing is written
    statuses = StatusManager(
        store, pods, FakeClock(NOW), could_have_running_containers=lambda _: False
    )
    known = pod(phase=phase)
    pods.add(known)
    states.statuses[UID] = PodSyncStatus(
        NOW,
        "web_default",
        terminating_at=NOW if ends else None,
        terminated_at=NOW if ended else None,
    )
    assert ActivePods(pods, states, statuses).get_all() == ([known] if active else [])
