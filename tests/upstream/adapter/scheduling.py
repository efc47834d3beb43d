"""Where upstream's cases of the scheduler call kcm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from kcm.api.core_v1 import Namespace, Node, Pod
from kcm.apimachinery.labels import Selector
from kcm.controllers.scheduler.nodeinfo import NodeInfo, PodInfo
from kcm.controllers.scheduler.plugins import taints
from kcm.controllers.scheduler.plugins.interpod import InterPod
from kcm.controllers.scheduler.plugins.local import (
    LocalFilters,
    list_images,
    score_balanced_allocation,
    score_images,
    score_least_allocated,
)
from kcm.controllers.scheduler.plugins.normalizing import reverse, scale, stretch
from kcm.controllers.scheduler.plugins.prefilter import volume_rule_of
from kcm.controllers.scheduler.plugins.spread import (
    HARD,
    SOFT,
    HardSpread,
    SoftSpread,
    constraints_of,
    system_constraints,
)
from kcm.controllers.scheduler.plugins.volumes import VolumeRule
from kcm.controllers.scheduler.snapshot import Snapshot
from kcm.controllers.scheduler.status import NODE_ABSENT, NODE_AFFINITY, Status
from kcm.controllers.scheduler.volumes.view import StorageView
from kcm.testing.views import FakeView
from tests.upstream.adapter import Json, decode
from tests.upstream.cases import Case

_OF_NODES = {
    "nodeunschedulable": "NodeUnschedulable",
    "tainttoleration": "TaintToleration",
    "nodeaffinity": "NodeAffinity",
}
_OF_ROOM = {"nodeports": "NodePorts", "noderesources": "NodeResourcesFit"}


class Rule(Protocol):
    """A filter that depends on other nodes."""

    def filter(self, node: NodeInfo) -> Status | None:
        """Returns why a pod cannot go to the node."""


class Scene:
    """The nodes of a case with their pods, and the pod that waits."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._plugin: str = case["plugin"]
        pod = decode(case["pod"], "v1", "Pod")
        assert isinstance(pod, Pod)
        self.info = PodInfo(pod)
        self._filters = LocalFilters(self.info)
        nodes = [decode(one["node"], "v1", "Node") for one in case["nodes"]]
        pods = [decode(pod, "v1", "Pod") for one in case["nodes"] for pod in one["pods"]]
        namespaces = [decode(one, "v1", "Namespace") for one in case.get("namespaces", ())]
        self.snapshot = Snapshot()
        self.snapshot.update(
            1,
            [node for node in nodes if isinstance(node, Node)],
            [pod for pod in pods if isinstance(pod, Pod)],
            [namespace for namespace in namespaces if isinstance(namespace, Namespace)],
        )

    def names(self) -> list[str] | None:
        """Returns the names of the only nodes that the pod can go to, None if all can be."""
        names = self._filters.names
        return None if names is None else sorted(names)

    def filter(self, name: str) -> Json:
        """Returns code and reasons of the plugin's rejection of a node, or nothing."""
        node = self.snapshot.by_name[name]
        if self._plugin in _OF_NODES:
            status = self._filters.filter_node(node)
            if status is NODE_ABSENT:  # what upstream's PreFilter leaves out, its Filter refuses
                status = NODE_AFFINITY
            return _tell(status, _OF_NODES[self._plugin])
        if self._plugin in _OF_ROOM:
            status = self._filters.filter_room(node)
            return _tell(status, _OF_ROOM[self._plugin])
        rule = self._rule()
        return _tell(rule.filter(node) if rule else None, "")

    def _rule(self) -> Rule | None:
        if self._plugin == "interpodaffinity":
            return self._interpod()
        constraints = constraints_of(self.info, HARD)
        if not constraints:
            return None
        return HardSpread(self.info, constraints, self.snapshot, self._filters)

    def _interpod(self) -> InterPod:
        weight = self._case.get("args", {}).get("weight", 1)
        return InterPod(self.info, self.snapshot, weight).count_all(self.snapshot)

    def count(self, names: Sequence[str]) -> list[int]:
        """Returns the plugin's counts for nodes, before they become scores."""
        nodes = [self.snapshot.by_name[name] for name in names]
        tolerations, rule = self._filters.tolerations, self._filters.rule
        if self._plugin == "tainttoleration":
            return [taints.count_untolerated_soft(node.taints, tolerations) for node in nodes]
        if self._plugin == "nodeaffinity":
            return [rule.score(node.labels, node.name) for node in nodes]
        interpod = self._interpod()
        return [interpod.score(node) for node in nodes]

    def score(self, names: Sequence[str]) -> list[int]:
        """Returns the plugin's scores for nodes, from 0 to 100."""
        if self._plugin == "podtopologyspread":
            return self._spread([self.snapshot.by_name[name].index for name in names])
        normalize = {"tainttoleration": reverse, "nodeaffinity": scale, "interpodaffinity": stretch}
        return normalize[self._plugin](self.count(names))

    def _spread(self, indexes: list[int]) -> list[int]:
        arguments = self._case.get("args", {})
        system = not self.info.source.spec.topology_spread_constraints
        constraints = constraints_of(self.info, SOFT)
        if system:
            constraints = system_constraints(Selector.parse(arguments.get("selector", "")))
        spread = SoftSpread(self.info, constraints, self.snapshot, self._filters, system=system)
        return spread.scores(indexes)

    def rate(self, name: str, way: str) -> int:
        """Returns the score of one node, from 0 to 100."""
        node = self.snapshot.by_name[name]
        return _RATES[way](self.info, node, self.snapshot)


def _score_images(info: PodInfo, node: NodeInfo, snapshot: Snapshot) -> int:
    return score_images(list_images(info.source), node, snapshot.images, len(snapshot.nodes))


_RATES: dict[str, Callable[[PodInfo, NodeInfo, Snapshot], int]] = {
    "score-Fit": lambda info, node, _: score_least_allocated(info.requests, node),
    "score-BalancedAllocation": lambda info, node, _: score_balanced_allocation(
        info.requests, node
    ),
    "images": _score_images,
}


# --- Volumes.


_OF_VOLUMES = {
    "volumerestrictions": "VolumeRestrictions",
    "nodevolumelimits": "NodeVolumeLimits",
    "volumebinding": "VolumeBinding",
    "volumezone": "VolumeZone",
}


def filter_volumes(case: Case) -> Json:
    """Returns code and reasons of a plugin's rejection of a node for the pod's volumes."""
    rule, node = _read_volumes(case)
    status = rule if isinstance(rule, Status) else rule.filter(node)
    return _tell(status, _OF_VOLUMES[case["plugin"]])


def find_volumes(case: Case) -> Json:
    """Returns the volumes that claims get on a node, the claims whose volumes are to be made, or
    what keeps the pod from the node.
    """
    rule, node = _read_volumes(case)
    if isinstance(rule, Status):
        return {"failed": True}
    if status := rule.filter(node):
        return {"failed": False, "reasons": sorted(status.reasons)}
    decision = rule.decide(node)
    chosen: dict[str, str] = {}
    for volume, _ in decision.reserved:
        assert volume.spec.claim_ref is not None
        chosen[volume.spec.claim_ref.name or ""] = volume.name
    made = sorted(claim.name for claim, _ in decision.selected)
    return {"failed": False, "reasons": [], "bindings": chosen, "provisions": made}


def _read_volumes(case: Case) -> tuple[VolumeRule | Status, NodeInfo]:
    scene = Scene(case)
    view = FakeView(*(decode(obj) for obj in case["objects"]))
    rule = volume_rule_of(scene.info, StorageView(view, scene.snapshot))
    return rule, scene.snapshot.by_name[case["name"]]


def _tell(status: Status | None, plugin: str) -> Json:
    if status is None or plugin not in ("", status.plugin):
        return []
    return [status.code, *status.reasons]
