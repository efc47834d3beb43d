"""Filters for the volumes of one pod, and the choice of volumes for its claims.

A claim that is bound ties the pod to the nodes that reach its volume. For a claim that waits for
its first consumer, a node must reach a volume that fits, or its class must be able to make one.

Source: the plugins volumerestrictions, nodevolumelimits, volumebinding and volumezone under
pkg/scheduler/framework/plugins, Kubernetes 1.36. Departures: only claims count, not the inline
disks of clouds; the gate StorageCapacityScoring is off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.controllers.scheduler import status
from kcm.controllers.scheduler.nodeinfo import NodeInfo, PodInfo
from kcm.controllers.scheduler.status import Status, unresolvable
from kcm.controllers.scheduler.volumes.view import ClaimSearch, StorageView
from kcm.helpers.volumes.binding import SELECTED_NODE, reaches, requested, reserve

_ONE_POD = "ReadWriteOncePod"
_RENAMED = {  # labels of old volumes, and the labels that nodes have
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_ZONES = (*_RENAMED, *_RENAMED.values())


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
        self._searches = [ClaimSearch(claim, storage) for claim in sorted(unbound, key=requested)]
        self._handles = {
            handle for claim in self._claims if (handle := storage.handle_of(claim)) is not None
        }
        self._drivers = frozenset(driver for driver, _ in self._handles)
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
        self._checks = tuple(self._needed_checks())

    def filter(self, node: NodeInfo) -> Status | None:
        """Returns why the pod's volumes keep it from the node, or None if they do not."""
        for check in self._checks:
            rejection = check(node)
            if rejection is not None:
                return rejection
        return None

    def _needed_checks(self) -> Iterator[Callable[[NodeInfo], Status | None]]:
        """Yields the checks that can reject a node, in upstream's order."""
        if self._exclusive:
            yield self._filter_exclusive
        if self._drivers:
            yield self._filter_limits
        if self._volumes or self._searches:
            yield self._filter_binding
        if self._zones:
            yield self._filter_zones

    def counts_pods_of(self, node: NodeInfo) -> bool:
        """Reports whether the volumes of the node's pods count against a limit of the node."""
        limits = self._storage.limits_of(node.name)
        return bool(limits) and not self._drivers.isdisjoint(limits)

    def _filter_exclusive(self, _: NodeInfo) -> Status | None:
        """Refuses every node while another pod uses a claim that only one pod may use."""
        for key in self._exclusive:
            if self._storage.is_used_by_another(key, self._info):
                return status.ONE_POD_CONFLICT
        return None

    def _filter_limits(self, node: NodeInfo) -> Status | None:
        if not self.counts_pods_of(node):
            return None
        limits = self._storage.limits_of(node.name)
        present = self._storage.handles_on(node)
        for driver in {driver for driver, _ in self._handles - present}:
            if driver not in limits:
                continue
            count = len({pair for pair in present | self._handles if pair[0] == driver})
            if count > limits[driver]:
                return status.TOO_MANY_VOLUMES
        return None

    def _filter_binding(self, node: NodeInfo) -> Status | None:
        if not self._volumes:
            why = self._choose(node, [], [])
            return unresolvable("VolumeBinding", why) if why else None
        reasons: list[str] = []
        if any(volume is None for volume in self._volumes):
            reasons.append(status.VOLUME_GONE)
        elif not all(volume and reaches(volume, node.labels) for volume in self._volumes):
            reasons.append(status.VOLUME_ELSEWHERE)
        why = self._choose(node, [], []) if self._searches else ""
        if why:
            reasons.append(why)
        return unresolvable("VolumeBinding", *reasons) if reasons else None

    def _filter_zones(self, node: NodeInfo) -> Status | None:
        if not any(label in node.labels for label in _ZONES):
            return None
        for label, zones in self._zones:
            here = node.labels.get(label, node.labels.get(_RENAMED.get(label, "")))
            if here not in zones:
                return status.OTHER_ZONE
        return None

    # --- claims without a volume

    @property
    def waits(self) -> bool:
        """Whether volumes have to be chosen before the pod can be bound."""
        return bool(self._searches)

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
        for search in self._searches:
            volume = search.find(node, taken)
            if volume is not None:
                taken.add(volume.name)
                reserved.append((volume, search.claim))
                continue
            why = search.explain_no_volume(node)
            if why:
                return why
            selected.append(search.claim)
        return ""


def _with_node(claim: PersistentVolumeClaim, node: str) -> PersistentVolumeClaim:
    return claim.with_metadata(annotations={**claim.annotations, SELECTED_NODE: node})
