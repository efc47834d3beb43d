"""Filters for the volumes of one pod, and the choice of volumes for its claims.

A claim that is bound ties the pod to the nodes that reach its volume. For a claim that waits for
its first consumer, a node must reach a volume that fits, or its class must be able to make one.

Source: the plugins volumerestrictions, nodevolumelimits, volumebinding and volumezone under
pkg/scheduler/framework/plugins, Kubernetes 1.33. Departures: only claims count, not the inline
disks of clouds; VolumeAttachments of other pods are not counted against a node's limit; the gate
StorageCapacityScoring is off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.storage_classes import NO_PROVISIONER, class_of_claim
from kcm.helpers.volume_binding import (
    SELECTED_NODE,
    Wish,
    find_volume,
    reaches,
    requested,
    reserve,
)
from kcm.scheduler import status
from kcm.scheduler.nodeinfo import NodeInfo
from kcm.scheduler.podinfo import PodInfo
from kcm.scheduler.status import Status, unresolvable
from kcm.scheduler.storage import StorageView

_ONE_POD = "ReadWriteOncePod"
_ZONES = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)


@dataclass(frozen=True)
class VolumeDecision:
    """What has to be written before the pod can be bound: objects as they shall be, and as they
    are.
    """

    reserved: Sequence[tuple[PersistentVolume, PersistentVolume]]
    selected: Sequence[tuple[PersistentVolumeClaim, PersistentVolumeClaim]]


class VolumeRule:
    """The volume filters of one pod that has claims."""

    def __init__(
        self,
        info: PodInfo,
        storage: StorageView,
        bound: Sequence[PersistentVolumeClaim],
        unbound: Sequence[PersistentVolumeClaim],
    ) -> None:
        self._info = info
        self._storage = storage
        self._claims = (*bound, *unbound)
        self._volumes = [storage.volume(claim.spec.volume_name or "") for claim in bound]
        # The smallest first, so that small claims do not take large volumes.
        self.unbound = sorted(unbound, key=requested)
        self._exclusive = [
            claim.key for claim in self._claims if _ONE_POD in (claim.spec.access_modes or ())
        ]
        self._zones = [
            (label, frozenset(volume.labels[label].split("__")))
            for volume in self._volumes
            if volume is not None
            for label in _ZONES
            if label in volume.labels
        ]

    def filter(self, node: NodeInfo) -> Status | None:
        """Returns why the pod's volumes keep it from the node, or None if they do not."""
        return (
            self._filter_exclusive()
            or self._filter_limits(node)
            or self._filter_binding(node)
            or self._filter_zones(node)
        )

    def _filter_exclusive(self) -> Status | None:
        """Refuses every node while another pod uses a claim that only one pod may use."""
        for key in self._exclusive:
            if self._storage.is_used_by_another(key, self._info):
                return status.ONE_POD_CONFLICT
        return None

    def _filter_limits(self, node: NodeInfo) -> Status | None:
        limits = self._storage.limits_of(node.name)
        if not limits:
            return None
        present = self._storage.handles_on(node)
        wanted = {
            pair for claim in self._claims if (pair := self._storage.handle_of(claim)) is not None
        }
        for driver in {driver for driver, _ in wanted - present}:
            if driver not in limits:
                continue
            count = len({pair for pair in present | wanted if pair[0] == driver})
            if count > limits[driver]:
                return status.TOO_MANY_VOLUMES
        return None

    def _filter_binding(self, node: NodeInfo) -> Status | None:
        reasons: list[str] = []
        if any(volume is None for volume in self._volumes):
            reasons.append(status.VOLUME_GONE)
        elif not all(volume and reaches(volume, node.labels) for volume in self._volumes):
            reasons.append(status.VOLUME_ELSEWHERE)
        why = self._choose(node, [], []) if self.unbound else ""
        if why:
            reasons.append(why)
        return unresolvable("VolumeBinding", *reasons) if reasons else None

    def _filter_zones(self, node: NodeInfo) -> Status | None:
        if not self._zones or not any(label in node.labels for label in _ZONES):
            return None
        for label, zones in self._zones:
            if node.labels.get(label, _current(label, node)) not in zones:
                return status.OTHER_ZONE
        return None

    # --- claims without a volume

    def decide(self, node: NodeInfo) -> VolumeDecision:
        """Returns what has to be written so that the claims get their volumes on this node."""
        reserved: list[tuple[PersistentVolume, PersistentVolumeClaim]] = []
        selected: list[PersistentVolumeClaim] = []
        self._choose(node, reserved, selected)
        pairs = [(reserve(volume, claim), volume) for volume, claim in reserved]
        marked = [
            (_with_node(claim, node.name), claim)
            for claim in selected
            if SELECTED_NODE not in claim.annotations
        ]
        return VolumeDecision([pair for pair in pairs if pair[0] is not pair[1]], marked)

    def _choose(
        self,
        node: NodeInfo,
        reserved: list[tuple[PersistentVolume, PersistentVolumeClaim]],
        selected: list[PersistentVolumeClaim],
    ) -> str:
        """Chooses a volume for each claim, or has it made; returns why that is not possible.

        Volumes are added to `reserved` with their claims, claims whose volume is to be made to
        `selected`.
        """
        taken: set[str] = set()
        for claim in self.unbound:
            chosen = claim.annotations.get(SELECTED_NODE)
            if chosen is not None and chosen != node.name:
                return status.NO_VOLUME
            volume = None
            if chosen is None:
                volume = find_volume(
                    Wish.of(claim),
                    self._storage.candidates(claim),
                    node_labels=node.labels,
                    excluded=taken,
                )
            if volume is not None:
                taken.add(volume.name)
                reserved.append((volume, claim))
                continue
            why = self._cannot_provision(claim, node)
            if why:
                return why
            selected.append(claim)
        return ""

    def _cannot_provision(self, claim: PersistentVolumeClaim, node: NodeInfo) -> str:
        storage_class = self._storage.storage_class(class_of_claim(claim))
        if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
            return status.NO_VOLUME
        terms = storage_class.allowed_topologies or ()
        if terms and not any(
            all(node.labels.get(e.key) in e.values for e in term.match_label_expressions or ())
            for term in terms
        ):
            return status.NO_VOLUME
        enough = self._storage.has_room(storage_class, requested(claim), node)
        return "" if enough else status.NO_SPACE


def _current(label: str, node: NodeInfo) -> str:
    """Returns the node's value under the other of a zone label's two names."""
    kind = label.rpartition("/")[2]
    for name in _ZONES:
        if name.endswith(f"/{kind}") and name in node.labels:
            return node.labels[name]
    return ""


def _with_node(claim: PersistentVolumeClaim, node: str) -> PersistentVolumeClaim:
    return claim.with_metadata(annotations={**claim.annotations, SELECTED_NODE: node})
