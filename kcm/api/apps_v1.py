"""apps/v1: ReplicaSet.

Source: staging/src/k8s.io/api/apps/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.api.base import Int32, Int64, MergeKey, Model
from kcm.api.core_v1.pods import PodTemplateSpec
from kcm.api.meta_v1 import KubeObject, LabelSelector
from kcm.api.times import Time


class ReplicaSetSpec(Model):
    """How many pods, chosen by which labels, made from which template."""

    replicas: Int32 | None = None
    min_ready_seconds: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = Field(default_factory=PodTemplateSpec)


class ReplicaSetCondition(Model):
    """One aspect of a ReplicaSet's state."""

    type: str = ""
    status: str = ""
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None


class ReplicaSetStatus(Model):
    """How many pods there are, by how far they have come."""

    replicas: Int32 = 0
    fully_labeled_replicas: Int32 | None = None
    ready_replicas: Int32 | None = None
    available_replicas: Int32 | None = None
    terminating_replicas: Int32 | None = None
    observed_generation: Int64 | None = None
    conditions: Annotated[list[ReplicaSetCondition] | None, MergeKey("type")] = None


class ReplicaSet(KubeObject):
    """Keeps a number of pods alike."""

    api_version: str = "apps/v1"
    kind: str = "ReplicaSet"
    spec: ReplicaSetSpec = Field(default_factory=ReplicaSetSpec)
    status: ReplicaSetStatus = Field(default_factory=ReplicaSetStatus)
