"""Zones: which zone a node belongs to, the states of the zones, and the rates of their evictions.

Source: ComputeZoneState, handleDisruption, ReducedQPSFunc in
pkg/controller/nodelifecycle/node_lifecycle_controller.go and GetZoneKey in
staging/src/k8s.io/component-helpers/node/topology/helpers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kcm.api.core_v1 import Node

_ZONE = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGION = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
EXCLUDED = "node.kubernetes.io/exclude-disruption"


class ZoneState(StrEnum):
    """The state of a zone, by how many of its nodes are not ready."""

    INITIAL = "Initial"  # not computed yet
    NORMAL = "Normal"
    # more than two nodes are not ready, and their share reaches the threshold
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"  # no node is ready


@dataclass
class Zone:
    """The state of a zone that is kept between passes and shown by `kcm status`."""

    state: ZoneState = ZoneState.INITIAL
    nodes: int = 0
    unhealthy: int = 0
    rate: float = 0.0  # nodes per second that may be tainted or whose pods may be deleted
    queue: dict[str, float] = field(default_factory=dict)  # by node, the time when it was queued


@dataclass(frozen=True)
class EvictionRates:
    """The rates of evictions, in nodes per second, and the thresholds that choose between them."""

    normal: float
    secondary: float
    large_cluster: int
    unhealthy_threshold: float

    def state_of(self, ready: int, not_ready: int) -> ZoneState:
        """Returns the state of a zone with these numbers of ready nodes and of nodes that are
        not.
        """
        if ready == 0 and not_ready > 0:
            return ZoneState.FULL
        if not_ready > 2 and not_ready / (ready + not_ready) >= self.unhealthy_threshold:
            return ZoneState.PARTIAL
        return ZoneState.NORMAL

    def rate_of(self, state: ZoneState, nodes: int) -> float:
        """Returns the evictions per second in a zone of `nodes` nodes if not all zones are down."""
        if state is not ZoneState.PARTIAL:
            return self.normal
        return self.secondary if nodes > self.large_cluster else 0.0


@dataclass(frozen=True)
class Disruption:
    """The states and rates of all zones after a pass."""

    zones: Mapping[str, Zone]
    down: bool  # whether all zones are down: evictions stop, and taints are removed
    left: bool  # whether all zones were down and no longer are


def zone_key(node: Node) -> str:
    """Returns the node's region and zone as one text, "" for a node without these labels."""
    labels = node.metadata.labels
    if not labels:
        return ""
    zone, region = _first(labels, _ZONE), _first(labels, _REGION)
    return f"{region}:\0:{zone}" if zone or region else ""


def _first(labels: Mapping[str, str], names: tuple[str, str]) -> str:
    old, new = names
    return labels[old] if old in labels else labels.get(new, "")


def format_zone(key: str) -> str:
    """Returns the text that shows a zone's key to users, such as `region/zone`."""
    region, _, zone = key.partition(":\0:")
    return "/".join(part for part in (region, zone) if part) or "(none)"


def judge_zones(
    before: Mapping[str, ZoneState], counts: Mapping[str, tuple[int, int]], rates: EvictionRates
) -> Disruption:
    """Returns the states and rates of the zones that have nodes.

    `counts` are the numbers of ready nodes and of nodes that are not, by zone. A zone whose nodes
    are all excluded from the counts stays Initial and has no influence on the others.
    """
    states = {key: rates.state_of(*count) for key, count in counts.items() if any(count)}
    all_down = bool(states) and all(state is ZoneState.FULL for state in states.values())
    were_down = bool(states) and all(before.get(key) is ZoneState.FULL for key in states)
    zones = {}
    for key, (ready, not_ready) in counts.items():
        state, nodes = states.get(key, ZoneState.INITIAL), ready + not_ready
        rate = 0.0 if all_down else rates.rate_of(state, nodes)
        zones[key] = Zone(state, nodes, not_ready, rate)
    return Disruption(zones, all_down, were_down and not all_down)
