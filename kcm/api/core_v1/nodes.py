"""core/v1: Node, and ComponentStatus, which is computed for each request and never stored.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.apimachinery.base import Bool, Int32, Int64, MergeKey, MergeSet, Model
from kcm.apimachinery.meta_v1 import KubeObject, Time
from kcm.apimachinery.quantity import ResourceList


class Taint(Model):
    """Keeps pods off a node, or evicts them, unless they tolerate it."""

    key: str = ""
    value: str | None = None
    effect: str = ""
    time_added: Time | None = None


class ConfigMapNodeConfigSource(Model):
    """A ConfigMap with the configuration of a kubelet. No longer used."""

    namespace: str = ""
    name: str = ""
    uid: str | None = None
    resource_version: str | None = None
    kubelet_config_key: str = ""


class NodeConfigSource(Model):
    """The source of a kubelet's configuration. No longer used."""

    config_map: ConfigMapNodeConfigSource | None = None


class NodeSpec(Model):
    """The wanted state of a node: taints, address ranges, and whether pods may be scheduled."""

    pod_cidr: str | None = None
    pod_cidrs: Annotated[list[str] | None, MergeSet()] = None
    provider_id: str | None = None
    unschedulable: Bool | None = None
    taints: list[Taint] | None = None
    config_source: NodeConfigSource | None = None
    external_id: str | None = None


class NodeCondition(Model):
    """One aspect of a node's state."""

    type: str = ""
    status: str = ""
    last_heartbeat_time: Time | None = None
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None


class NodeAddress(Model):
    """An address of a node, and its type, such as InternalIP or Hostname."""

    type: str = ""
    address: str = ""


class NodeSwapStatus(Model):
    """The swap space of a node."""

    capacity: Int64 | None = None


class NodeSystemInfo(Model):
    """Identifiers and software versions of a node."""

    machine_id: str = ""
    system_uuid: str = ""
    boot_id: str = ""
    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""
    kube_proxy_version: str = ""
    operating_system: str = ""
    architecture: str = ""
    swap: NodeSwapStatus | None = None


class DaemonEndpoint(Model):
    """The port of a daemon on a node."""

    port: Int32 = Field(default=0, alias="Port")  # capitalised on the wire


class NodeDaemonEndpoints(Model):
    """The ports of the daemons on a node."""

    kubelet_endpoint: DaemonEndpoint | None = None


class ContainerImage(Model):
    """A container image that is present on a node."""

    names: list[str] = Field(default_factory=list)
    size_bytes: Int64 | None = None


class AttachedVolume(Model):
    """A volume that is attached to the node."""

    name: str = ""
    device_path: str = ""


class NodeConfigStatus(Model):
    """The configuration that a kubelet uses. No longer used."""

    assigned: NodeConfigSource | None = None
    active: NodeConfigSource | None = None
    last_known_good: NodeConfigSource | None = None
    error: str | None = None


class NodeRuntimeHandlerFeatures(Model):
    """Features that a runtime handler supports."""

    recursive_read_only_mounts: Bool | None = None
    user_namespaces: Bool | None = None


class NodeRuntimeHandler(Model):
    """A handler of a node's container runtime, which a RuntimeClass can name."""

    name: str = ""
    features: NodeRuntimeHandlerFeatures | None = None


class NodeFeatures(Model):
    """Features that a node's container runtime supports."""

    supplemental_groups_policy: Bool | None = None


class NodeStatus(Model):
    """The last observed state of a node: resources, conditions, addresses and versions."""

    capacity: ResourceList | None = None
    allocatable: ResourceList | None = None
    phase: str | None = None
    conditions: Annotated[list[NodeCondition] | None, MergeKey("type")] = None
    addresses: Annotated[list[NodeAddress] | None, MergeKey("type")] = None
    daemon_endpoints: NodeDaemonEndpoints | None = None
    node_info: NodeSystemInfo | None = None
    images: list[ContainerImage] | None = None
    volumes_in_use: list[str] | None = None
    volumes_attached: list[AttachedVolume] | None = None
    config: NodeConfigStatus | None = None
    runtime_handlers: list[NodeRuntimeHandler] | None = None
    features: NodeFeatures | None = None
    declared_features: list[str] | None = None


class Node(KubeObject):
    """A machine that runs pods, or a simulated machine."""

    api_version: str = "v1"
    kind: str = "Node"
    spec: NodeSpec = Field(default_factory=NodeSpec)
    status: NodeStatus = Field(default_factory=NodeStatus)


class ComponentCondition(Model):
    """Whether a component works, and what is wrong with it."""

    type: str = ""
    status: str = ""
    message: str | None = None
    error: str | None = None


class ComponentStatus(KubeObject):
    """The state of a part of the control plane. Deprecated since Kubernetes 1.19."""

    api_version: str = "v1"
    kind: str = "ComponentStatus"
    conditions: Annotated[list[ComponentCondition], MergeKey("type")] = Field(default_factory=list)
