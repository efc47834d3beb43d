"""The simulated nodes that are registered, with their leases, commands and pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import Node, Pod
from kcm.api.simulated import SIMULATOR_LABEL
from kcm.apimachinery.durations import parse_seconds
from kcm.apimachinery.labels import Selector
from kcm.coordination.presence import members
from kcm.helpers.node_reports import LEASE_NAMESPACE, ready_status
from kcm.simulation import commands
from kcm.simulation.commands import NodeCommand
from kcm.simulation.process import KIND
from kcm.store import Store

ZONE = "topology.kubernetes.io/zone"
DEFAULT_GRACE = 50.0  # seconds; the node lifecycle controller's default
_NODES = Node.resource
_LEASES = Lease.resource
_PODS = Pod.resource


@dataclass(frozen=True)
class RegisteredNode:
    """A simulated node, when it last renewed its lease, its last command, and its pods."""

    node: Node
    renewed: datetime | None
    command: NodeCommand | None
    pods: Sequence[str] = field(default=())  # keys

    @property
    def zone(self) -> str:
        return self.node.labels.get(ZONE, "")

    @property
    def ready(self) -> str:
        """Returns the status of the node's Ready condition."""
        return ready_status(self.node)


def list_registered_nodes(store: Store) -> list[RegisteredNode]:
    """Returns all simulated nodes, sorted by zone and name."""
    nodes = store.list(_NODES, label_selector=Selector.parse(SIMULATOR_LABEL)).items
    leases = store.get_all([(_LEASES, f"{LEASE_NAMESPACE}/{node.name}") for node in nodes])
    sent = commands.parse(commands.get_stored(store))
    registered = [
        RegisteredNode(
            node,
            lease.spec.renew_time if lease is not None else None,
            sent.get(node.name),
            [key for _, key in store.by_index(f"node:{node.name}", _PODS)],
        )
        for node, lease in zip(nodes, leases, strict=True)
    ]
    return sorted(registered, key=lambda node: (node.zone, len(node.node.name), node.node.name))


def simulator_runs(store: Store) -> bool:
    """Reports whether a simulator has sent a heartbeat recently."""
    return any(member.kind == KIND for member in members(store.io))


def grace_period(store: Store) -> float:
    """Returns the seconds without a heartbeat after which a node counts as unreachable.

    The simulator stores the value of its flag; without one, the controller's default is returned.
    """
    config_map = commands.get_stored(store)
    text = config_map.annotations.get(commands.GRACE_ANNOTATION, "") if config_map else ""
    try:
        return parse_seconds(text)
    except ValueError:
        return DEFAULT_GRACE
