"""core/v1: Pod, PodSpec, PodStatus, PodTemplateSpec, PodTemplate, Binding
and ReplicationController.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.api.core_v1.affinity import Affinity, TopologySpreadConstraint
from kcm.api.core_v1.container_statuses import ContainerStatus
from kcm.api.core_v1.containers import Container, EphemeralContainer, ResourceRequirements
from kcm.api.core_v1.events import ObjectReference
from kcm.api.core_v1.references import LocalObjectReference
from kcm.api.core_v1.security import PodSecurityContext
from kcm.api.core_v1.volumes import Volume
from kcm.apimachinery.base import Atomic, Bool, Int32, Int64, MergeKey, MergeSet, Model, StringMap
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta, Time
from kcm.apimachinery.quantity import ResourceList


class Toleration(Model):
    """Lets a pod run on nodes that have a matching taint, for a time or without a limit."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: Int64 | None = None


class PodReadinessGate(Model):
    """A condition that must be true before the pod counts as ready."""

    condition_type: str = ""


class PodSchedulingGate(Model):
    """The name of a gate. A pod is not scheduled while it has any."""

    name: str = ""


class PodOS(Model):
    """The operating system that the pod's containers need."""

    name: str = ""


class PodDNSConfigOption(Model):
    """An option of the DNS resolver."""

    name: str | None = None
    value: str | None = None


class PodDNSConfig(Model):
    """DNS settings that are merged into those of the pod's DNS policy."""

    nameservers: list[str] | None = None
    searches: list[str] | None = None
    options: list[PodDNSConfigOption] | None = None


class HostAlias(Model):
    """An IP address and host names for it, as a line in the pod's hosts file."""

    ip: str = ""
    hostnames: list[str] | None = None


class PodResourceClaim(Model):
    """A ResourceClaim, or a template of one, under a name by which containers can use it."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodResourceClaimStatus(Model):
    """The ResourceClaim that was created for one of the pod's resource claims."""

    name: str = ""
    resource_claim_name: str | None = None


class PodSchedulingGroup(Model):
    """The PodGroup with whose pods this one is scheduled."""

    pod_group_name: str | None = None


class ContainerExtendedResourceRequest(Model):
    """The request in a claim from which a container gets an extended resource."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(Model):
    """The ResourceClaim that was created for the pod's extended resources."""

    request_mappings: list[ContainerExtendedResourceRequest] | None = None
    resource_claim_name: str = ""


class NodeAllocatableResourceClaimStatus(Model):
    """Amounts of the node's own resources that a pod has by way of a ResourceClaim."""

    resource_claim_name: str = ""
    containers: Annotated[list[str] | None, MergeSet(patches=False)] = None
    resources: ResourceList | None = None


class PodSpec(Model):
    """The wanted state of a pod: its containers, volumes and settings, and rules for its node."""

    volumes: Annotated[list[Volume] | None, MergeKey("name", retain_keys=True)] = None
    init_containers: Annotated[list[Container] | None, MergeKey("name")] = None
    containers: Annotated[list[Container], MergeKey("name")] = Field(default_factory=list)
    ephemeral_containers: Annotated[list[EphemeralContainer] | None, MergeKey("name")] = None
    restart_policy: str | None = None
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    dns_policy: str | None = None
    node_selector: Annotated[StringMap | None, Atomic()] = None
    service_account_name: str | None = None
    service_account: str | None = None
    automount_service_account_token: Bool | None = None
    node_name: str | None = None
    host_network: Bool | None = None
    host_pid: Bool | None = None
    host_ipc: Bool | None = None
    share_process_namespace: Bool | None = None
    security_context: PodSecurityContext | None = None
    image_pull_secrets: Annotated[list[LocalObjectReference] | None, MergeKey("name")] = None
    hostname: str | None = None
    subdomain: str | None = None
    affinity: Affinity | None = None
    scheduler_name: str | None = None
    tolerations: list[Toleration] | None = None
    host_aliases: Annotated[list[HostAlias] | None, MergeKey("ip")] = None
    priority_class_name: str | None = None
    priority: Int32 | None = None
    dns_config: PodDNSConfig | None = None
    readiness_gates: list[PodReadinessGate] | None = None
    runtime_class_name: str | None = None
    enable_service_links: Bool | None = None
    preemption_policy: str | None = None
    overhead: ResourceList | None = None
    topology_spread_constraints: Annotated[
        list[TopologySpreadConstraint] | None,
        MergeKey("topologyKey", ("topologyKey", "whenUnsatisfiable")),
    ] = None
    set_hostname_as_fqdn: Bool | None = None
    os: PodOS | None = None
    host_users: Bool | None = None
    scheduling_gates: Annotated[list[PodSchedulingGate] | None, MergeKey("name")] = None
    resource_claims: Annotated[
        list[PodResourceClaim] | None, MergeKey("name", retain_keys=True)
    ] = None
    resources: ResourceRequirements | None = None
    hostname_override: str | None = None
    scheduling_group: PodSchedulingGroup | None = None


class PodCondition(Model):
    """One aspect of a pod's state."""

    type: str = ""
    observed_generation: Int64 | None = None
    status: str = ""
    last_probe_time: Time | None = None
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None


class PodIP(Model):
    """An IP address of a pod."""

    ip: str = ""


class HostIP(Model):
    """An IP address of a pod's node."""

    ip: str = ""


class PodStatus(Model):
    """The state of a pod, as the kubelet last observed it."""

    observed_generation: Int64 | None = None
    phase: str | None = None
    conditions: Annotated[list[PodCondition] | None, MergeKey("type")] = None
    message: str | None = None
    reason: str | None = None
    nominated_node_name: str | None = None
    host_ip: str | None = None
    host_ips: Annotated[list[HostIP] | None, MergeKey("ip", applies=False)] = None
    pod_ip: str | None = None
    pod_ips: Annotated[list[PodIP] | None, MergeKey("ip")] = None
    start_time: Time | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    container_statuses: list[ContainerStatus] | None = None
    qos_class: str | None = None
    ephemeral_container_statuses: list[ContainerStatus] | None = None
    resize: str | None = None
    resource_claim_statuses: Annotated[
        list[PodResourceClaimStatus] | None, MergeKey("name", retain_keys=True)
    ] = None
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None
    node_allocatable_resource_claim_statuses: list[NodeAllocatableResourceClaimStatus] | None = None


class Pod(KubeObject):
    """A group of containers that run together on one node."""

    api_version: str = "v1"
    kind: str = "Pod"
    spec: PodSpec = Field(default_factory=PodSpec)
    status: PodStatus = Field(default_factory=PodStatus)


class PodTemplateSpec(Model):
    """The metadata and spec of the pods that are created from this template."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: PodSpec = Field(default_factory=PodSpec)


class PodTemplate(KubeObject):
    """A pod template that is stored as an object of its own."""

    api_version: str = "v1"
    kind: str = "PodTemplate"
    template: PodTemplateSpec = Field(default_factory=PodTemplateSpec)


class Binding(KubeObject):
    """Binds the pod of the same name to the node that is the target."""

    api_version: str = "v1"
    kind: str = "Binding"
    target: ObjectReference = Field(default_factory=ObjectReference)


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
