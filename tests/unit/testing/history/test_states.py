"""States of objects in a few words."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.testing.history.snapshot import Item
from kcm.testing.history.states import describe_state


@pytest.mark.parametrize(
    ("resource", "spec", "status", "words"),
    [
        ("deployments.apps", {"replicas": 3}, {"readyReplicas": 1}, "1 of 3 ready"),
        ("statefulsets.apps", {}, {}, "0 of 1 ready"),
        ("daemonsets.apps", {}, {"desiredNumberScheduled": 2, "numberReady": 2}, "2 of 2 ready"),
        ("jobs.batch", {}, {"failed": 1, "conditions": [{"type": "Failed", "status": "True"}]},
         "Failed, 0 active, 0 succeeded, 1 failed"),
        ("nodes", {"unschedulable": True}, {"conditions": [{"type": "Ready", "status": "True"}]},
         "Ready, unschedulable"),
        ("nodes", {}, {}, "not ready (no condition)"),
        ("namespaces", {}, {"phase": "Active"}, "Active"),
        ("tabs.example.com", {}, {"conditions": [{"type": "A", "status": "False"}]}, "A=False"),
        ("configmaps", {}, {}, "exists"),
        ("poddisruptionbudgets.policy", {}, {"disruptionsAllowed": 1, "currentHealthy": 3,
         "desiredHealthy": 2}, "1 disruptions allowed, 3 of 2 healthy"),
        ("pods", {"containers": [{}, {}], "nodeName": "node-1"},
         {"phase": "Pending", "containerStatuses": [{"ready": True}, {"ready": False, "state": {
             "waiting": {"reason": "ErrImagePull"}}}]},
         "Pending, 1 of 2 containers ready, ErrImagePull, on node-1"),
        ("pods", {}, {}, "no phase, 0 of 0 containers ready, on no node"),
    ],
)  # fmt: skip
def test_a_state_is(resource: str, spec: Any, status: Any, words: str) -> None:
    assert describe_state(Item(resource, {"spec": spec, "status": status})) == words


def test_a_deletion_is_part_of_the_state() -> None:
    gone = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert describe_state(Item("configmaps", gone)) == "exists, being deleted"
