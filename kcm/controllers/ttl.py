"""TTL: annotates nodes with the time for which kubelets may cache secrets and config maps.

The larger the cluster, the longer the time. The boundaries overlap, so that a cluster whose size
varies around a boundary keeps its time. New nodes are annotated at once, all of a burst in one
sync; the others by a pass, when the size of the cluster has changed. Departure: the present step is
read from the annotations of the nodes; upstream counts nodes in memory and corrects a node at its
next heartbeat.

Source: pkg/controller/ttl/ttl_controller.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from kcm.api.core_v1 import Node
from kcm.sdk import Change, Controller, PassPlan, Patch, Plan, Tick, View, Watch

PERIOD = 10.0  # seconds between passes, as between heartbeats
NEW_NODES = "new-nodes"  # the key that stands for all of them
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


def _new_nodes(change: Change[Node], view: View) -> Iterable[str]:
    return () if ANNOTATION in change.object.annotations else (NEW_NODES,)


class TTLController(Controller):
    """Annotates all nodes that need it, in each pass and as soon as there are new ones."""

    name = "ttl-controller"
    short_name = "ttl"

    def watches(self) -> tuple[Watch[Node], ...]:
        return (Watch(Node, _new_nodes),)

    def reconcile(self, key: str, view: View) -> Plan:
        return Plan().then(*_list_patches(view))

    def ticks(self) -> tuple[Tick, ...]:
        return (Tick("ttl", PERIOD, self.annotate),)

    def annotate(self, view: View, state: Mapping[str, str]) -> PassPlan:
        """Returns a plan that annotates all nodes without the right annotation."""
        return PassPlan(waits=()).then(*_list_patches(view))


def _list_patches(view: View) -> Sequence[Patch]:
    """Returns the writes that annotate all nodes without the right annotation."""
    nodes = view.lister(Node).list()
    seconds = str(seconds_for(nodes))
    change = partial(_annotate, seconds)
    return [Patch(node, change) for node in nodes if node.annotations.get(ANNOTATION) != seconds]


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
