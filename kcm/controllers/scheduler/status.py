"""The reasons why nodes do not fit a pod, in upstream's words.

Source: pkg/scheduler/framework/types.go (FitError) and the plugins under
pkg/scheduler/framework/plugins, Kubernetes 1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

UNSCHEDULABLE = 2  # because of other pods, so preemption may help
UNRESOLVABLE = 3  # preemption cannot help

NO_NODES = "no nodes available to schedule pods"


@dataclass(frozen=True, slots=True)
class Status:
    """Why a filter rejects one node."""

    code: int
    plugin: str
    reasons: tuple[str, ...]


def unschedulable(plugin: str, *reasons: str) -> Status:
    return Status(UNSCHEDULABLE, plugin, reasons)


def unresolvable(plugin: str, *reasons: str) -> Status:
    return Status(UNRESOLVABLE, plugin, reasons)


NODE_UNSCHEDULABLE = unresolvable("NodeUnschedulable", "node(s) were unschedulable")
NODE_AFFINITY = unresolvable("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
NODE_TAINTED = unresolvable("TaintToleration", "node(s) had untolerated taint(s)")
NODE_ABSENT = unresolvable("NodeAffinity", "node(s) didn't satisfy plugin(s) [NodeAffinity]")
NODE_PORTS = unschedulable(
    "NodePorts", "node(s) didn't have free ports for the requested pod ports"
)
ONE_POD_CONFLICT = unschedulable(
    "VolumeRestrictions",
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod",
)
TOO_MANY_VOLUMES = unschedulable("NodeVolumeLimits", "node(s) exceed max volume count")
OTHER_ZONE = unresolvable("VolumeZone", "node(s) had no available volume zone")
VOLUME_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
VOLUME_ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
SPREAD = unschedulable("PodTopologySpread", "node(s) didn't match pod topology spread constraints")
SPREAD_LABEL = unresolvable(
    "PodTopologySpread",
    "node(s) didn't match pod topology spread constraints (missing required label)",
)
AFFINITY = unresolvable("InterPodAffinity", "node(s) didn't match pod affinity rules")
ANTI_AFFINITY = unschedulable("InterPodAffinity", "node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY = unschedulable(
    "InterPodAffinity", "node(s) didn't satisfy existing pods anti-affinity rules"
)
NO_VICTIMS = unresolvable("", "No preemption victims found for incoming pod")
NOT_HELPFUL = unresolvable("", "Preemption is not helpful for scheduling")


def summary(nodes: int, statuses: Iterable[Status]) -> str:
    """Returns `0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable.`"""
    reasons = Counter(reason for status in statuses for reason in status.reasons)
    parts = sorted(f"{count} {reason}" for reason, count in reasons.items())
    text = f"0/{nodes} nodes are available:"
    return f"{text} {', '.join(parts)}." if parts else text


@dataclass(frozen=True)
class FitError:
    """Why no node fits a pod: the status of each node, by its index."""

    statuses: Sequence[Status]
    prefilter: str = ""  # what keeps the pod from every node, if that was known before the search

    @property
    def plugins(self) -> tuple[str, ...]:
        """The plugins that rejected nodes, sorted by name."""
        return tuple(sorted({status.plugin for status in self.statuses if status.plugin}))

    @property
    def text(self) -> str:
        """The message `0/5 nodes are available: ...`."""
        if self.prefilter:
            return f"0/{len(self.statuses)} nodes are available: {self.prefilter}."
        return summary(len(self.statuses), self.statuses)
