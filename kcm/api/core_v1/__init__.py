"""core/v1, one module per kind or family of structs."""

from kcm.api.core_v1.configs import ConfigMap, Secret
from kcm.api.core_v1.container_statuses import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
)
from kcm.api.core_v1.containers import (
    Container,
    ContainerPort,
    EphemeralContainer,
    ResourceRequirements,
)
from kcm.api.core_v1.environment import EnvVar
from kcm.api.core_v1.events import Event, EventSeries, EventSource, ObjectReference
from kcm.api.core_v1.handlers import ExecAction, HTTPGetAction, Probe
from kcm.api.core_v1.namespaces import (
    Namespace,
    NamespaceCondition,
    NamespaceSpec,
    NamespaceStatus,
)
from kcm.api.core_v1.nodes import (
    DaemonEndpoint,
    Node,
    NodeAddress,
    NodeCondition,
    NodeDaemonEndpoints,
    NodeSpec,
    NodeStatus,
    NodeSystemInfo,
    Taint,
)
from kcm.api.core_v1.persistent_volumes import PersistentVolume
from kcm.api.core_v1.pods import (
    HostIP,
    Pod,
    PodCondition,
    PodIP,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    PodTemplate,
    PodTemplateSpec,
    Toleration,
)
from kcm.api.core_v1.quotas import (
    LimitRange,
    LimitRangeItem,
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceQuotaStatus,
    ScopedResourceSelectorRequirement,
)
from kcm.api.core_v1.replication_controllers import (
    ReplicationController,
    ReplicationControllerSpec,
    ReplicationControllerStatus,
)
from kcm.api.core_v1.service_accounts import ServiceAccount
from kcm.api.core_v1.services import (
    ClientIPConfig,
    EndpointAddress,
    EndpointPort,
    Endpoints,
    EndpointSubset,
    Service,
    ServicePort,
    ServiceSpec,
    ServiceStatus,
    SessionAffinityConfig,
)
from kcm.api.core_v1.volume_claims import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
)
from kcm.api.core_v1.volumes import Volume

__all__ = [
    "ClientIPConfig",
    "ConfigMap",
    "Container",
    "ContainerPort",
    "ContainerState",
    "ContainerStateRunning",
    "ContainerStateTerminated",
    "ContainerStateWaiting",
    "ContainerStatus",
    "DaemonEndpoint",
    "EndpointAddress",
    "EndpointPort",
    "EndpointSubset",
    "Endpoints",
    "EnvVar",
    "EphemeralContainer",
    "Event",
    "EventSeries",
    "EventSource",
    "ExecAction",
    "HTTPGetAction",
    "HostIP",
    "LimitRange",
    "LimitRangeItem",
    "Namespace",
    "NamespaceCondition",
    "NamespaceSpec",
    "NamespaceStatus",
    "Node",
    "NodeAddress",
    "NodeCondition",
    "NodeDaemonEndpoints",
    "NodeSpec",
    "NodeStatus",
    "NodeSystemInfo",
    "ObjectReference",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PersistentVolumeClaimSpec",
    "PersistentVolumeClaimStatus",
    "Pod",
    "PodCondition",
    "PodIP",
    "PodSchedulingGate",
    "PodSpec",
    "PodStatus",
    "PodTemplate",
    "PodTemplateSpec",
    "Probe",
    "ReplicationController",
    "ReplicationControllerSpec",
    "ReplicationControllerStatus",
    "ResourceQuota",
    "ResourceQuotaSpec",
    "ResourceQuotaStatus",
    "ResourceRequirements",
    "ScopedResourceSelectorRequirement",
    "Secret",
    "Service",
    "ServiceAccount",
    "ServicePort",
    "ServiceSpec",
    "ServiceStatus",
    "SessionAffinityConfig",
    "Taint",
    "Toleration",
    "Volume",
]
