"""Tests how load balancers follow the nodes, after upstream's tables.

Source: staging/src/k8s.io/cloud-provider/controllers/service/controller_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import (
    Node,
    Taint,
)
from kcm.controllers.cloud.service.wanted import (
    EXCLUDE_LABEL,
    TO_BE_DELETED_TAINT,
)
from kcm.reconcile.cloudprovider.interface import CloudError
from kcm.testing.builders import START, node
from tests.unit.controllers.balancers import (
    KEY,
    balanced,
    world,
)

# TestNodeChangesForStableNodeSetEnabled

NODE1, NODE2, NODE3 = node("node1"), node("node2"), node("node3")


@pytest.mark.parametrize(
    ("before", "after", "hosts"),
    [
        pytest.param([NODE1, NODE2, NODE3], [NODE1, NODE2, NODE3], None, id="No node changes"),
        pytest.param(
            [NODE1, NODE2],
            [NODE1, NODE2, NODE3],
            ("node1", "node2", "node3"),
            id="1 new node gets added",
        ),
        pytest.param(
            [NODE1, NODE2, NODE3],
            [NODE1, node("node2", ready=False), NODE3],
            None,
            id="1 node goes NotReady",
        ),
        pytest.param(
            [NODE1, NODE2, NODE3],
            [NODE1, node("node2", taints=[Taint(key=TO_BE_DELETED_TAINT)]), NODE3],
            ("node1", "node3"),
            id="1 node gets Tainted",
        ),
        pytest.param(
            [NODE1, node("node2", ready=False), NODE3],
            [NODE1, NODE2, NODE3],
            None,
            id="1 node goes Ready",
        ),
        pytest.param(
            [NODE1, NODE2, NODE3],
            [NODE1, node("node2", labels={EXCLUDE_LABEL: ""}), NODE3],
            ("node1", "node3"),
            id="1 node get excluded",
        ),
        pytest.param(
            [NODE1, NODE2, NODE3],
            [NODE1, NODE2],
            ("node1", "node2"),
            id="1 old node gets deleted",
        ),
        pytest.param(
            [NODE1, NODE2, NODE3],
            [NODE1, NODE2.with_metadata(deletion_timestamp=START), NODE3],
            ("node1", "node3"),
            id="1 node marked for deletion",
        ),
        pytest.param(
            [NODE1, NODE2, NODE3],
            [NODE1, node("node2", taints=[Taint(key="Other")]), NODE3],
            None,
            id="1 spurious node update",
        ),
        pytest.param(
            [NODE1],
            [node("node1", provider_id="memory://1")],
            ("node1",),
            id="providerID set (TestNodesSufficientlyEqual)",
        ),
    ],
)
@pytest.mark.parametrize("policy", ["Local", "Cluster"])
def test_changes_of_nodes_reach_load_balancers(
    before: list[Node], after: list[Node], hosts: tuple[str, ...] | None, policy: str
) -> None:
    there = world(balanced(external_traffic_policy=policy), *before)
    there.sync(KEY)
    there.take_calls()
    for old in before:
        there.remove(there.objects["nodes", old.name])
    there.put(*after)
    there.sync(KEY)
    assert there.take_calls() == (["update"] if hosts else [])
    if hosts:
        assert list(there.memory_cloud.balancers.values()) == [hosts]
        assert there.reasons[-1] == "UpdatedLoadBalancer"


def test_an_update_that_fails_is_followed_by_another_ensuring() -> None:
    there = world(balanced(), NODE1)
    there.sync(KEY)
    there.put(NODE2)
    there.memory_cloud.failures["update"] = CloudError("down")
    there.take_calls()
    there.sync(KEY)
    assert there.take_calls() == ["update", "get"]
    assert there.events[-1].message == (
        "Error updating load balancer with new hosts [node1 node2] [node names limited, total "
        "number of nodes: 2], error: down"
    )
    there.sync(KEY)
    assert there.take_calls() == ["ensure"]


def test_an_update_of_a_load_balancer_that_is_gone_is_no_failure() -> None:
    there = world(balanced(), NODE1)
    there.sync(KEY)
    there.memory_cloud.balancers.clear()
    there.put(NODE2)
    there.memory_cloud.failures["update"] = CloudError("down")
    there.sync(KEY)
    assert there.error is None


def test_a_load_balancer_may_lose_its_last_node() -> None:
    there = world(balanced(), NODE1)
    there.sync(KEY)
    there.remove(there.objects["nodes", "node1"])
    there.sync(KEY)
    assert there.reasons[-1] == "UnAvailableLoadBalancer"
