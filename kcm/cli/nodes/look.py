"""Simulated nodes as commands see them: objects, leases, orders and pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kcm.api import scheme
from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import Node
from kcm.api.simulated_nodes import SIMULATOR_LABEL
from kcm.apimachinery.durations import parse_seconds
from kcm.apimachinery.labels import Selector
from kcm.coordination.presence import members
from kcm.helpers.node_reports import LEASE_NAMESPACE
from kcm.simulation import orders
from kcm.simulation.orders import Order
from kcm.simulation.process import KIND
from kcm.store import Store

ZONE = "topology.kubernetes.io/zone"
DEFAULT_GRACE = 50.0  # seconds; the node lifecycle controller's default
_NODES = scheme.by_name("nodes")
_LEASES = scheme.by_name("leases.coordination.k8s.io")
_PODS = scheme.by_name("pods")


@dataclass(frozen=True)
class SimulatedNode:
    """One simulated node with its lease, its order and its pods."""

    node: Node
    renewed: datetime | None
    order: Order | None
    pods: Sequence[str] = field(default=())  # keys

    @property
    def zone(self) -> str:
        return self.node.labels.get(ZONE, "")

    @property
    def ready(self) -> str:
        """The status of its Ready condition."""
        conditions = self.node.status.conditions or ()
        return next((c.status for c in conditions if c.type == "Ready"), "Unknown")


def list_simulated_nodes(store: Store) -> list[SimulatedNode]:
    """Returns all simulated nodes, sorted by zone and name."""
    page = store.list(_NODES, label_selector=Selector.parse(SIMULATOR_LABEL))
    nodes = [node for node in page.items if isinstance(node, Node)]
    leases = store.get_all([(_LEASES, f"{LEASE_NAMESPACE}/{node.name}") for node in nodes])
    given = orders.read(orders.current(store))
    seen = [
        SimulatedNode(
            node,
            lease.spec.renew_time if isinstance(lease, Lease) else None,
            given.get(node.name),
            [key for _, key in store.by_index(f"node:{node.name}", _PODS)],
        )
        for node, lease in zip(nodes, leases, strict=True)
    ]
    return sorted(seen, key=lambda node: (node.zone, len(node.node.name), node.node.name))


def simulator_runs(store: Store) -> bool:
    """Reports whether a simulator is present."""
    return any(member.kind == KIND for member in members(store.io))


def grace_period(store: Store) -> float:
    """Returns the seconds of silence after which the control plane takes a node for dead."""
    config_map = orders.current(store)
    text = config_map.annotations.get(orders.GRACE_ANNOTATION, "") if config_map else ""
    try:
        return parse_seconds(text)
    except ValueError:
        return DEFAULT_GRACE
