"""An autoscaler follows a scripted load up and down, and does not go back and forth."""

from __future__ import annotations

import re

import pytest

from kcm.testing.waiting import until
from tests.scenarios.system import System, system

__all__ = ["system"]

pytestmark = pytest.mark.scenario

# At half of its request, each pod takes 50m: the load is one pod's, then nine pods', then one's.
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {simulation.kcm.dev/cpu: "shared 50m for 5s, 450m for 20s, 50m"}
    spec: {containers: [{name: main, image: nginx, resources: {requests: {cpu: 100m}}}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 20
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
"""
FLAGS = (
    "--horizontal-pod-autoscaler-sync-period=1s",
    "--horizontal-pod-autoscaler-downscale-stabilization=4s",
)


def ready(system: System) -> int:
    status = system.get("deployment", "web").get("status", {})
    return int(status.get("readyReplicas", 0)) if "unavailableReplicas" not in status else -1


def sizes(system: System) -> list[int]:
    """To how many replicas it was scaled, one after the other."""
    every = system.items("events")
    events = [event for event in every if event["reason"] == "SuccessfulRescale"]
    events.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
    assert all(event.get("count", 1) == 1 for event in events)
    return [int(re.findall(r"New size: (\d+);", event["message"])[0]) for event in events]


@pytest.mark.long
def test_an_autoscaler_follows_a_load_up_and_down_without_flapping(system: System) -> None:
    system.start("--nodes", "3", "--demo", "--", *FLAGS)
    system.apply(WEB)
    until(lambda: ready(system) == 9, "nine replicas under load")
    until(lambda: ready(system) == 1, "one replica when it is over", within=90)
    seen = sizes(system)
    peak = seen.index(9)
    assert seen[: peak + 1] == sorted(seen[: peak + 1])
    assert seen[peak:] == sorted(seen[peak:], reverse=True)
    assert max(seen) == 9
    hpa = system.get("hpa", "web")
    conditions = {c["type"]: (c["status"], c["reason"]) for c in hpa["status"]["conditions"]}
    assert conditions["ScalingActive"] == ("True", "ValidMetricFound")
    row = r"Deployment/web +cpu: 50%/50% +1 +20 +1 "
    until(lambda: re.search(row, system.kcm("get", "hpa").stdout), "the last figures")
