"""apps/v1: ReplicaSet, Deployment, StatefulSet, DaemonSet, ControllerRevision.

Source: staging/src/k8s.io/api/apps/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from kcm.api.core_v1.handlers import IntOrString
from kcm.api.core_v1.pods import PodTemplateSpec
from kcm.api.core_v1.volume_claims import PersistentVolumeClaim
from kcm.apimachinery.base import Bool, Int32, Int64, MergeKey, Model, RetainKeys
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector, Time


class ReplicaSetSpec(Model):
    """The number of pods that a ReplicaSet keeps, the selector for them, and their template."""

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
    """The observed numbers of a ReplicaSet's pods, by their state."""

    replicas: Int32 = 0
    fully_labeled_replicas: Int32 | None = None
    ready_replicas: Int32 | None = None
    available_replicas: Int32 | None = None
    terminating_replicas: Int32 | None = None
    observed_generation: Int64 | None = None
    conditions: Annotated[list[ReplicaSetCondition] | None, MergeKey("type")] = None


class ReplicaSet(KubeObject):
    """Keeps a given number of identical pods running."""

    api_version: str = "apps/v1"
    kind: str = "ReplicaSet"
    spec: ReplicaSetSpec = Field(default_factory=ReplicaSetSpec)
    status: ReplicaSetStatus = Field(default_factory=ReplicaSetStatus)


class RollingUpdateDeployment(Model):
    """How far a rolling update may deviate from the wanted number of pods.

    Each field is a number of pods or a percentage of the wanted number.
    """

    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class DeploymentStrategy(Model):
    """How a Deployment replaces old pods by new ones: type RollingUpdate or Recreate."""

    type: str | None = None
    rolling_update: RollingUpdateDeployment | None = None


class DeploymentSpec(Model):
    """The wanted number of pods, their template, and how changes of it are rolled out."""

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
    """The observed numbers of a Deployment's pods, and the progress of its rollout."""

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
    """Keeps a number of pods running through ReplicaSets, and rolls out changes of their
    template.
    """

    api_version: str = "apps/v1"
    kind: str = "Deployment"
    spec: DeploymentSpec = Field(default_factory=DeploymentSpec)
    status: DeploymentStatus = Field(default_factory=DeploymentStatus)


class RollingUpdateStatefulSetStrategy(Model):
    """The parameters of a rolling update: which pods are replaced, and how many at a time."""

    partition: Int32 | None = None
    max_unavailable: IntOrString | None = None


class StatefulSetUpdateStrategy(Model):
    """How a StatefulSet replaces old pods by new ones: type RollingUpdate or OnDelete."""

    type: str | None = None
    rolling_update: RollingUpdateStatefulSetStrategy | None = None


class StatefulSetPersistentVolumeClaimRetentionPolicy(Model):
    """The handling of claims whose pods are no longer wanted: Retain or Delete."""

    when_deleted: str | None = None
    when_scaled: str | None = None


class StatefulSetOrdinals(Model):
    """The numbers (ordinals) that the names of the pods end in."""

    start: Int32 = 0


class StatefulSetSpec(Model):
    """The wanted number of pods, the templates of pods and claims, and how pods are updated."""

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
    """The observed numbers of a StatefulSet's pods, and the progress of its rollout."""

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
    """Keeps numbered pods running, each with a stable name and volume claims of its own."""

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
    """How a DaemonSet replaces old pods by new ones: type RollingUpdate or OnDelete."""

    type: str | None = None
    rolling_update: RollingUpdateDaemonSet | None = None


class DaemonSetSpec(Model):
    """The template of the pods that run on nodes, their selector, and how they are updated."""

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
    """The numbers of nodes that should run the DaemonSet's pod, run it, and have it ready."""

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
    """Keeps one pod on each node that the pod template's node selector and affinity allow."""

    api_version: str = "apps/v1"
    kind: str = "DaemonSet"
    spec: DaemonSetSpec = Field(default_factory=DaemonSetSpec)
    status: DaemonSetStatus = Field(default_factory=DaemonSetStatus)


class ControllerRevision(KubeObject):
    """A snapshot of the pod template of a StatefulSet or DaemonSet. Its data never changes.

    Upstream's controllers compare the bytes of the data with those of their own JSON.
    """

    kubernetes_raw: ClassVar[bool] = True

    api_version: str = "apps/v1"
    kind: str = "ControllerRevision"
    data: Any = None  # a JSON object, which is checked when it is created
    revision: Int64 = 0
