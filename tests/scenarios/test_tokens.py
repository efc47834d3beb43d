"""A program in a pod finds the API server and its token, as the client libraries do."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from kcm.testing.waiting import until
from tests.scenarios.system import System, system

__all__ = ["system"]

pytestmark = pytest.mark.scenario

CAN_MOUNT = (
    shutil.which("unshare")
    and not subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode
)
# Where the kubelet may not mount, libraries have to be told where the files are (docs/kubelet.md).
INSIDE = "config.load_incluster_config()"
OUTSIDE = """\
root = os.environ["KCM_ROOT"]
from kubernetes.config import incluster_config as files
files.InClusterConfigLoader(
    root + files.SERVICE_TOKEN_FILENAME, root + files.SERVICE_CERT_FILENAME
).load_and_set()
"""
PROGRAM = f"""\
import os
from kubernetes import client, config
{INSIDE if CAN_MOUNT else OUTSIDE}
pods = client.CoreV1Api().list_namespaced_pod("shop").items
review = client.AuthenticationV1Api().create_self_subject_review(client.V1SelfSubjectReview())
print(review.status.user_info.username, *(pod.metadata.name for pod in pods))
"""
MANIFEST = """\
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: shop}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: robot, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: robot, namespace: shop}]
---
apiVersion: v1
kind: Secret
metadata:
  name: robots
  namespace: shop
  annotations: {kubernetes.io/service-account.name: robot}
type: kubernetes.io/service-account-token
"""


def manifest_of_pod() -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "client", "namespace": "shop"},
            "spec": {
                "serviceAccountName": "robot",
                "restartPolicy": "Never",
                "nodeSelector": {"kcm.dev/process": "true"},
                "tolerations": [{"key": "kcm.dev/process", "operator": "Exists"}],
                "containers": [
                    {"name": "main", "image": "python", "command": [sys.executable, "-c", PROGRAM]}
                ],
            },
        }
    )


def test_a_program_in_a_pod_reads_the_api_with_its_own_token(system: System) -> None:
    system.start("--kubelet", "--nodes=0")
    system.apply(MANIFEST)
    system.apply(manifest_of_pod())

    def phase() -> str:
        return str(system.get("pod", "client", "shop")["status"].get("phase"))

    until(lambda: phase() in {"Succeeded", "Failed"}, "the program")
    logs = sorted((system.folder / "s" / "kubelet").glob("*/logs/shop_client_*/main/*.log"))
    text = "".join(file.read_text() for file in logs)
    assert phase() == "Succeeded", text
    assert "system:serviceaccount:shop:robot client" in text
    until(lambda: "token" in system.get("secret", "robots", "shop").get("data", {}), "the Secret")
    data = system.get("secret", "robots", "shop")["data"]
    assert sorted(data) == ["ca.crt", "namespace", "token"]
