"""Decides on which nodes a DaemonSet's pods should run, and ties each pod to its node."""

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
from kcm.helpers.tolerations import is_tolerated

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"  # an annotation of a DaemonSet
POD_GENERATION = "pod-template-generation"  # a label of its pods
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
    """Returns the tolerations for the DaemonSet's pods: the template's and those of node
    conditions.

    With the latter a pod starts and stays on a node that is not ready, unreachable, unschedulable
    or under pressure.
    """
    taints = (*_TAINTS, _OF_THE_NETWORK) if spec.host_network else _TAINTS
    added = [
        Toleration(key=f"node.kubernetes.io/{name}", operator="Exists", effect=effect)
        for name, effect in taints
    ]
    places = {_identity(toleration) for toleration in added}
    given = [own for own in spec.tolerations or () if _identity(own) not in places]
    return [*given, *added]


def _identity(toleration: Toleration) -> tuple[str, ...]:
    """Returns what identifies a toleration: everything but its duration."""
    identity = (toleration.key, toleration.effect, toleration.operator, toleration.value)
    return tuple(part or "" for part in identity)


@dataclass(frozen=True)
class Fitness:
    """Whether a pod should be started on a node, and whether a pod that is there may stay."""

    starts: bool
    stays: bool


NEITHER = Fitness(False, False)


@dataclass(frozen=True)
class Placement:
    """The nodes that a DaemonSet's template selects, in a form that is computed once for many
    nodes.
    """

    node_name: str
    rule: NodeRule
    tolerations: Sequence[Toleration]

    @classmethod
    def of(cls, daemon_set: DaemonSet) -> Placement:
        spec = daemon_set.spec.template.spec
        rule = NodeRule.of(spec.node_selector, spec.affinity)
        return cls(spec.node_name or "", rule, tolerations_of(spec))

    def judge(self, node: Node) -> Fitness:
        """Returns the fitness of a node.

        Any taint that is not tolerated keeps new pods away, but only those with the effect
        NoExecute remove running pods.
        """
        if self.node_name not in ("", node.name) or not self.rule.matches(node.labels, node.name):
            return NEITHER
        against = [taint for taint in node.spec.taints or () if self._minds(taint)]
        return Fitness(not against, not any(taint.effect == "NoExecute" for taint in against))

    def _minds(self, taint: Taint) -> bool:
        return taint.effect in _HARD and not is_tolerated(taint, self.tolerations)


def node_of(pod: Pod) -> str:
    """Returns the name of the node that the pod is bound to or was created for, or ""."""
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


def template_generation(daemon_set: DaemonSet) -> str:
    """Returns the template's generation from the DaemonSet's annotation, "" if there is none."""
    text = daemon_set.annotations.get(TEMPLATE_GENERATION, "")
    return text if text.isascii() and text.isdecimal() else ""


def new_pod(daemon_set: DaemonSet, node: str, revision: str) -> Pod:
    """Returns a pod of the DaemonSet for a node. `revision` is the hash of the template."""
    pod = pod_from_template(daemon_set.spec.template, daemon_set)
    labels = {**pod.labels, REVISION_HASH: revision}
    if generation := template_generation(daemon_set):
        labels[POD_GENERATION] = generation
    spec = pod.spec.replace(
        affinity=_tie_to_node(pod.spec.affinity, node), tolerations=tolerations_of(pod.spec)
    )
    return pod.with_metadata(labels=labels).with_spec(spec)


def _tie_to_node(affinity: Affinity | None, node: str) -> Affinity:
    """Returns the affinity with its required node terms replaced by one that names the node.

    The node has been found to meet the replaced requirements.
    """
    field = NodeSelectorRequirement(key=_NODE_NAME, operator="In", values=[node])
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[field])])
    given = affinity or Affinity()
    of_nodes = (given.node_affinity or NodeAffinity()).replace(
        required_during_scheduling_ignored_during_execution=required
    )
    return given.replace(node_affinity=of_nodes)
