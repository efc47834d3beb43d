"""Cluster events: changes that may help a pod that found no node.

Source: pkg/scheduler/framework/types.go (ClusterEvent), the EventsToRegister of the plugins, and
pkg/scheduler/eventhandlers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from kcm.api.core_v1 import Node

if TYPE_CHECKING:
    from kcm.controllers.scheduler.nodeinfo import PodInfo


class ClusterEventKind(Enum):
    """The kinds of cluster events."""

    NODE_ADDED = auto()
    NODE_REMOVED = auto()
    NODE_ALLOCATABLE = auto()
    NODE_LABELS = auto()
    NODE_TAINTS = auto()  # and spec.unschedulable
    NAMESPACE_LABELS = auto()  # affinity terms may use them; upstream has no event for that
    POD_ADDED = auto()  # a pod was bound to a node
    POD_REMOVED = auto()  # a pod ended, was deleted, or lost its nomination
    STORAGE = auto()  # a volume, a class or what a CSI driver says of itself changed
    ATTACHMENTS = auto()  # a volume was attached to a node, or detached
    POD_CHANGED = auto()  # labels or requests of a pod on a node changed, or its deletion began


class ClusterEvent(NamedTuple):
    """A change in the cluster after which a rejected pod may fit.

    `position` is that of the snapshot whose update found it.
    """

    position: int
    kind: ClusterEventKind
    node: str
    pod: PodInfo | None = None


_NODES = frozenset(
    {ClusterEventKind.NODE_ADDED, ClusterEventKind.NODE_LABELS, ClusterEventKind.NODE_TAINTS}
)
_PODS = frozenset(
    {ClusterEventKind.POD_ADDED, ClusterEventKind.POD_REMOVED, ClusterEventKind.POD_CHANGED}
)

EVENTS_TO_REGISTER: Mapping[str, frozenset[ClusterEventKind]] = {
    "NodeUnschedulable": frozenset({ClusterEventKind.NODE_ADDED, ClusterEventKind.NODE_TAINTS}),
    "NodeName": frozenset({ClusterEventKind.NODE_ADDED}),
    "TaintToleration": frozenset({ClusterEventKind.NODE_ADDED, ClusterEventKind.NODE_TAINTS}),
    "NodeAffinity": frozenset({ClusterEventKind.NODE_ADDED, ClusterEventKind.NODE_LABELS}),
    "NodePorts": frozenset({ClusterEventKind.NODE_ADDED, ClusterEventKind.POD_REMOVED}),
    "NodeResourcesFit": frozenset(
        {
            ClusterEventKind.NODE_ADDED,
            ClusterEventKind.NODE_ALLOCATABLE,
            ClusterEventKind.POD_REMOVED,
            ClusterEventKind.POD_CHANGED,
        }
    ),
    "VolumeRestrictions": frozenset({ClusterEventKind.NODE_ADDED, ClusterEventKind.POD_REMOVED}),
    "NodeVolumeLimits": frozenset(
        {
            ClusterEventKind.NODE_ADDED,
            ClusterEventKind.POD_REMOVED,
            ClusterEventKind.STORAGE,
            ClusterEventKind.ATTACHMENTS,
        }
    ),
    # Changes of a pod's own claims are looked at by claim (`Snapshot.claim_changes`).
    "VolumeBinding": _NODES | {ClusterEventKind.STORAGE},
    "VolumeZone": _NODES | {ClusterEventKind.STORAGE},
    "PodTopologySpread": _NODES | _PODS | {ClusterEventKind.NODE_REMOVED},
    "InterPodAffinity": _NODES | _PODS | {ClusterEventKind.NAMESPACE_LABELS},
}
"""The events, by plugin, after which a node that the plugin rejected may be feasible."""


def node_events(old: Node | None, new: Node) -> list[ClusterEventKind]:
    """Returns the events in a change of a node; [] for a heartbeat."""
    if old is None or old.uid != new.uid:
        return [ClusterEventKind.NODE_ADDED]
    kinds = []
    if old.status.allocatable != new.status.allocatable:
        kinds.append(ClusterEventKind.NODE_ALLOCATABLE)
    if old.metadata.labels != new.metadata.labels:
        kinds.append(ClusterEventKind.NODE_LABELS)
    tainted = old.spec.taints != new.spec.taints
    if tainted or bool(old.spec.unschedulable) != bool(new.spec.unschedulable):
        kinds.append(ClusterEventKind.NODE_TAINTS)
    return kinds
