"""core/v1: ReplicationController.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.api.core_v1.pods import PodTemplateSpec
from kcm.apimachinery.base import Atomic, Int32, Int64, MergeKey, Model, StringMap
from kcm.apimachinery.meta_v1 import KubeObject, Time


class ReplicationControllerSpec(Model):
    """The wanted number of pods, the selector for them, and their template."""

    replicas: Int32 | None = None
    min_ready_seconds: Int32 | None = None
    selector: Annotated[StringMap | None, Atomic()] = None
    template: PodTemplateSpec | None = None


class ReplicationControllerCondition(Model):
    """One aspect of a ReplicationController's state."""

    type: str = ""
    status: str = ""
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None


class ReplicationControllerStatus(Model):
    """The observed numbers of a ReplicationController's pods, by their state."""

    replicas: Int32 = 0
    fully_labeled_replicas: Int32 | None = None
    ready_replicas: Int32 | None = None
    available_replicas: Int32 | None = None
    observed_generation: Int64 | None = None
    conditions: Annotated[list[ReplicationControllerCondition] | None, MergeKey("type")] = None


class ReplicationController(KubeObject):
    """Keeps a given number of identical pods running. ReplicaSets have replaced it."""

    api_version: str = "v1"
    kind: str = "ReplicationController"
    spec: ReplicationControllerSpec = Field(default_factory=ReplicationControllerSpec)
    status: ReplicationControllerStatus = Field(default_factory=ReplicationControllerStatus)
