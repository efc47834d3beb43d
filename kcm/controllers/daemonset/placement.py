"""On which nodes the pods of a DaemonSet are to be, and how each is tied to its node.

The scheduler binds them; they only say where, and what they put up with.

Source: NodeShouldRunDaemonPod in pkg/controller/daemon/daemon_controller.go and
pkg/controller/daemon/util/daemonset_util.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kcm.api.apps_v1 import DaemonSet
from kcm.api.core_v1 import Node, Pod, PodSpec, Taint, Toleration
from kcm.api.core_v1.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from kcm.helpers.history import REVISION_HASH
from kcm.helpers.nodeaffinity import NodeRule
from kcm.helpers.pods import pod_from_template
from kcm.helpers.tolerations import tolerates

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"  # annotation of a DaemonSet
POD_GENERATION = "pod-template-generation"  # label of its pods
_NODE_NAME = "metadata.name"
_HARD = frozenset({"NoSchedule", "NoExecute"})
_TAINTS = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_OF_THE_NETWORK = ("network-unavailable", "NoSchedule")


def tolerations_of(spec: PodSpec) -> list[Toleration]:
    """What the template's pods put up with: a node's troubles are no reason to leave it."""
    taints = (*_TAINTS, _OF_THE_NETWORK) if spec.host_network else _TAINTS
    added = [
        Toleration(key=f"node.kubernetes.io/{name}", operator="Exists", effect=effect)
        for name, effect in taints
    ]
    places = {_place(toleration) for toleration in added}
    given = [found for found in spec.tolerations or () if _place(found) not in places]
    return [*given, *added]


def _place(toleration: Toleration) -> tuple[str, ...]:
    """What tells a toleration from others; all but for how long."""
    found = (toleration.key, toleration.effect, toleration.operator, toleration.value)
    return tuple(part or "" for part in found)


@dataclass(frozen=True)
class Fitness:
    """Whether a node is to get a pod, and whether one that is there may stay."""

    starts: bool
    stays: bool


NEITHER = Fitness(False, False)


@dataclass(frozen=True)
class Placement:
    """Which nodes a DaemonSet's template is for; worked out once for many nodes."""

    node_name: str
    rule: NodeRule
    tolerations: Sequence[Toleration]

    @classmethod
    def of(cls, found: DaemonSet) -> Placement:
        spec = found.spec.template.spec
        rule = NodeRule.of(spec.node_selector, spec.affinity)
        return cls(spec.node_name or "", rule, tolerations_of(spec))

    def judge(self, node: Node) -> Fitness:
        """Whether the node is one of them. Taints that came later drive nobody away but with
        the effect NoExecute."""
        if self.node_name not in ("", node.name) or not self.rule.matches(node.labels, node.name):
            return NEITHER
        against = [taint for taint in node.spec.taints or () if self._minds(taint)]
        return Fitness(not against, not any(taint.effect == "NoExecute" for taint in against))

    def _minds(self, taint: Taint) -> bool:
        return taint.effect in _HARD and not any(tolerates(t, taint) for t in self.tolerations)


def node_of(pod: Pod) -> str:
    """The node that the pod is on, or was made for; '' for none."""
    if pod.spec.node_name:
        return pod.spec.node_name
    of_nodes = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = of_nodes.required_during_scheduling_ignored_during_execution if of_nodes else None
    for term in required.node_selector_terms if required else ():
        for field in term.match_fields or ():
            values = field.values or []
            named = field.key == _NODE_NAME and field.operator == "In"
            if named and len(values) == 1:
                return values[0]
    return ""


def template_generation(found: DaemonSet) -> str:
    """How often the template has changed; '' where that is not known."""
    text = found.annotations.get(TEMPLATE_GENERATION, "")
    return text if text.isascii() and text.isdecimal() else ""


def new_pod(found: DaemonSet, node: str, revision: str) -> Pod:
    """The pod for a node, of a revision."""
    pod = pod_from_template(found.spec.template, found)
    labels = {**pod.labels, REVISION_HASH: revision}
    if generation := template_generation(found):
        labels[POD_GENERATION] = generation
    spec = pod.spec.replace(
        affinity=_tied(pod.spec.affinity, node), tolerations=tolerations_of(pod.spec)
    )
    return pod.with_metadata(labels=labels).with_spec(spec)


def _tied(affinity: Affinity | None, node: str) -> Affinity:
    """The affinity, its requirements of the node replaced by the node's name: the node was
    found to meet them."""
    field = NodeSelectorRequirement(key=_NODE_NAME, operator="In", values=[node])
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[field])])
    given = affinity or Affinity()
    of_nodes = (given.node_affinity or NodeAffinity()).replace(
        required_during_scheduling_ignored_during_execution=required
    )
    return given.replace(node_affinity=of_nodes)
