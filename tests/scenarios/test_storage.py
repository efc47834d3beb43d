"""A StatefulSet of real processes keeps its files, whatever happens to pods and kubelet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kcm.testing.waiting import until
from tests.scenarios.system import System, system
from tests.scenarios.test_kubelets import SHORT, Kubelet

__all__ = ["system"]

pytestmark = pytest.mark.scenario

# With the only node of a cluster silent, nothing would be evicted: there is a simulated one.
FLAGS = ("--nodes=1", "--api-port=0", "--flower-port=0", "--health-port=0", *SHORT)
CLASS = """\
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: folders
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: kcm.dev/local
volumeBindingMode: WaitForFirstConsumer
"""
SET = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 0
      tolerations:
      - {key: node.kubernetes.io/unreachable, effect: NoExecute, operator: Exists,
         tolerationSeconds: 1}
      - {key: node.kubernetes.io/not-ready, effect: NoExecute, operator: Exists,
         tolerationSeconds: 60}
      nodeSelector: {kubernetes.io/hostname: one}
      containers:
      - name: main
        image: none
        command: [sh, -c, 'echo %s >> "$KCM_ROOT/data/started"; exec sleep 1000']
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 1Mi}}
"""


@pytest.fixture
def kubelet(system: System) -> Iterator[Kubelet]:
    system.start(*FLAGS)
    kubelet = Kubelet(system, "one")
    try:
        yield kubelet
    finally:
        kubelet.end()


def folders(system: System) -> list[Path]:
    """The folders of volumes on the node."""
    return sorted((system.folder / "s/kubelet/one/local-volumes").glob("*/data"))


def started(system: System) -> list[list[str]]:
    """What the processes of each volume have written."""
    files = [folder / "started" for folder in folders(system)]
    return [file.read_text().split() if file.exists() else [] for file in files]


def test_files_survive_a_rollout_and_a_kubelet_and_go_with_their_claims(
    system: System, kubelet: Kubelet
) -> None:
    system.apply(CLASS)
    system.apply(SET % "first")
    until(lambda: started(system) == [["first"]] * 2, "that both pods write")
    (one, two) = system.items("persistentvolumeclaims")
    assert {claim["status"]["phase"] for claim in (one, two)} == {"Bound"}
    assert one["status"]["capacity"] == {"storage": "1Mi"}

    system.apply(SET % "second")
    until(lambda: started(system) == [["first", "second"]] * 2, "the rollout")

    kubelet.end()  # with --end-containers
    kubelet.start()
    until(
        lambda: started(system) == [["first", "second", "second"]] * 2,
        "that the pods start again",
    )

    assert system.kcm("delete", "statefulset", "db").returncode == 0
    until(lambda: not system.items("persistentvolumes"), "that the volumes are deleted")
    assert folders(system) == []
    assert system.items("persistentvolumeclaims") == []
