"""A Deployment rolled with kubectl, against a whole kcm: watched, paused, stuck, undone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kcm.testing.waiting import until
from tests.scenarios.plane import Plane, StartPlane, start_plane
from tests.scenarios.system import needs_kubectl

__all__ = ["start_plane"]

pytestmark = [pytest.mark.scenario, needs_kubectl]

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  progressDeadlineSeconds: 6
  selector: {matchLabels: {app: web}}
  strategy: {rollingUpdate: {maxUnavailable: 1, maxSurge: 1}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "nginx:1.25"}]
"""
BAD = {
    "spec": {
        "template": {
            "metadata": {"annotations": {"simulation.kcm.dev/outcome": "image-pull-error"}},
            "spec": {"containers": [{"name": "main", "image": "nginx:nowhere"}]},
        }
    }
}


class Kubectl:
    """kubectl, as somebody at a prompt has it."""

    def __init__(self, plane: Plane) -> None:
        self.run = plane.kubectl

    def __call__(self, *args: str) -> str:
        done = self.run(*args)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def web(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self("get", "deployment", "web", "-o", "json"))
        return body

    def images(self) -> set[str]:
        """Of the pods that run and stay."""
        pods = json.loads(self("get", "pods", "-o", "json"))["items"]
        return {
            pod["spec"]["containers"][0]["image"]
            for pod in pods
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        }


def test_a_rollout_is_watched_paused_stuck_and_undone(start_plane: StartPlane) -> None:
    plane = start_plane()
    plane.clock.run()  # kubectl waits in the time of the machine
    kubectl = Kubectl(plane)
    file = plane.folder / "web.yaml"
    file.write_text(WEB)
    kubectl("apply", "-f", str(file))
    watched = kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert 'deployment "web" successfully rolled out' in watched

    # Paused: the new template waits. Resumed: it comes.
    kubectl("rollout", "pause", "deployment/web")
    kubectl("set", "image", "deployment/web", "main=nginx:1.26")
    until(lambda: kubectl.web()["status"]["observedGeneration"] >= 3, "a look at the new template")
    assert kubectl.images() == {"nginx:1.25"}
    kubectl("rollout", "resume", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    until(lambda: kubectl.images() == {"nginx:1.26"}, "the new image alone")

    # An image that cannot be had: no more than one pod is given up for it, and it is told.
    kubectl("patch", "deployment", "web", "--type=strategic", "-p", json.dumps(BAD))
    stuck = kubectl.run("rollout", "status", "deployment/web", "--timeout=60s")
    assert stuck.returncode == 1
    assert "exceeded its progress deadline" in stuck.stderr
    deployment_body = kubectl.web()
    reasons = {c["type"]: c.get("reason") for c in deployment_body["status"]["conditions"]}
    assert reasons["Progressing"] == "ProgressDeadlineExceeded"
    assert deployment_body["status"]["availableReplicas"] >= 3
    assert kubectl.images() == {"nginx:1.26"}

    undone = kubectl("rollout", "undo", "deployment/web")
    assert "deployment.apps/web rolled back" in undone
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    history = kubectl("rollout", "history", "deployment/web")
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["1", "3", "4"]
    assert kubectl.images() == {"nginx:1.26"}
