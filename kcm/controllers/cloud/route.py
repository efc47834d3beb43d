"""NodeRoute: creates a route in the cloud for each node's range of pod addresses.

Routes of nodes that are gone, and of ranges that they have no longer, are deleted. The condition
NetworkUnavailable of a node says whether its routes exist. It needs --allocate-node-cidrs and
--configure-cloud-routes.

Source: staging/src/k8s.io/cloud-provider/controllers/route/route_controller.go, Kubernetes 1.36.
Departure: a change of a node leads to a look at once, in addition to the periodic ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, cast

from pydantic import Field

from kcm import errors
from kcm.api.core_v1 import Node, NodeCondition
from kcm.sdk import (
    Change,
    CloudUse,
    Controller,
    CreateRoute,
    DeleteRoute,
    Event,
    KeyPolicy,
    ListRoutes,
    Options,
    Outcome,
    Patch,
    Plan,
    Route,
    View,
    Watch,
    shared_option,
)

ROUTES = "routes"  # the only key
NETWORK_UNAVAILABLE = "NetworkUnavailable"
_CREATED = ("False", "RouteCreated", "RouteController created a route")
_NOT_CREATED = ("True", "NoRouteCreated", "RouteController failed to create a route")


class NodeRouteOptions(Options):
    """The options of the node-route controller."""

    configure_cloud_routes: bool = Field(
        True,
        description="Should CIDRs allocated by allocate-node-cidrs be configured on the cloud "
        "provider",
    )
    route_reconciliation_period: timedelta = Field(
        timedelta(seconds=10),
        gt=timedelta(0),
        description="The period for reconciling routes created for Nodes by cloud provider",
    )
    allocate_node_cidrs: bool = shared_option(False, "node-ipam-controller")
    cluster_cidr: str = shared_option("", "node-ipam-controller")

    def networks(self) -> list[IPv4Network | IPv6Network]:
        """Returns the ranges of the cluster; node IPAM has checked them."""
        texts = [text.strip() for text in self.cluster_cidr.split(",") if text.strip()]
        return [ip_network(text, strict=False) for text in texts]


class NodeRouteController(Controller):
    """Compares the routes with the nodes. Its only key is ROUTES."""

    name = "node-route-controller"
    short_name = "route"
    group = "nodes"
    options_type = NodeRouteOptions
    options: NodeRouteOptions
    cloud = CloudUse("routes", polls=True)
    keys = KeyPolicy(timeout=300.0, first_retry=1.0, longest_retry=10.0)

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(Node, self._keys),)

    def concurrent_syncs(self) -> int:
        return 1

    @property
    def _configures(self) -> bool:
        options = self.options
        return options.configure_cloud_routes and options.allocate_node_cidrs

    def _keys(self, change: Change[Node], view: View) -> Iterable[str]:
        """Yields the key when nodes come, go, or get other ranges or addresses."""
        old, new = change.old, change.new
        if self._configures and (old is None or new is None or _facts(old) != _facts(new)):
            yield ROUTES

    def reconcile(self, key: str, view: View) -> Plan:
        if not self._configures:
            return Plan()
        nodes = view.lister(Node).list()
        return Plan(calls=[ListRoutes()], plan_after=partial(self._compare, nodes, view.now))

    def _compare(self, nodes: Sequence[Node], now: datetime, outcome: Outcome) -> Plan:
        """Returns the plan that deletes superfluous routes, and then creates the missing ones."""
        (answer,) = outcome.answers
        if answer.error is not None:
            return Plan(error=errors.KcmError(f"error listing routes: {answer.error}"))
        routes = cast("Sequence[Route]", answer.value)
        right = _filter_right(nodes, routes)
        ours = [route for route in routes if self._is_ours(route)]
        deletions = [DeleteRoute(route) for route in ours if route not in right]
        have = {(route.target_node, route.destination_cidr) for route in right}
        creations = [
            CreateRoute(node.uid, Route("", node.name, cidr, tuple(node.status.addresses or ())))
            for node in nodes
            for cidr in node.spec.pod_cidrs or ()
            if (node.name, cidr) not in have
        ]
        create = partial(self._create, nodes, now, creations)
        return Plan(calls=deletions, plan_after=create) if deletions else create(Outcome())

    def _create(
        self,
        nodes: Sequence[Node],
        now: datetime,
        creations: Sequence[CreateRoute],
        outcome: Outcome,
    ) -> Plan:
        # A route that could not be deleted is found again by the next look.
        report = partial(self._report, nodes, now)
        return Plan(calls=creations, plan_after=report) if creations else report(Outcome())

    def _report(self, nodes: Sequence[Node], now: datetime, outcome: Outcome) -> Plan:
        """Returns the plan that writes the conditions of the nodes, and looks again later."""
        plan = Plan(requeue_after=self.options.route_reconciliation_period.total_seconds())
        failed: dict[str, str] = {}
        for answer in outcome.answers:
            if answer.error is not None:
                route = cast("CreateRoute", answer.call).route
                failed[route.target_node] = f"{route.destination_cidr}: {answer.error}"
        for node in nodes:
            if not node.spec.pod_cidrs:
                continue
            plan.then(*_condition_writes(node, node.name not in failed, now))
            if node.name in failed:
                plan.events.append(_event(node, failed))
        return plan

    def _is_ours(self, route: Route) -> bool:
        """Reports whether the route is within the ranges of the cluster."""
        try:
            network = ip_network(route.destination_cidr, strict=False)
        except ValueError:
            return False
        return any(
            network.version == own.version and network.overlaps(own)
            for own in self.options.networks()
        )


def _facts(node: Node) -> tuple[object, ...]:
    return (node.spec.pod_cidrs, node.status.addresses)


def _filter_right(nodes: Sequence[Node], routes: Sequence[Route]) -> list[Route]:
    """Returns the routes that are right: those to a node and one of its ranges."""
    by_name = {node.name: node for node in nodes}
    return [route for route in routes if _is_right(route, by_name)]


def _is_right(route: Route, nodes: Mapping[str, Node]) -> bool:
    node = nodes.get(route.target_node)
    if node is None or route.blackhole:
        return False
    if route.destination_cidr not in (node.spec.pod_cidrs or ()):
        return False
    if not route.enable_node_addresses:
        return True
    theirs = {(one.type, one.address) for one in node.status.addresses or ()}
    return theirs == {(one.type, one.address) for one in route.target_node_addresses}


def _event(node: Node, failed: Mapping[str, str]) -> Event:
    cidr, _, error = failed[node.name].partition(": ")
    message = f"Could not create route {node.uid} {cidr} for node {node.name}: {error}"
    return Event(node, "Warning", "FailedToCreateRoute", message)


def _condition_writes(node: Node, created: bool, now: datetime) -> Iterator[Patch[Node]]:
    """Yields the write of the condition, unless it is this controller's own already."""
    status, reason, message = _CREATED if created else _NOT_CREATED
    wanted = NodeCondition(
        type=NETWORK_UNAVAILABLE,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=now,
        last_heartbeat_time=now,
    )

    def change(obj: Node) -> Node:
        conditions = obj.status.conditions or []
        others = [one for one in conditions if one.type != NETWORK_UNAVAILABLE]
        present = [one for one in conditions if one.type == NETWORK_UNAVAILABLE]
        if any((one.status, one.reason) == (status, reason) for one in present):
            return obj
        return obj.with_status(obj.status.replace(conditions=[*others, wanted]))

    if change(node) is not node:
        yield Patch(node, change, status=True)
