"""A StatefulSet on volumes of the simulated CSI driver, whose node is lost."""

from __future__ import annotations

import pytest

from kcm.testing.waiting import until
from tests.scenarios.system import System, system

__all__ = ["system"]

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


def attachments(system: System) -> dict[str, tuple[str, bool]]:
    """Node and `attached` of each volume with a VolumeAttachment."""
    return {
        one["spec"]["source"]["persistentVolumeName"]: (
            one["spec"]["nodeName"],
            one.get("status", {}).get("attached", False),
        )
        for one in system.items("volumeattachments.storage.k8s.io")
    }


def place(system: System, name: str) -> str:
    """The node of a pod that runs; "" if it does not."""
    pod = system.get("pod", name)
    running = pod.get("status", {}).get("phase") == "Running"
    gone = "deletionTimestamp" in pod.get("metadata", {})
    return str(pod["spec"]["nodeName"]) if running and not gone else ""


def reasons(system: System, pod: str) -> dict[str, str]:
    return {
        event["reason"]: event["message"]
        for event in system.items("events")
        if event["involvedObject"]["name"] == pod
    }


def in_use(system: System, node: str) -> set[str]:
    return set(system.get("node", node)["status"].get("volumesInUse", ()))


def attached(system: System, node: str) -> set[str]:
    listed = system.get("node", node)["status"].get("volumesAttached", ())
    return {volume["name"] for volume in listed}


def test_a_volume_follows_its_pod_from_a_lost_node_once_that_is_said_to_be_down(
    system: System,
) -> None:
    system.start("--nodes=3", "--api-port=0", "--flower-port=0", "--health-port=0")
    system.apply(SET)
    until(lambda: place(system, "db-0") and place(system, "db-1"), "that both pods run")
    assert "SuccessfulAttachVolume" in reasons(system, "db-0")
    lost = place(system, "db-0")
    volume = system.get("pvc", "data-db-0")["spec"]["volumeName"]
    before = attachments(system)
    assert before[volume] == (lost, True)
    until(lambda: in_use(system, lost) == attached(system, lost) != set(), "that it is in use")

    assert system.kcm("nodes", "stop", lost).returncode == 0
    system.patch("node", lost, {"spec": {"unschedulable": True}})
    assert system.kcm("delete", "pod", "db-0", "--force", "--grace-period=0").returncode == 0
    until(lambda: "FailedAttachVolume" in reasons(system, "db-0"), "that the new pod has to wait")
    assert reasons(system, "db-0")["FailedAttachVolume"].startswith("Multi-Attach error for volume")
    assert attachments(system)[volume] == (lost, True)
    assert place(system, "db-0") == ""

    taints = system.get("node", lost)["spec"].get("taints", [])
    down = {"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}
    system.patch("node", lost, {"spec": {"taints": [*taints, down]}})
    until(lambda: place(system, "db-0"), "that the pod runs elsewhere")
    elsewhere = place(system, "db-0")
    assert elsewhere != lost
    assert attachments(system)[volume] == (elsewhere, True)
    assert system.get("pvc", "data-db-0")["spec"]["volumeName"] == volume
