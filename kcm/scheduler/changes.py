"""What happens in the cluster that may help a pod which found no node.

Source: pkg/scheduler/framework/types.go (ClusterEvent), the EventsToRegister of the
plugins, and pkg/scheduler/eventhandlers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from kcm.api.core_v1 import Node

if TYPE_CHECKING:
    from kcm.scheduler.podinfo import PodInfo


class Kind(Enum):
    """Kinds of events."""

    NODE_ADDED = auto()
    NODE_REMOVED = auto()
    NODE_ALLOCATABLE = auto()
    NODE_LABELS = auto()
    NODE_TAINTS = auto()  # and spec.unschedulable
    NAMESPACE_LABELS = auto()  # terms may select namespaces by them; upstream waits for the flush
    POD_ADDED = auto()  # a pod came to a node
    POD_REMOVED = auto()  # it ended, was deleted, or gave up a place kept for it
    POD_CHANGED = auto()  # labels or requests of a pod on a node, or its deletion began


class Happening(NamedTuple):
    """One event: seen by an update of the snapshot at `position`."""

    position: int
    kind: Kind
    node: str
    pod: PodInfo | None = None


_NODES = frozenset({Kind.NODE_ADDED, Kind.NODE_LABELS, Kind.NODE_TAINTS})
_PODS = frozenset({Kind.POD_ADDED, Kind.POD_REMOVED, Kind.POD_CHANGED})

HELPS: Mapping[str, frozenset[Kind]] = {
    "NodeUnschedulable": frozenset({Kind.NODE_ADDED, Kind.NODE_TAINTS}),
    "NodeName": frozenset({Kind.NODE_ADDED}),
    "TaintToleration": frozenset({Kind.NODE_ADDED, Kind.NODE_TAINTS}),
    "NodeAffinity": frozenset({Kind.NODE_ADDED, Kind.NODE_LABELS}),
    "NodePorts": frozenset({Kind.NODE_ADDED, Kind.POD_REMOVED}),
    "NodeResourcesFit": frozenset(
        {Kind.NODE_ADDED, Kind.NODE_ALLOCATABLE, Kind.POD_REMOVED, Kind.POD_CHANGED}
    ),
    "PodTopologySpread": _NODES | _PODS | {Kind.NODE_REMOVED},
    "InterPodAffinity": _NODES | _PODS | {Kind.NAMESPACE_LABELS},
}
"""By plugin, the events after which what it refused may be fine."""


def node_happenings(old: Node | None, new: Node) -> list[Kind]:
    """What of a change of a node counts; nothing for a heartbeat."""
    if old is None or old.uid != new.uid:
        return [Kind.NODE_ADDED]
    found = []
    if old.status.allocatable != new.status.allocatable:
        found.append(Kind.NODE_ALLOCATABLE)
    if old.metadata.labels != new.metadata.labels:
        found.append(Kind.NODE_LABELS)
    tainted = old.spec.taints != new.spec.taints
    if tainted or bool(old.spec.unschedulable) != bool(new.spec.unschedulable):
        found.append(Kind.NODE_TAINTS)
    return found
