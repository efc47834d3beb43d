"""apps/v1: ReplicaSet, Deployment, StatefulSet, DaemonSet, ControllerRevision.

Source: staging/src/k8s.io/api/apps/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.api.core_v1.handlers import IntOrString
from kcm.api.core_v1.pods import PodTemplateSpec
from kcm.api.core_v1.volume_claims import PersistentVolumeClaim
from kcm.apimachinery.base import Bool, Int32, Int64, JsonObject, MergeKey, Model, RetainKeys
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector
from kcm.apimachinery.times import Time


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
    strategy: Annotated[DeploymentStrategy, RetainKeys()] = Field(
        default_factory=DeploymentStrategy
    )
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


class RollingUpdateStatefulSetStrategy(Model):
    """Which pods an update reaches, and how many of them at a time."""

    partition: Int32 | None = None
    max_unavailable: IntOrString | None = None


class StatefulSetUpdateStrategy(Model):
    """How old pods are replaced: RollingUpdate or OnDelete."""

    type: str | None = None
    rolling_update: RollingUpdateStatefulSetStrategy | None = None


class StatefulSetPersistentVolumeClaimRetentionPolicy(Model):
    """What becomes of claims: Retain or Delete."""

    when_deleted: str | None = None
    when_scaled: str | None = None


class StatefulSetOrdinals(Model):
    """The numbers in the pods' names."""

    start: Int32 = 0


class StatefulSetSpec(Model):
    """How many pods, made from which template and claims, and in what order they change."""

    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = Field(default_factory=PodTemplateSpec)
    volume_claim_templates: list[PersistentVolumeClaim] | None = None
    service_name: str = ""
    pod_management_policy: str | None = None
    update_strategy: StatefulSetUpdateStrategy = Field(default_factory=StatefulSetUpdateStrategy)
    revision_history_limit: Int32 | None = None
    min_ready_seconds: Int32 | None = None
    persistent_volume_claim_retention_policy: (
        StatefulSetPersistentVolumeClaimRetentionPolicy | None
    ) = None
    ordinals: StatefulSetOrdinals | None = None


class StatefulSetCondition(Model):
    """One aspect of a StatefulSet's state."""

    type: str = ""
    status: str = ""
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None


class StatefulSetStatus(Model):
    """How many pods there are, by how far they and the update have come."""

    observed_generation: Int64 | None = None
    replicas: Int32 = 0
    ready_replicas: Int32 | None = None
    current_replicas: Int32 | None = None
    updated_replicas: Int32 | None = None
    current_revision: str | None = None
    update_revision: str | None = None
    collision_count: Int32 | None = None
    conditions: Annotated[list[StatefulSetCondition] | None, MergeKey("type")] = None
    available_replicas: Int32 = 0


class StatefulSet(KubeObject):
    """Keeps numbered pods, each with its own name and volumes."""

    api_version: str = "apps/v1"
    kind: str = "StatefulSet"
    spec: StatefulSetSpec = Field(default_factory=StatefulSetSpec)
    status: StatefulSetStatus = Field(default_factory=StatefulSetStatus)


class RollingUpdateDaemonSet(Model):
    """How many nodes may be without a ready pod, or have two pods, during an update.

    Each field is a number of nodes or a percentage of the nodes that should run the pod.
    """

    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class DaemonSetUpdateStrategy(Model):
    """How old pods are replaced: RollingUpdate or OnDelete."""

    type: str | None = None
    rolling_update: RollingUpdateDaemonSet | None = None


class DaemonSetSpec(Model):
    """What runs on every node, and how it changes."""

    selector: LabelSelector | None = None
    template: PodTemplateSpec = Field(default_factory=PodTemplateSpec)
    update_strategy: DaemonSetUpdateStrategy = Field(default_factory=DaemonSetUpdateStrategy)
    min_ready_seconds: Int32 | None = None
    revision_history_limit: Int32 | None = None


class DaemonSetCondition(Model):
    """One aspect of a DaemonSet's state."""

    type: str = ""
    status: str = ""
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None


class DaemonSetStatus(Model):
    """The numbers of nodes on which a pod is wanted, runs and is ready."""

    current_number_scheduled: Int32 = 0
    number_misscheduled: Int32 = 0
    desired_number_scheduled: Int32 = 0
    number_ready: Int32 = 0
    observed_generation: Int64 | None = None
    updated_number_scheduled: Int32 | None = None
    number_available: Int32 | None = None
    number_unavailable: Int32 | None = None
    collision_count: Int32 | None = None
    conditions: Annotated[list[DaemonSetCondition] | None, MergeKey("type")] = None


class DaemonSet(KubeObject):
    """Keeps a pod on every node that it is meant for."""

    api_version: str = "apps/v1"
    kind: str = "DaemonSet"
    spec: DaemonSetSpec = Field(default_factory=DaemonSetSpec)
    status: DaemonSetStatus = Field(default_factory=DaemonSetStatus)


class ControllerRevision(KubeObject):
    """A snapshot of a controller's state; its data never changes."""

    api_version: str = "apps/v1"
    kind: str = "ControllerRevision"
    data: JsonObject | None = None
    revision: Int64 = 0
