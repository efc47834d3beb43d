"""core/v1: what pods and volumes want of nodes and of other pods.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

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
    """Conditions that must all hold. Without any it matches no node."""

    kubernetes_atomic: ClassVar[bool] = True

    match_expressions: list[NodeSelectorRequirement] | None = None
    match_fields: list[NodeSelectorRequirement] | None = None


class NodeSelector(Model):
    """Terms of which one must match."""

    kubernetes_atomic: ClassVar[bool] = True

    node_selector_terms: list[NodeSelectorTerm] = Field(default_factory=list)


class PreferredSchedulingTerm(Model):
    """A node that is preferred, and how strongly (1 to 100)."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = Field(default_factory=NodeSelectorTerm)


class NodeAffinity(Model):
    """Which nodes a pod requires and which it prefers."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] | None = (
        None
    )


class PodAffinityTerm(Model):
    """Other pods, and the label of nodes that makes a place of them."""

    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodAffinityTerm(Model):
    """Pods to be near to or far from, and how strongly (1 to 100)."""

    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = Field(default_factory=PodAffinityTerm)


class PodAffinity(Model):
    """Which pods a pod wants to be near to."""

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
    """What a pod wants of its node and of its neighbours."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class TopologySpreadConstraint(Model):
    """How evenly matching pods are to be spread over places."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class TopologySelectorLabelRequirement(Model):
    """A label of a node and the values it may have."""

    key: str = ""
    values: list[str] = Field(default_factory=list)


class TopologySelectorTerm(Model):
    """Conditions on a node's labels that must all hold."""

    kubernetes_atomic: ClassVar[bool] = True

    match_label_expressions: list[TopologySelectorLabelRequirement] | None = None
