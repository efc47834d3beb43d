"""core/v1: Node.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.api.base import Bool, Int32, JsonObject, MergeKey, MergeSet, Model
from kcm.api.meta_v1 import KubeObject
from kcm.api.quantity import ResourceList
from kcm.api.times import Time


class Taint(Model):
    """A mark that keeps pods off a node unless they tolerate it."""

    key: str = ""
    value: str | None = None
    effect: str = ""
    time_added: Time | None = None


class NodeSpec(Model):
    """What a node shall be."""

    pod_cidr: str | None = None
    pod_cidrs: Annotated[list[str] | None, MergeSet()] = None
    provider_id: str | None = None
    unschedulable: Bool | None = None
    taints: list[Taint] | None = None
    config_source: JsonObject | None = None
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
    """One address of a node, and what kind it is."""

    type: str = ""
    address: str = ""


class NodeSystemInfo(Model):
    """Identity and versions of a node's software."""

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


class DaemonEndpoint(Model):
    """Where a daemon listens."""

    port: Int32 = Field(default=0, alias="Port")  # capitalised on the wire


class NodeDaemonEndpoints(Model):
    """Where the node's daemons listen."""

    kubelet_endpoint: DaemonEndpoint | None = None


class NodeStatus(Model):
    """What was last seen of a node."""

    capacity: ResourceList | None = None
    allocatable: ResourceList | None = None
    phase: str | None = None
    conditions: Annotated[list[NodeCondition] | None, MergeKey("type")] = None
    addresses: Annotated[list[NodeAddress] | None, MergeKey("type")] = None
    daemon_endpoints: NodeDaemonEndpoints | None = None
    node_info: NodeSystemInfo | None = None
    images: list[JsonObject] | None = None
    volumes_in_use: list[str] | None = None
    volumes_attached: list[JsonObject] | None = None
    config: JsonObject | None = None


class Node(KubeObject):
    """A machine that runs pods."""

    api_version: str = "v1"
    kind: str = "Node"
    spec: NodeSpec = Field(default_factory=NodeSpec)
    status: NodeStatus = Field(default_factory=NodeStatus)
