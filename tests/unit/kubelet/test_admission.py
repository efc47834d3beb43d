"""The pods that a node rejects."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kcm.api.core_v1 import Node, Pod, Taint
from kcm.api.core_v1.containers import ContainerPort, ResourceRequirements
from kcm.apimachinery.quantity import Quantity
from kcm.kubelet.admission import NodeUsage, Rejection, check_predicates
from kcm.kubelet.types import FILE, SOURCE_ANNOTATION
from kcm.testing.builders import node as build_node
from tests.unit.kubelet.views import container, pod


def node(taints: Sequence[Taint] = ()) -> Node:
    built = build_node("n1", labels={"disk": "slow"})
    allocatable = {"cpu": Quantity("2"), "memory": Quantity("1Gi"), "pods": Quantity(3)}
    built = built.with_status(built.status.replace(allocatable=allocatable))
    return built.with_spec(built.spec.replace(taints=list(taints)))


def build_pod_with_requests(**requests: str) -> Pod:
    one = container("main")
    amounts = {name: Quantity(text) for name, text in requests.items()}
    asking_pod = pod()
    spec = asking_pod.spec.replace(
        containers=[one.replace(resources=ResourceRequirements(requests=amounts))]
    )
    return asking_pod.with_spec(spec)


def with_port(port: int) -> Pod:
    pod_with_port = pod()
    ports = [ContainerPort(container_port=80, host_port=port)]
    return pod_with_port.with_spec(
        pod_with_port.spec.replace(containers=[container("main").replace(ports=ports)])
    )


def admit(asked: Pod, taken: NodeUsage, on: Node) -> Rejection | None:
    return check_predicates(asked, NodeUsage.of([asked]), taken, on)


EVICT = Taint(key="k", value="v", effect="NoExecute")


@pytest.mark.parametrize(
    ("asked", "others", "taints", "expected"),
    [
        (build_pod_with_requests(cpu="2"), [], [], None),
        (build_pod_with_requests(cpu="2"), [build_pod_with_requests(cpu="1m")], [], "OutOfcpu"),
        (build_pod_with_requests(memory="2Gi"), [], [], "OutOfmemory"),
        (pod(), [pod()] * 3, [], "OutOfpods"),
        (build_pod_with_requests(**{"example.com/gpu": "1"}), [], [], None),
        (pod(node_selector={"disk": "slow"}), [], [], None),
        (pod(node_selector={"disk": "fast"}), [], [], "NodeAffinity"),
        (with_port(8080), [with_port(8081)], [], None),
        (with_port(8080), [with_port(8080)], [], "NodePorts"),
        (pod(), [], [EVICT], "TaintToleration"),
        (pod(), [], [Taint(key="k", effect="NoSchedule")], None),
        (pod(tolerations=[{"key": "k", "operator": "Exists"}]), [], [EVICT], None),
        (pod(metadata={"annotations": {SOURCE_ANNOTATION: FILE}}), [], [EVICT], None),
    ],
)
def test_a_node_says_why_it_refuses(
    asked: Pod, others: list[Pod], taints: list[Taint], expected: str | None
) -> None:
    refusal = admit(asked, NodeUsage.of(others), node(taints))
    assert (refusal.reason if refusal else None) == expected


def test_a_taint_is_told_in_the_words_of_upstreams_kubelet() -> None:
    refusal = admit(pod(), NodeUsage.of([]), node([EVICT]))
    assert refusal is not None
    assert refusal.message == (
        "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
    )


def test_the_words_say_how_much_there_was() -> None:
    refusal = admit(
        build_pod_with_requests(cpu="3"),
        NodeUsage.of([build_pod_with_requests(cpu="500m")]),
        node(),
    )
    assert refusal is not None
    assert refusal.message == (
        "Node didn't have enough resource: cpu, requested: 3000, used: 500, capacity: 2000"
    )


def test_what_a_pod_had_is_free_again() -> None:
    taken = NodeUsage.of([with_port(8080), build_pod_with_requests(cpu="1")])
    taken.subtract(NodeUsage.of([with_port(8080)]))
    assert admit(with_port(8080), taken, node()) is None
    taken.add(NodeUsage.of([build_pod_with_requests(cpu="1")]))
    refusal = admit(build_pod_with_requests(cpu="1"), taken, node())
    assert refusal is not None
    assert refusal.reason == "OutOfcpu"
