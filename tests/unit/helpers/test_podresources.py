from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import Node, NodeStatus
from kcm.api.pods.qos import qos_class
from kcm.apimachinery.quantity import Quantity
from kcm.helpers.podresources import find_shortage, requests_of
from tests.unit.simulation.life import pod


def container(name: str, cpu: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", "resources": {"requests": {"cpu": cpu}}, **fields}


def node(**allocatable: str) -> Node:
    amounts = {name: Quantity(amount) for name, amount in allocatable.items()}
    return Node(status=NodeStatus(allocatable=amounts))


@pytest.mark.parametrize(
    ("init", "cpu"),
    [
        ([], 300),
        ([container("a", "1")], 1000),
        ([container("a", "100m")], 300),
        ([container("s", "200m", restartPolicy="Always")], 500),
        ([container("s", "200m", restartPolicy="Always"), container("a", "1")], 1200),
        ([container("a", "1"), container("s", "200m", restartPolicy="Always")], 1000),
    ],
)
def test_a_pod_asks_for_its_containers_or_the_peak_of_its_start(init: Any, cpu: int) -> None:
    new_pod = pod(containers=[container("x", "100m"), container("y", "200m")], initContainers=init)
    assert requests_of(new_pod)["cpu"] == cpu
    assert requests_of(new_pod)["pods"] == 1000


def test_requests_of_the_pod_as_such_win_and_the_overhead_comes_on_top() -> None:
    new_pod = pod(
        containers=[container("x", "100m")],
        resources={"requests": {"cpu": "2"}},
        overhead={"cpu": "250m"},
    )
    assert requests_of(new_pod)["cpu"] == 2250


def test_what_does_not_fit_is_refused_in_the_kubelets_words() -> None:
    asked = requests_of(pod(containers=[container("x", "3")]))
    assert find_shortage(asked, {"cpu": 2000}, node(cpu="4", pods="10")) == (
        "OutOfcpu",
        "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000",
    )
    assert find_shortage(asked, {}, node(cpu="4", pods="10")) is None
    full = find_shortage(asked, {"pods": 10_000}, node(cpu="4", pods="10"))
    assert full is not None
    assert full[0] == "OutOfpods"
    assert full[1].endswith("pods, requested: 1, used: 10, capacity: 10")


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        (
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
            "Burstable",
        ),
    ],
)
def test_the_quality_of_service_class(resources: Any, expected: str) -> None:
    new_pod = pod(containers=[{"name": "x", "image": "i", "resources": resources}])
    assert qos_class(new_pod) == expected
