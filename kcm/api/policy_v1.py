"""policy/v1: PodDisruptionBudget.

Source: staging/src/k8s.io/api/policy/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.api.core_v1.handlers import IntOrString
from kcm.apimachinery.base import Int32, Int64, MergeKey, Model
from kcm.apimachinery.meta_v1 import Condition, KubeObject, LabelSelector, Time


class PodDisruptionBudgetSpec(Model):
    """The pods of a budget, and how many of them must stay available or may be unavailable."""

    min_available: IntOrString | None = None
    selector: LabelSelector | None = None
    max_unavailable: IntOrString | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Model):
    """How many healthy pods there are, and how many may be evicted now."""

    observed_generation: Int64 | None = None
    disrupted_pods: dict[str, Time] | None = None
    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0
    conditions: Annotated[list[Condition] | None, MergeKey("type")] = None


class PodDisruptionBudget(KubeObject):
    """Limits how many pods of an application evictions may make unavailable at once."""

    api_version: str = "policy/v1"
    kind: str = "PodDisruptionBudget"
    spec: PodDisruptionBudgetSpec = Field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = Field(default_factory=PodDisruptionBudgetStatus)
