"""Tests routes to nodes, after upstream's tables.

Source: staging/src/k8s.io/cloud-provider/controllers/route/route_controller_test.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kcm.api.core_v1 import Node, NodeAddress, NodeCondition
from kcm.controllers.cloud.route import ROUTES, NodeRouteController, NodeRouteOptions
from kcm.reconcile.cloudprovider.interface import CloudError, Route
from kcm.reconcile.contract import Change
from kcm.testing.builders import node
from kcm.testing.views import FakeView
from tests.unit.controllers.clouds import CloudWorld

ADDRESS = NodeAddress(type="InternalIP", address="10.0.1.1")
OTHER = NodeAddress(type="InternalIP", address="10.0.1.2")


def controller(**options: Any) -> NodeRouteController:
    return NodeRouteController(
        NodeRouteOptions(
            **{"allocate_node_cidrs": True, "cluster_cidr": "10.120.0.0/16,a00:100::/24"} | options
        )
    )


def routed(name: str, *cidrs: str, unavailable: str = "") -> Node:
    conditions = [NodeCondition(type="NetworkUnavailable", status=unavailable)]
    return node(
        name,
        pod_cidrs=list(cidrs) or None,
        status={"addresses": [ADDRESS], "conditions": conditions if unavailable else []},
    )


def world(nodes: list[Node], routes: list[Route]) -> CloudWorld:
    there = CloudWorld(controller(), *nodes)
    there.memory_cloud.stored_routes = list(routes)
    return there


def route(target: str, cidr: str, **more: Any) -> Route:
    return Route(f"{target}-{cidr}", target, cidr, **more)


def unavailable(there: CloudWorld) -> dict[str, str]:
    return {
        one.name: condition.status
        for one in there.of(Node)
        if isinstance(one, Node)
        for condition in one.status.conditions or ()
        if condition.type == "NetworkUnavailable"
    }


N1, N2 = routed("n1", "10.120.0.0/24"), routed("n2", "10.120.1.0/24")
R1, R2 = route("n1", "10.120.0.0/24"), route("n2", "10.120.1.0/24")
DUAL = routed("n1", "10.120.0.0/24", "a00:100::/24")


# TestReconcile


@pytest.mark.parametrize(
    ("nodes", "routes", "calls", "conditions"),
    [
        pytest.param(
            [DUAL],
            [],
            [("create", "n1 10.120.0.0/24"), ("create", "n1 a00:100::/24")],
            {"n1": "False"},
            id="dual stack, no routes",
        ),
        pytest.param([N1, N2], [R1, R2], [], {"n1": "False", "n2": "False"}, id="all there"),
        pytest.param(
            [N1, N2],
            [R1],
            [("create", "n2 10.120.1.0/24")],
            {"n1": "False", "n2": "False"},
            id="one missing",
        ),
        pytest.param(
            [N1], [R1, R2], [("remove", "n2 10.120.1.0/24")], {"n1": "False"}, id="extra route"
        ),
        pytest.param(
            [N1],
            [R1, route("n1", "10.120.9.0/24")],
            [("remove", "n1 10.120.9.0/24")],
            {"n1": "False"},
            id="another range of the node",
        ),
        pytest.param(
            [N1],
            [R1, route("n2", "10.1.0.0/24"), route("n2", "nonsense")],
            [],
            {"n1": "False"},
            id="routes outside of the cluster's ranges stay",
        ),
        pytest.param([routed("n1")], [], [], {}, id="a node without a range"),
        pytest.param(
            [N1],
            [R1, route("n3", "10.120.3.0/24", blackhole=True)],
            [("remove", "n3 10.120.3.0/24")],
            {"n1": "False"},
            id="blackhole",
        ),
        pytest.param(
            [N1],
            [
                route(
                    "n1",
                    "10.120.0.0/24",
                    enable_node_addresses=True,
                    target_node_addresses=(OTHER,),
                )
            ],
            [("remove", "n1 10.120.0.0/24"), ("create", "n1 10.120.0.0/24")],
            {"n1": "False"},
            id="other addresses",
        ),
        pytest.param(
            [routed("n1", "10.120.0.0/24", unavailable="True")],
            [R1],
            [],
            {"n1": "False"},
            id="the condition is corrected",
        ),
    ],
)
def test_routes_follow_the_nodes(
    nodes: list[Node],
    routes: list[Route],
    calls: list[tuple[str, str]],
    conditions: dict[str, str],
) -> None:
    there = world(nodes, routes)
    there.sync(ROUTES)
    assert sorted(there.memory_cloud.calls[1:], reverse=True) == sorted(calls, reverse=True)
    assert unavailable(there) == conditions
    assert (there.error, there.requeue_after) == (None, 10.0)
    there.take_calls()
    there.sync(ROUTES)
    assert there.take_calls() == ["list"]


def test_the_condition_of_another_agent_becomes_the_controllers_own() -> None:
    """As where Calico has said that the network is up."""
    about = NodeCondition(type="NetworkUnavailable", status="False", reason="CalicoIsUp")
    there = world([N1.with_status(N1.status.replace(conditions=[about]))], [R1])
    there.sync(ROUTES)
    (node,) = there.of(Node)
    assert [one.reason for one in node.status.conditions or ()] == ["RouteCreated"]


def test_a_route_that_cannot_be_created_makes_its_node_unavailable() -> None:
    there = world([N1, N2], [R1])
    there.memory_cloud.failures["create"] = CloudError("too many routes")
    there.sync(ROUTES)
    assert unavailable(there) == {"n1": "False", "n2": "True"}
    (event,) = there.events
    assert (event.type, event.reason) == ("Warning", "FailedToCreateRoute")
    assert event.message == (
        f"Could not create route {N2.uid} 10.120.1.0/24 for node n2: too many routes"
    )
    assert there.requeue_after == 10.0


def test_without_a_list_nothing_is_changed() -> None:
    there = world([N1], [R2])
    there.memory_cloud.failures["list"] = CloudError("down")
    there.sync(ROUTES)
    assert there.take_calls() == ["list"]
    assert str(there.error) == "error listing routes: down"


# TestIsResponsibleForRoute is among the cases above.


@pytest.mark.parametrize("off", [{"allocate_node_cidrs": False}, {"configure_cloud_routes": False}])
def test_flags_switch_it_off(off: dict[str, bool]) -> None:
    idle = controller(**off)
    there = CloudWorld(idle, N1)
    there.sync(ROUTES)
    assert there.take_calls() == []
    (watch,) = idle.watches()
    assert list(watch.keys(Change(None, N1), FakeView())) == []


@pytest.mark.parametrize(
    ("old", "new", "enqueued"),
    [
        (None, N1, True),
        (N1, None, True),
        (N1, routed("n1", "10.120.7.0/24"), True),
        (N1, routed("n1", "10.120.0.0/24", unavailable="False"), False),
    ],
)
def test_changes_that_matter_lead_to_a_look(
    old: Node | None, new: Node | None, enqueued: bool
) -> None:
    (watch,) = controller().watches()
    assert list(watch.keys(Change(old, new), FakeView())) == ([ROUTES] if enqueued else [])


def test_flags_of_node_ipam_are_shared() -> None:
    from kcm.options.manager import ManagerOptions

    flags = {
        "allocate-node-cidrs": "true",
        "cluster-cidr": "10.0.0.0/16",
        "route-reconciliation-period": "3s",
    }
    options = ManagerOptions.load(flags, {}).of(NodeRouteController)
    assert isinstance(options, NodeRouteOptions)
    assert options.allocate_node_cidrs
    assert [str(network) for network in options.networks()] == ["10.0.0.0/16"]
    assert options.route_reconciliation_period == timedelta(seconds=3)
