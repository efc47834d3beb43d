"""core/v1: the rules by which pods and volumes choose nodes and other pods.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from kcm.apimachinery.base import Int32, Model
from kcm.apimachinery.meta_v1 import LabelSelector


class NodeSelectorRequirement(Model):
    """A condition on one label, or one field, of a node."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeSelectorTerm(Model):
    """Conditions on a node that must all hold. A term without conditions matches no node."""

    kubernetes_atomic: ClassVar[bool] = True

    match_expressions: list[NodeSelectorRequirement] | None = None
    match_fields: list[NodeSelectorRequirement] | None = None


class NodeSelector(Model):
    """Terms of which at least one must match a node."""

    kubernetes_atomic: ClassVar[bool] = True

    node_selector_terms: list[NodeSelectorTerm] = Field(default_factory=list)


class PreferredSchedulingTerm(Model):
    """Conditions on preferred nodes, and the weight (1 to 100) that such a node gets."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = Field(default_factory=NodeSelectorTerm)


class NodeAffinity(Model):
    """The nodes that a pod requires, and those that it prefers."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] | None = (
        None
    )


class PodAffinityTerm(Model):
    """A selector for other pods, and the node label that defines topology domains.

    Two nodes are in the same topology domain if the label has the same value on both.
    """

    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodAffinityTerm(Model):
    """A term of pod affinity or anti-affinity, and its weight (1 to 100)."""

    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = Field(default_factory=PodAffinityTerm)


class PodAffinity(Model):
    """The pods with which a pod must, or would rather, share a topology domain."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] | None = (
        None
    )


class PodAntiAffinity(Model):
    """The pods with which a pod must not, or would rather not, share a topology domain."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] | None = (
        None
    )


class Affinity(Model):
    """The scheduling rules of a pod about its node and about the pods near it."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None

    def list_pod_terms(self) -> Iterator[PodAffinityTerm]:
        """Yields the required and preferred terms of pod affinity and anti-affinity."""
        for side in (self.pod_affinity, self.pod_anti_affinity):
            if side is not None:
                yield from side.required_during_scheduling_ignored_during_execution or ()
                for weighted in side.preferred_during_scheduling_ignored_during_execution or ():
                    yield weighted.pod_affinity_term


class TopologySpreadConstraint(Model):
    """How evenly matching pods have to be spread over topology domains."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class TopologySelectorLabelRequirement(Model):
    """A node label and the values that it may have."""

    key: str = ""
    values: list[str] = Field(default_factory=list)


class TopologySelectorTerm(Model):
    """Conditions on a node's labels. All of them must hold."""

    kubernetes_atomic: ClassVar[bool] = True

    match_label_expressions: list[TopologySelectorLabelRequirement] | None = None
