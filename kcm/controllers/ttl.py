"""Tells kubelets, by an annotation on their nodes, how long they may cache secrets and such:
the larger the cluster, the longer.

The boundaries overlap, so that a cluster whose size wavers about one of them keeps its
step. The step is read off the nodes' own annotations; upstream counts in memory, and sets
a node right at its next heartbeat.

Source: pkg/controller/ttl/ttl_controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from kcm.api.core_v1 import Node
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.reconcile.contract import Controller, Tick, View
from kcm.reconcile.plan import Patch, Plan

PERIOD = 10.0  # seconds between passes, as between heartbeats
ANNOTATION = "node.alpha.kubernetes.io/ttl"


class Boundary(NamedTuple):
    """A step: cluster sizes at which it is kept, and the seconds it stands for."""

    size_min: int
    size_max: float
    seconds: int


BOUNDARIES = (
    Boundary(0, 100, 0),
    Boundary(90, 500, 15),
    Boundary(450, 1000, 30),
    Boundary(900, 2000, 60),
    Boundary(1800, float("inf"), 300),
)


class TTLController(Controller):
    """Annotates nodes."""

    name = "ttl-controller"
    short_name = "ttl"
    reads = (Node,)

    def ticks(self) -> tuple[Tick, ...]:
        return (Tick("ttl", PERIOD, self.annotate),)

    def annotate(self, view: View, state: Mapping[str, str]) -> Plan:
        """One pass over all nodes."""
        nodes = view.lister(Node).list()
        seconds = str(seconds_for(nodes))
        change = partial(_annotated, seconds)
        wrong = [node for node in nodes if node.annotations.get(ANNOTATION) != seconds]
        return Plan().then(*(Patch(node, change) for node in wrong))


def seconds_for(nodes: Sequence[Node]) -> int:
    """The seconds for a cluster of these nodes: its present step, as long as that covers its
    size, else the next one towards it."""
    size = len(nodes)
    step = _present_step(nodes)
    while size > BOUNDARIES[step].size_max:
        step += 1
    while size < BOUNDARIES[step].size_min:
        step -= 1
    return BOUNDARIES[step].seconds


def _present_step(nodes: Sequence[Node]) -> int:
    """What most nodes say; the lowest step when none says anything."""
    said = Counter(node.annotations.get(ANNOTATION) for node in nodes)
    counts = [said[str(boundary.seconds)] for boundary in BOUNDARIES]
    return counts.index(max(counts))


def _annotated(seconds: str, obj: KubeObject) -> KubeObject:
    if obj.annotations.get(ANNOTATION) == seconds:
        return obj
    return obj.with_metadata(annotations={**obj.annotations, ANNOTATION: seconds})
