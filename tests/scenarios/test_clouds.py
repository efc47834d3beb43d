"""The simulated cloud in a whole kcm: `kubectl expose`, a deleted and a stopped instance."""

from __future__ import annotations

import pytest

from kcm.testing.waiting import until
from tests.scenarios.system import System, needs_kubectl, system

__all__ = ["system"]

SHUTDOWN = "node.cloudprovider.kubernetes.io/shutdown"

pytestmark = [pytest.mark.scenario, needs_kubectl]


def address(system: System, name: str) -> str:
    status = system.get("svc", name).get("status", {})
    return str((status.get("loadBalancer", {}).get("ingress") or [{}])[0].get("ip", ""))


def taints(system: System, name: str) -> list[str]:
    return [taint["key"] for taint in system.get("node", name)["spec"].get("taints", [])]


def test_services_get_addresses_and_nodes_share_the_fate_of_their_instances(
    system: System,
) -> None:
    system.start("--nodes", "3", "--demo", "--kubelet")

    def kubectl(*args: str) -> None:
        done = system.kubectl(*args)
        assert done.returncode == 0, done.stderr

    # The nodes of the cloud were initialized; the node of this machine is not of the cloud.
    until(lambda: system.get("node", "node-1")["spec"].get("providerID") == "sim://node-1")
    (real,) = (
        node for node in system.items("nodes") if not node["metadata"]["name"].startswith("node-")
    )
    assert "providerID" not in real["spec"]

    assert system.kcm("cloud", "shutdown", "node-2").returncode == 0
    assert system.kcm("cloud", "delete", "node-3").returncode == 0

    kubectl("create", "deployment", "web", "--image=nginx")
    slow = ("slow", "EnsureLoadBalancer", "10m", "--for", "default/slow")
    assert system.kcm("cloud", *slow).returncode == 0
    kubectl("expose", "deployment", "web", "--name=slow", "--port=80", "--type=LoadBalancer")
    kubectl("expose", "deployment", "web", "--port=80", "--type=LoadBalancer")
    until(lambda: address(system, "web"), "the address, although another call is slow")
    assert address(system, "slow") == ""
    kubectl("delete", "service", "web", "--wait=true", "--timeout=30s")
    assert "default/web" not in system.kcm("cloud", "balancers").stdout

    until(lambda: system.get("node", "node-3") == {}, "the end of the deleted instance's node")
    until(lambda: SHUTDOWN in taints(system, "node-2"), "the taint of the stopped instance")
    assert system.kcm("cloud", "start", "node-2").returncode == 0
    until(lambda: SHUTDOWN not in taints(system, "node-2"), "the end of the taint")
    kept = system.get("node", real["metadata"]["name"])
    assert kept["metadata"]["uid"] == real["metadata"]["uid"]
    assert SHUTDOWN not in taints(system, real["metadata"]["name"])
