"""kubectl's commands for nodes, with simulated ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kcm.clock import RealClock
from kcm.loops import ThreadHost
from kcm.simulation.options import SimulatorOptions
from kcm.simulation.simulator import Simulator
from kcm.testing.waiting import until
from tests.integration.apiserver.kubectl import Kubectl
from tests.integration.apiserver.serving import Live


@pytest.fixture(scope="module", autouse=True)
def nodes(api: Live) -> Iterator[None]:
    simulator = Simulator(api.store, SimulatorOptions(count=2, events=False), RealClock())
    host = ThreadHost()
    host.run(simulator)
    until(lambda: len(api.get("/api/v1/nodes")["items"]) == 2)
    yield
    host.stop()


def pod(name: str, **spec: Any) -> dict[str, Any]:
    main = {"name": "main", "image": "i:1", "resources": {"requests": {"cpu": "500m"}}}
    body = {"containers": [main], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}


def test_get_and_describe_show_what_a_kubelet_reports(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=pod("one", nodeName="node-1"))
    until(lambda: kubectl("get", "pods").split()[6:8] == ["1/1", "Running"])
    line = kubectl("get", "nodes", "-o", "wide").splitlines()[1].split()
    assert (line[0], line[1], line[5]) == ("node-1", "Ready", "172.16.0.1")
    described = kubectl("describe", "node", "node-1")
    for text in ("HolderIdentity:  node-1", "KubeletReady", "500m (12%)", "simulated://"):
        assert text in described
    kubectl("delete", "pod", "one")


def test_a_pod_that_is_bound_through_the_api_runs(kubectl: Kubectl, api: Live) -> None:
    kubectl("apply", "-f", "-", stdin=pod("two"))
    target = {"apiVersion": "v1", "kind": "Node", "name": "node-2"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "two"}, "target": target}
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/two/binding"
    assert api.request("POST", path, binding).status_code == 201
    until(lambda: kubectl("get", "pods").split()[6:8] == ["1/1", "Running"])
    kubectl("delete", "pod", "two")


def test_drain_evicts_and_cordons(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=pod("three", nodeName="node-2"))
    until(lambda: kubectl("get", "pods").split()[6:8] == ["1/1", "Running"])
    assert "drained" in kubectl("drain", "node-2", "--force", "--timeout=30s")
    assert "Ready,SchedulingDisabled" in kubectl("get", "nodes")
    assert kubectl.run("get", "pods").stdout == ""
    kubectl("uncordon", "node-2")
    kubectl("taint", "node", "node-2", "a=b:NoSchedule")
    kubectl("taint", "node", "node-2", "a-")
