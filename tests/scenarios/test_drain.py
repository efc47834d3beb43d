"""kubectl cordon, drain and taint against a whole kcm: budgets are asked, taints are not."""

from __future__ import annotations

import pytest

from kcm.testing.waiting import until
from tests.scenarios.plane import Plane, StartPlane, start_plane
from tests.scenarios.system import needs_kubectl
from tests.scenarios.test_silent_simulated import is_deleting

__all__ = ["start_plane"]

pytestmark = [pytest.mark.scenario, needs_kubectl]

OBJECTS = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: Pod
metadata: {name: a, labels: {app: web}}
spec:
  nodeName: node-1
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: nginx}]
---
apiVersion: v1
kind: Pod
metadata: {name: b, labels: {app: web}}
spec:
  nodeName: node-2
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: nginx}]
"""


def get_allowed_disruptions(plane: Plane) -> int:
    return int(plane.get("pdb", "web").get("status", {}).get("disruptionsAllowed", -1))


def test_a_drain_asks_the_budget_and_a_taint_does_not(start_plane: StartPlane) -> None:
    plane = start_plane()
    plane.clock.run()  # kubectl waits in the time of the machine
    kubectl = plane.kubectl
    file = plane.folder / "objects.yaml"
    file.write_text(OBJECTS)
    assert kubectl("apply", "-f", str(file)).returncode == 0
    until(lambda: get_allowed_disruptions(plane) == 1, "a budget that allows one disruption")

    drained = kubectl("drain", "node-1", "--force", "--timeout=20s")
    assert drained.returncode == 0, drained.stderr
    assert "node/node-1 drained" in drained.stdout
    taints = plane.get("node", "node-1")["spec"]["taints"]
    assert [(t["effect"], t["key"]) for t in taints] == [
        ("NoSchedule", "node.kubernetes.io/unschedulable")
    ]
    until(lambda: get_allowed_disruptions(plane) == 0, "a budget that allows none")

    refused = kubectl("drain", "node-2", "--force", "--timeout=3s")
    assert refused.returncode != 0
    assert "would violate the pod's disruption budget" in refused.stderr
    assert not is_deleting(plane, "b")

    assert kubectl("uncordon", "node-1").returncode == 0
    until(lambda: "taints" not in plane.get("node", "node-1")["spec"], "the taint's end")
    assert kubectl("taint", "node", "node-2", "away=now:NoExecute").returncode == 0
    until(lambda: not kubectl("get", "pod", "b", "--ignore-not-found").stdout, "the eviction")
