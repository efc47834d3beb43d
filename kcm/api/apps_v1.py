"""apps/v1: ReplicaSet, Deployment, ControllerRevision.

Source: staging/src/k8s.io/api/apps/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.api.base import Bool, Int32, Int64, JsonObject, MergeKey, Model
from kcm.api.core_v1.containers import IntOrString
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


class RollingUpdateDeployment(Model):
    """How far an update may go from the wanted number of pods, as a number or percentage."""

    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class DeploymentStrategy(Model):
    """How old pods are replaced: RollingUpdate or Recreate."""

    type: str | None = None
    rolling_update: RollingUpdateDeployment | None = None


class DeploymentSpec(Model):
    """How many pods, made from which template, and how they change with it."""

    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = Field(default_factory=PodTemplateSpec)
    strategy: DeploymentStrategy = Field(default_factory=DeploymentStrategy)
    min_ready_seconds: Int32 | None = None
    revision_history_limit: Int32 | None = None
    paused: Bool | None = None
    progress_deadline_seconds: Int32 | None = None


class DeploymentCondition(Model):
    """One aspect of a Deployment's state."""

    type: str = ""
    status: str = ""
    last_update_time: Time | None = None
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None


class DeploymentStatus(Model):
    """How many pods there are, by how far they and the update have come."""

    observed_generation: Int64 | None = None
    replicas: Int32 | None = None
    updated_replicas: Int32 | None = None
    ready_replicas: Int32 | None = None
    available_replicas: Int32 | None = None
    unavailable_replicas: Int32 | None = None
    terminating_replicas: Int32 | None = None
    conditions: Annotated[list[DeploymentCondition] | None, MergeKey("type")] = None
    collision_count: Int32 | None = None


class Deployment(KubeObject):
    """Rolls out changes of a template through ReplicaSets."""

    api_version: str = "apps/v1"
    kind: str = "Deployment"
    spec: DeploymentSpec = Field(default_factory=DeploymentSpec)
    status: DeploymentStatus = Field(default_factory=DeploymentStatus)


class ControllerRevision(KubeObject):
    """A snapshot of a controller's state; its data never changes."""

    api_version: str = "apps/v1"
    kind: str = "ControllerRevision"
    data: JsonObject | None = None
    revision: Int64 = 0
