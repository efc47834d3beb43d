"""TTL: annotates nodes with the time for which kubelets may cache secrets and config maps.

The larger the cluster, the longer the time. The boundaries overlap, so that a cluster whose size
varies around a boundary keeps its time. Departure: the present step is read from the annotations of
the nodes; upstream counts nodes in memory and corrects a node at its next heartbeat.

Source: pkg/controller/ttl/ttl_controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from kcm.api.core_v1 import Node
from kcm.sdk import Controller, PassPlan, Patch, Tick, View

PERIOD = 10.0  # seconds between passes, as between heartbeats
ANNOTATION = "node.alpha.kubernetes.io/ttl"


class Boundary(NamedTuple):
    """The annotation's value in seconds for clusters of `size_min` to `size_max` nodes.

    The ranges overlap, so that a cluster whose size varies a little keeps its value.
    """

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
    """Annotates all nodes in each pass."""

    name = "ttl-controller"
    short_name = "ttl"
    reads = (Node,)

    def ticks(self) -> tuple[Tick, ...]:
        return (Tick("ttl", PERIOD, self.annotate),)

    def annotate(self, view: View, state: Mapping[str, str]) -> PassPlan:
        """Returns a plan that annotates all nodes without the right annotation."""
        nodes = view.lister(Node).list()
        seconds = str(seconds_for(nodes))
        change = partial(_annotate, seconds)
        wrong = [node for node in nodes if node.annotations.get(ANNOTATION) != seconds]
        return PassPlan(waits=()).then(*(Patch(node, change) for node in wrong))


def seconds_for(nodes: Sequence[Node]) -> int:
    """Returns the value of the annotation, in seconds, for a cluster of these nodes.

    It is that of the present step as long as that covers the number of nodes, else of the nearest
    step that does.
    """
    size = len(nodes)
    step = _present_step(nodes)
    while size > BOUNDARIES[step].size_max:
        step += 1
    while size < BOUNDARIES[step].size_min:
        step -= 1
    return BOUNDARIES[step].seconds


def _present_step(nodes: Sequence[Node]) -> int:
    """Returns the index in BOUNDARIES of the step that most nodes have, 0 if none has any."""
    annotations = Counter(node.annotations.get(ANNOTATION) for node in nodes)
    counts = [annotations[str(boundary.seconds)] for boundary in BOUNDARIES]
    return counts.index(max(counts))


def _annotate(seconds: str, obj: Node) -> Node:
    if obj.annotations.get(ANNOTATION) == seconds:
        return obj
    return obj.with_metadata(annotations={**obj.annotations, ANNOTATION: seconds})
