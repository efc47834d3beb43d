"""kubectl cordon, drain and taint against a whole kcm: budgets are asked, taints are not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kcm.testing.waiting import until
from tests.scenarios.system import System, system
from tests.scenarios.test_silent_simulated import is_deleting

__all__ = ["system"]

KUBECTL = Path(os.environ.get("KCM_KUBECTL_DIR", "/nowhere")) / "kubectl.1.33"

pytestmark = [
    pytest.mark.scenario,
    pytest.mark.skipif(not KUBECTL.exists(), reason="KCM_KUBECTL_DIR names no kubectl"),
]

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


def get_allowed_disruptions(system: System) -> int:
    return int(system.get("pdb", "web").get("status", {}).get("disruptionsAllowed", -1))


def test_a_drain_asks_the_budget_and_a_taint_does_not(system: System) -> None:
    system.start("--nodes", "3", "--demo")
    config = next(system.folder.rglob("*kubeconfig*"))

    def kubectl(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(KUBECTL), f"--kubeconfig={config}", *args],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    file = system.folder / "objects.yaml"
    file.write_text(OBJECTS)
    assert kubectl("apply", "-f", str(file)).returncode == 0
    until(lambda: get_allowed_disruptions(system) == 1, "a budget that allows one disruption")

    drained = kubectl("drain", "node-1", "--force", "--timeout=20s")
    assert drained.returncode == 0, drained.stderr
    assert "node/node-1 drained" in drained.stdout
    taints = system.get("node", "node-1")["spec"]["taints"]
    assert [(t["effect"], t["key"]) for t in taints] == [
        ("NoSchedule", "node.kubernetes.io/unschedulable")
    ]
    until(lambda: get_allowed_disruptions(system) == 0, "a budget that allows none")

    refused = kubectl("drain", "node-2", "--force", "--timeout=3s")
    assert refused.returncode != 0
    assert "would violate the pod's disruption budget" in refused.stderr
    assert not is_deleting(system, "b")

    assert kubectl("uncordon", "node-1").returncode == 0
    until(lambda: "taints" not in system.get("node", "node-1")["spec"], "the taint's end")
    assert kubectl("taint", "node", "node-2", "away=now:NoExecute").returncode == 0
    until(lambda: not kubectl("get", "pod", "b", "--ignore-not-found").stdout, "the eviction")
