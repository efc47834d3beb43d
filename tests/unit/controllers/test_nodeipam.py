"""Tests which pod CIDRs nodes get from the cluster's CIDRs."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest
from pydantic import ValidationError

from kcm import errors
from kcm.api.core_v1 import Node
from kcm.controllers.nodeipam import NodeIpamController, NodeIpamOptions, Pool
from kcm.reconcile.contract import Change
from kcm.testing.builders import node
from kcm.testing.views import FakeView
from kcm.testing.world import World


def controller(cidr: str = "10.0.0.0/22", **options: Any) -> NodeIpamController:
    return NodeIpamController(
        NodeIpamOptions(allocate_node_cidrs=True, cluster_cidr=cidr, **options)
    )


def allocate(controller: NodeIpamController, *nodes: Node) -> tuple[dict[str, list[str]], Any]:
    world = World(*nodes)
    plan = controller.reconcile("allocation", FakeView(*nodes, controller=controller))
    world.carry_out(plan)
    assert not world.failures
    after = sorted(world.of(Node), key=lambda node: node.name)
    assert all(obj.spec.pod_cidr == next(iter(obj.spec.pod_cidrs or []), None) for obj in after)
    return {obj.name: obj.spec.pod_cidrs or [] for obj in after}, plan


def build_node_with_ranges(name: str, *ranges: str) -> Node:
    return node(name, pod_cidr=ranges[0], pod_cidrs=list(ranges))


@pytest.mark.parametrize(
    ("cidr", "options", "ranges"),
    [
        ("10.0.0.0/22", {}, ["10.0.0.0/24"]),
        ("10.0.0.0/22", {"node_cidr_mask_size": 26}, ["10.0.0.0/26"]),
        ("10.0.0.0/22", {"node_cidr_mask_size_ipv4": 25}, ["10.0.0.0/25"]),
        ("fd00::/56", {}, ["fd00::/64"]),
        ("10.0.0.0/22,fd00::/56", {}, ["10.0.0.0/24", "fd00::/64"]),
        (
            "fd00::/56, 10.0.0.0/22",
            {"node_cidr_mask_size_ipv6": 72, "node_cidr_mask_size": 26},
            ["fd00::/72", "10.0.0.0/24"],
        ),
        ("10.96.0.0/11", {}, ["10.112.0.0/24"]),  # the first half is for Services
        # Only IPv6 has a limit (upstream's TestCIDRSetFullyAllocated and NewCIDRSet).
        ("10.0.0.0/7", {}, ["10.0.0.0/24"]),
        ("10.0.0.0/8", {"node_cidr_mask_size": 32}, ["10.0.0.0/32"]),
        ("fd00::/48", {}, ["fd00::/64"]),
    ],
)
def test_a_node_gets_the_first_free_range(
    cidr: str, options: dict[str, Any], ranges: list[str]
) -> None:
    assert allocate(controller(cidr, **options), node("n1"))[0] == {"n1": ranges}


def test_services_keep_their_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCM_SERVICE_CLUSTER_IP_RANGE", "10.0.0.0/23")
    assert allocate(controller(), node("n1"))[0] == {"n1": ["10.0.2.0/24"]}


def test_ranges_that_nodes_have_are_not_given_again() -> None:
    nodes = [
        build_node_with_ranges("a", "10.0.0.0/24"),
        build_node_with_ranges("b", "10.0.2.128/25"),  # another size
        build_node_with_ranges("c", "10.0.0.0/24"),  # a duplicate, by hand
        build_node_with_ranges("d", "192.168.0.0/24"),
        build_node_with_ranges("e", "rubbish"),
        node("f"),
        node("g"),
    ]
    ranges, plan = allocate(controller(), *nodes)
    assert (ranges["f"], ranges["g"]) == (["10.0.1.0/24"], ["10.0.3.0/24"])
    assert plan.error is None


def test_the_end_of_the_range_is_told_and_tried_again() -> None:
    nodes = [node(f"n{number}") for number in range(6)]
    ranges_by_node, plan = allocate(controller(), *nodes)
    assert [len(ranges) for ranges in ranges_by_node.values()] == [1, 1, 1, 1, 0, 0]
    assert [(event.reason, event.message) for event in plan.events] == [
        ("CIDRNotAvailable", "Node n4 status is now: CIDRNotAvailable"),
        ("CIDRNotAvailable", "Node n5 status is now: CIDRNotAvailable"),
    ]
    assert isinstance(plan.error, errors.ApiError)


def test_a_range_that_was_given_out_meanwhile_is_refused() -> None:
    ipam, poor = controller(), node("n1")
    plan = ipam.reconcile("allocation", FakeView(poor, controller=ipam))
    world = World(poor, build_node_with_ranges("other", "10.0.0.0/24"))
    world.carry_out(plan)
    assert [type(failure.error) for failure in world.failures] == [errors.GuardFailed]


def test_nodes_without_a_range_and_nodes_that_go_touch_the_one_key() -> None:
    ipam, view = controller(), FakeView()
    rich, poor = build_node_with_ranges("a", "10.0.0.0/24"), node("a")
    (watch,) = ipam.watches()
    assert list(watch.keys(Change(None, poor), view)) == ["allocation"]
    assert list(watch.keys(Change(rich, None), view)) == ["allocation"]
    assert list(watch.keys(Change(None, rich), view)) == []


def test_nothing_happens_unless_it_is_asked_for() -> None:
    ipam = NodeIpamController()
    (watch,) = ipam.watches()
    assert list(watch.keys(Change(None, node("a")), FakeView())) == []
    assert ipam.reconcile("allocation", FakeView(node("a"))).writes == []


@pytest.mark.parametrize(
    ("cidr", "message"),
    [
        ("", "needs one or two ranges"),
        ("10.0.0.0/8,11.0.0.0/8", "one IPv4 and one IPv6"),
        ("10.0.0.0/8,fd00::/56,11.0.0.0/8", "needs one or two"),
        ("10.0.0.0/25", "cannot be cut into ranges of /24"),
        ("fd00::/47", "at most /63"),
        ("rubbish", "does not appear to be"),
    ],
)
def test_ranges_that_cannot_work_are_refused_at_the_start(cidr: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        controller(cidr)


def test_what_is_taken_costs_its_entry_not_its_size() -> None:
    pool = Pool(ip_network("10.0.0.0/8"), 32)
    pool.occupy(ip_network("0.0.0.0/0"))
    assert (len(pool.taken), pool.next()) == (1, None)
    pool = Pool(ip_network("10.0.0.0/8"), 32)
    for text in ("10.0.0.0/9", "10.0.0.0/32", "10.128.0.0/10", "10.192.0.1/32"):
        pool.occupy(ip_network(text))
    assert [str(pool.next()), str(pool.next())] == ["10.192.0.0/32", "10.192.0.2/32"]


def test_a_whole_pool_is_given_out_without_gaps_or_overlaps() -> None:
    pool = Pool(ip_network("10.0.0.0/16"), 24)
    pool.occupy(ip_network("10.0.7.0/25"))
    ipv6_networks = [network for _ in range(300) if (network := pool.next())]
    assert len(ipv6_networks) == len(set(ipv6_networks)) == 255
    assert ip_network("10.0.7.0/24") not in ipv6_networks
