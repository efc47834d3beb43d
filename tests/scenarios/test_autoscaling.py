"""An autoscaler follows a scripted load up and down, and does not go back and forth."""

from __future__ import annotations

import re

import pytest

from tests.scenarios.plane import Plane, StartPlane, start_plane

__all__ = ["start_plane"]

pytestmark = pytest.mark.scenario

# At half of its request, each pod takes 50m: the load is one pod's, then nearly that of ten, then
# one pod's.
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {simulation.kcm.dev/cpu: "shared 50m for 2m, 480m for 10m, 50m"}
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


def ready(plane: Plane) -> int:
    status = plane.get("deployment", "web").get("status", {})
    return int(status.get("readyReplicas", 0)) if "unavailableReplicas" not in status else -1


def sizes(plane: Plane) -> list[int]:
    """To how many replicas it was scaled, one after the other."""
    every = plane.items("events")
    events = [event for event in every if event["reason"] == "SuccessfulRescale"]
    events.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
    assert all(event.get("count", 1) == 1 for event in events)
    return [int(re.findall(r"New size: (\d+);", event["message"])[0]) for event in events]


def test_an_autoscaler_follows_a_load_up_and_down_without_flapping(start_plane: StartPlane) -> None:
    plane = start_plane()
    plane.apply(WEB)
    plane.until(lambda: ready(plane) == 10, "ten replicas under load")
    plane.until(lambda: ready(plane) == 1, "one replica when it is over")
    seen = sizes(plane)
    peak = seen.index(10)
    assert seen[: peak + 1] == sorted(seen[: peak + 1])
    assert seen[peak:] == sorted(seen[peak:], reverse=True)
    assert max(seen) == 10
    hpa = plane.get("hpa", "web")
    conditions = {c["type"]: (c["status"], c["reason"]) for c in hpa["status"]["conditions"]}
    assert conditions["ScalingActive"] == ("True", "ValidMetricFound")
    row = r"Deployment/web +cpu: 50%/50% +1 +20 +1 "
    plane.until(lambda: re.search(row, plane.kcm("get", "hpa").stdout), "the last figures")
