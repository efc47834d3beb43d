"""A StatefulSet on volumes of the simulated CSI driver, whose node is lost."""

from __future__ import annotations

import pytest

from tests.scenarios.plane import Plane, StartPlane, start_plane

__all__ = ["start_plane"]

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"

pytestmark = pytest.mark.scenario

SET = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: "i:1"}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      storageClassName: simulated
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 1Gi}}
"""


def attachments(plane: Plane) -> dict[str, tuple[str, bool]]:
    """Node and `attached` of each volume with a VolumeAttachment."""
    return {
        one["spec"]["source"]["persistentVolumeName"]: (
            one["spec"]["nodeName"],
            one.get("status", {}).get("attached", False),
        )
        for one in plane.items("volumeattachments.storage.k8s.io")
    }


def place(plane: Plane, name: str) -> str:
    """The node of a pod that runs; "" if it does not."""
    pod = plane.get("pod", name)
    running = pod.get("status", {}).get("phase") == "Running"
    gone = "deletionTimestamp" in pod.get("metadata", {})
    return str(pod["spec"]["nodeName"]) if running and not gone else ""


def reasons(plane: Plane, pod: str) -> dict[str, str]:
    return {
        event["reason"]: event["message"]
        for event in plane.items("events")
        if event["involvedObject"]["name"] == pod
    }


def in_use(plane: Plane, node: str) -> set[str]:
    return set(plane.get("node", node)["status"].get("volumesInUse", ()))


def attached(plane: Plane, node: str) -> set[str]:
    listed = plane.get("node", node)["status"].get("volumesAttached", ())
    return {volume["name"] for volume in listed}


def test_a_volume_follows_its_pod_from_a_lost_node_once_that_is_said_to_be_down(
    start_plane: StartPlane,
) -> None:
    plane = start_plane()
    plane.apply(SET)
    plane.until(lambda: place(plane, "db-0") and place(plane, "db-1"), "that both pods run")
    assert "SuccessfulAttachVolume" in reasons(plane, "db-0")
    lost = place(plane, "db-0")
    volume = plane.get("pvc", "data-db-0")["spec"]["volumeName"]
    before = attachments(plane)
    assert before[volume] == (lost, True)
    plane.until(lambda: in_use(plane, lost) == attached(plane, lost) != set(), "that it is in use")

    plane.plane.nodes[lost].stop()
    plane.patch("node", lost, {"spec": {"unschedulable": True}})
    assert plane.kcm("delete", "pod", "db-0", "--force", "--grace-period=0").returncode == 0
    plane.until(
        lambda: "FailedAttachVolume" in reasons(plane, "db-0"), "that the new pod has to wait"
    )
    assert reasons(plane, "db-0")["FailedAttachVolume"].startswith("Multi-Attach error for volume")
    assert attachments(plane)[volume] == (lost, True)
    assert place(plane, "db-0") == ""

    taints = plane.get("node", lost)["spec"].get("taints", [])
    down = {"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}
    plane.patch("node", lost, {"spec": {"taints": [*taints, down]}})
    plane.until(lambda: place(plane, "db-0"), "that the pod runs elsewhere")
    elsewhere = place(plane, "db-0")
    assert elsewhere != lost
    assert attachments(plane)[volume] == (elsewhere, True)
    assert plane.get("pvc", "data-db-0")["spec"]["volumeName"] == volume
