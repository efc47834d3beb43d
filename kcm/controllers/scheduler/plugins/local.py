"""Filters and scores that depend on one node and the pods on it.

Source: the plugins nodeunschedulable, nodename, tainttoleration, nodeaffinity, nodeports,
noderesources and imagelocality under pkg/scheduler/framework/plugins, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kcm.api.core_v1 import Pod
from kcm.controllers.scheduler import status
from kcm.controllers.scheduler.nodeinfo import NodeInfo, PodInfo
from kcm.controllers.scheduler.plugins import taints
from kcm.controllers.scheduler.plugins.normalizing import MAX_SCORE
from kcm.controllers.scheduler.resources import PodRequests
from kcm.controllers.scheduler.status import Status
from kcm.helpers.nodeaffinity import NodeRule
from kcm.helpers.tolerations import is_tolerated

_MEGABYTE = 1024 * 1024
_IMAGE_MIN, _IMAGE_MAX = 23 * _MEGABYTE, 1000 * _MEGABYTE  # the maximum is per container


class LocalFilters:
    """The filters for single nodes of one pod, or of all pods of a template."""

    def __init__(self, info: PodInfo) -> None:
        pod: Pod = info.source
        self.requests = info.requests
        self.ports = info.ports
        self.tolerations = pod.spec.tolerations or []
        self.rule = NodeRule.of(pod.spec.node_selector, pod.spec.affinity)
        self.names = self.rule.names
        # A pod without requests fits wherever there is room for one more pod.
        self._has_requests = bool(any(self.requests[:3]) or self.requests.others)

    def filter(self, node: NodeInfo) -> Status | None:
        """Returns why the pod cannot go to the node, or None if it can."""
        return self.filter_node(node) or self.filter_room(node)

    def filter_node(self, node: NodeInfo) -> Status | None:
        """Returns why the node itself does not fit, whatever runs on it; None if it fits."""
        if self.names is not None and node.name not in self.names:
            return status.NODE_ABSENT
        if node.unschedulable and not is_tolerated(taints.UNSCHEDULABLE, self.tolerations):
            return status.NODE_UNSCHEDULABLE
        if taints.find_untolerated(node.taints, self.tolerations) is not None:
            return status.NODE_TAINTED
        if not self.rule.matches(node.labels, node.name):
            return status.NODE_AFFINITY
        return None

    def filter_room(self, node: NodeInfo) -> Status | None:
        """Returns why the node has no room beside its pods, or None if it has."""
        if self.ports and node.conflicts(self.ports):
            return status.NODE_PORTS
        needs = self.requests
        if len(node.pods) + 1 > node.pods_max:
            return self._insufficient(node)
        if not self._has_requests:
            return None
        if (
            (not needs.cpu or needs.cpu <= node.cpu - node.used_cpu)
            and (not needs.memory or needs.memory <= node.memory - node.used_memory)
            and (not needs.storage or needs.storage <= node.storage - node.used_storage)
            and not needs.others
        ):
            return None
        return self._insufficient(node)

    def _insufficient(self, node: NodeInfo) -> Status | None:
        reasons, too_small = find_insufficient(self.requests, node)
        if not reasons:
            return None
        code = status.UNRESOLVABLE if too_small else status.UNSCHEDULABLE
        return Status(code, "NodeResourcesFit", tuple(reasons))


def find_insufficient(needs: PodRequests, node: NodeInfo) -> tuple[list[str], bool]:
    """Returns a reason for each resource that the node lacks.

    Also returns whether it would lack one of them even without any pods.
    """
    reasons = ["Too many pods"] if len(node.pods) + 1 > node.pods_max else []
    too_small = False
    wanted = [
        ("cpu", needs.cpu, node.cpu, node.used_cpu),
        ("memory", needs.memory, node.memory, node.used_memory),
        ("ephemeral-storage", needs.storage, node.storage, node.used_storage),
    ]
    for name, amount in needs.others:
        wanted.append((name, amount, node.others.get(name, 0), node.used_others.get(name, 0)))
    for name, amount, offered, used in wanted:
        if amount and amount > offered - used:
            reasons.append(f"Insufficient {name}")
            too_small = too_small or amount > offered
    return reasons, too_small


def score_resources(needs: PodRequests, node: NodeInfo) -> int:
    """Returns the sum of the scores for least and for balanced allocation, each from 0 to 100."""
    score = score_least_allocated(needs, node)
    if needs.cpu or needs.memory:  # upstream leaves out pods without requests (issue 129138)
        score += score_balanced_allocation(needs, node)
    return score


def score_least_allocated(needs: PodRequests, node: NodeInfo) -> int:
    """Returns the mean of the free shares of CPU and memory, from 0 to 100."""
    total = weights = 0
    for offered, used in (
        (node.cpu, node.scoring_cpu + needs.scoring_cpu),
        (node.memory, node.scoring_memory + needs.scoring_memory),
    ):
        if offered:
            weights += 1
            if used <= offered:
                total += (offered - used) * MAX_SCORE // offered
    return total // weights if weights else 0


def score_balanced_allocation(needs: PodRequests, node: NodeInfo) -> int:
    """Returns 75 if the pod leaves the shares of CPU and memory in use as far apart as they are,
    more, up to 100, if it brings them together, and less, down to 50, if it parts them.
    """
    now = _rate_balance(node.used_cpu, node.used_memory, node)
    then = _rate_balance(node.used_cpu + needs.cpu, node.used_memory + needs.memory, node)
    return MAX_SCORE // 2 + (MAX_SCORE // 2 + then - now) // 2


def _rate_balance(used_cpu: int, used_memory: int, node: NodeInfo) -> int:
    """Returns 100 if CPU and memory are used to the same share, 50 if one is full and one empty."""
    if not node.cpu or not node.memory:
        return MAX_SCORE
    cpu, memory = min(used_cpu / node.cpu, 1.0), min(used_memory / node.memory, 1.0)
    return int((1 - abs(cpu - memory) / 2) * MAX_SCORE)


class WantedImages(NamedTuple):
    """The images of a pod's containers and volumes, under the names that nodes give them, and the
    number of its containers.
    """

    names: tuple[str, ...]
    containers: int


def list_images(pod: Pod) -> WantedImages:
    """Returns the images that a pod needs on its node."""
    containers = (*(pod.spec.init_containers or ()), *pod.spec.containers)
    images = [container.image or "" for container in containers]
    images += [v.image.reference or "" for v in pod.spec.volumes or () if v.image is not None]
    return WantedImages(tuple(map(normalize_image, images)), len(containers))


def normalize_image(name: str) -> str:
    """Returns the image's name, with the tag `latest` if it has none."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def score_images(
    wanted: WantedImages, node: NodeInfo, spread: Mapping[str, int], nodes: int
) -> int:
    """Returns a score from 0 to 100 for images of the pod that are on the node already.

    It is the higher, the larger they are and the more nodes have them. `spread` is the number of
    nodes by image, `nodes` the number of all nodes.
    """
    present = node.images
    total = sum(int(present[n] * (spread.get(n, 0) / nodes)) for n in wanted.names if n in present)
    upper = _IMAGE_MAX * wanted.containers
    if upper <= _IMAGE_MIN:
        return 0
    return MAX_SCORE * (min(max(total, _IMAGE_MIN), upper) - _IMAGE_MIN) // (upper - _IMAGE_MIN)
