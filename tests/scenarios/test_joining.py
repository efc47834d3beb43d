"""A machine joins with a bootstrap token, runs pods, and rotates its certificates."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from kcm.apiserver.bootstrap.kubernetes_service import find_advertised_address
from kcm.testing.waiting import PATIENCE, until
from tests.scenarios.system import KCM, ROOT, System, system

__all__ = ["system"]

pytestmark = pytest.mark.scenario

NODE = "joined-1"
PODS = """
apiVersion: v1
kind: Secret
metadata: {name: own}
stringData: {word: hello}
---
apiVersion: v1
kind: Secret
metadata: {name: foreign}
stringData: {word: secret}
---
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  nodeName: joined-1
  terminationGracePeriodSeconds: 0
  volumes: [{name: s, secret: {secretName: own}}]
  containers:
  - name: c
    image: none
    command: [sh, -c, "cat $KCM_ROOT/words/word; echo; sleep 300"]
    volumeMounts: [{name: s, mountPath: /words}]
"""
LOOPBACK = "127.0.0.1"
ADDRESS = find_advertised_address("0.0.0.0") or LOOPBACK


class Machine:
    """Another machine: a folder with a kubelet that has no Redis and no state folder of kcm up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir()
        self.log = folder / "kubelet.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def env(self) -> dict[str, str]:
        kept = {name: v for name, v in os.environ.items() if not name.startswith("KCM_")}
        return {**kept, "PYTHONPATH": str(ROOT), "HOME": str(self.folder)}

    def start(self, join_commands: str) -> None:
        """Types the join commands, with a name for the node and a free port."""
        setup, _, command = join_commands.strip().rpartition("\n")
        subprocess.run(["sh", "-ec", setup], cwd=self.folder, env=self.env, check=True)
        flags = ["--node-name", NODE, "--port=0", "--eviction-hard=memory.available<1Mi"]
        flags += ["--node-ip", ADDRESS]
        arguments = [*KCM, *command.split()[1:], *flags, "--end-containers"]
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                arguments, cwd=self.folder, env=self.env, stdout=out, stderr=out
            )

    def stop(self) -> None:
        assert self.process is not None
        children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)
        psutil.wait_procs(children, PATIENCE)

    @property
    def pki(self) -> Path:
        return self.folder / ".kcm" / "kubelet" / NODE / "pki"

    def certificate(self) -> str:
        """Returns the name of the file to which the current client certificate leads."""
        link = self.pki / "kubelet-client-current.pem"
        return os.readlink(link) if link.is_symlink() else ""


@contextmanager
def machine(folder: Path) -> Iterator[Machine]:
    made = Machine(folder)
    try:
        yield made
    finally:
        if made.process is not None and made.process.poll() is None:
            made.stop()


def admin(system: System) -> httpx.Client:
    """Returns a client with the administrator's token."""
    token = (system.folder / "s" / "apiserver-token").read_text().strip()
    return httpx.Client(
        base_url=f"https://127.0.0.1:{system.api}",
        headers={"authorization": f"Bearer {token}"},
        verify=ssl.create_default_context(cafile=str(system.folder / "s" / "apiserver.crt")),
    )


def approve_serving(system: System) -> None:
    """Approves the requests for a serving certificate, as an administrator does."""
    kind = "certificatesigningrequests"
    condition = {"type": "Approved", "status": "True", "reason": "Test", "message": "by the test"}
    for one in system.items(kind):
        is_new = not one.get("status", {}).get("conditions")
        if one["spec"]["signerName"] != "kubernetes.io/kubelet-serving" or not is_new:
            continue
        with admin(system) as client:
            approved = client.patch(
                f"/apis/certificates.k8s.io/v1/{kind}/{one['metadata']['name']}/approval",
                json={"status": {"conditions": [condition]}},
                headers={"content-type": "application/merge-patch+json"},
            )
        assert approved.status_code == 200, approved.text


def is_measured(system: System) -> bool:
    """Reports whether the metrics API has the usage of the node and its pod, after it has let the
    node have another serving certificate if it wants one.
    """
    approve_serving(system)
    metrics = "/apis/metrics.k8s.io/v1beta1"
    with admin(system) as client:
        node = client.get(f"{metrics}/nodes/{NODE}")
        pod = client.get(f"{metrics}/namespaces/default/pods/writer")
    if node.status_code != 200 or pod.status_code != 200:
        return False
    (container,) = pod.json()["containers"]
    return set(node.json()["usage"]) == set(container["usage"]) == {"cpu", "memory"}


def refusal(response: httpx.Response) -> str:
    assert response.status_code == 403, response.text
    return str(response.json()["message"])


def test_a_machine_joins_and_is_held_to_its_own_node(system: System, tmp_path: Path) -> None:
    system.start("--nodes=1", "--", "--cluster-signing-duration=12s")
    made = system.kcm("token", "create", "--ttl=10m", "--print-join-command")
    assert made.returncode == 0, made.stderr
    with machine(tmp_path / "other") as other:
        other.start(made.stdout)

        def is_ready() -> bool:
            conditions = system.get("nodes", NODE).get("status", {}).get("conditions", ())
            return ("Ready", "True") in {(c["type"], c["status"]) for c in conditions}

        until(is_ready, "the node", words=other.log.read_text)
        system.apply(PODS)

        def is_running() -> bool:
            return bool(system.get("pods", "writer").get("status", {}).get("phase") == "Running")

        until(is_running, "the pod", words=other.log.read_text)
        first = other.certificate()
        assert first

        authority = system.folder / "s" / "apiserver.crt"
        context = ssl.create_default_context(cafile=str(authority))
        context.load_cert_chain(other.pki / "kubelet-client-current.pem")
        url = f"https://127.0.0.1:{system.api}"
        with httpx.Client(base_url=url, verify=context) as node:
            secrets = "/api/v1/namespaces/default/secrets"
            assert node.get(f"{secrets}/own").status_code == 200
            assert refusal(node.get(f"{secrets}/foreign")).endswith(
                f"no relationship found between node '{NODE}' and this object"
            )
            patch = {"content-type": "application/merge-patch+json"}
            body = '{"metadata": {"labels": {"a": "b"}}}'
            refused = node.patch("/api/v1/nodes/node-1", content=body, headers=patch)
            assert refusal(refused) == (
                f'nodes "node-1" is forbidden: node "{NODE}" is not allowed to modify node "node-1"'
            )

        until(
            lambda: other.certificate() not in {"", first}, "a rotation", words=other.log.read_text
        )
        approve_serving(system)
        serving = other.pki / "kubelet-server-current.pem"
        until(serving.is_file, "a serving certificate", words=other.log.read_text)
        port = system.get("nodes", NODE)["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        trust = ssl.create_default_context(cafile=str(system.folder / "s" / "ca.crt"))

        def is_trusted() -> bool:
            """Reports whether the kubelet shows the new certificate, which it soon reads."""
            try:
                return httpx.get(f"https://{ADDRESS}:{port}/healthz", verify=trust).is_success
            except httpx.ConnectError:
                return False

        until(is_trusted, "the new certificate", words=other.log.read_text)
        with admin(system) as client:
            log = client.get("/api/v1/namespaces/default/pods/writer/log")
        if ADDRESS == LOOPBACK:  # of a machine without a network, and nobody may be led there
            assert "address not allowed: node" in log.json()["message"]
        else:
            assert (log.status_code, log.text) == (200, "hello\n"), log.text
            until(lambda: is_measured(system), "the usage that the API server scrapes")
