"""resource.k8s.io/v1: ResourceClaim, ResourceClaimTemplate and DeviceClass.

Source: staging/src/k8s.io/api/resource/v1/types.go, Kubernetes 1.36.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from kcm.api.resource_v1.requests import (
    AllocationResult,
    DeviceClaim,
    DeviceSelector,
    OpaqueDeviceConfiguration,
)
from kcm.apimachinery.base import MergeKey, Model
from kcm.apimachinery.meta_v1 import Condition, KubeObject, ObjectMeta

FINALIZER = "resource.kubernetes.io/delete-protection"
MOST_CONSUMERS = 256  # entries of reservedFor


class ResourceClaimSpec(Model):
    """The devices that a claim asks for. It cannot be changed."""

    devices: DeviceClaim = Field(default_factory=DeviceClaim)

    @property
    def has_admin_access(self) -> bool:
        """Whether a request asks for administrators' access to a device."""
        requests = self.devices.requests or ()
        return any(one.exactly is not None and one.exactly.admin_access for one in requests)


class ResourceClaimConsumerReference(Model):
    """An object that uses a claim, as a rule a pod in its namespace."""

    api_group: str | None = Field(default=None, alias="apiGroup")
    resource: str = ""
    name: str = ""
    uid: str = ""


class NetworkDeviceData(Model):
    """The network interface that a device is, or provides."""

    interface_name: str | None = None
    ips: list[str] | None = None
    hardware_address: str | None = None


class AllocatedDeviceStatus(Model):
    """What its driver reports of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = None
    conditions: Annotated[list[Condition] | None, MergeKey("type", patches=False)] = None
    data: Any = None
    network_data: NetworkDeviceData | None = None


class ResourceClaimStatus(Model):
    """What was allocated for a claim, who uses it, and what drivers report."""

    allocation: AllocationResult | None = None
    reserved_for: Annotated[list[ResourceClaimConsumerReference] | None, MergeKey("uid")] = None
    devices: Annotated[
        list[AllocatedDeviceStatus] | None,
        MergeKey("driver", ("driver", "device", "pool", "shareID"), patches=False),
    ] = None


class ResourceClaim(KubeObject):
    """A request for devices, by one pod or several."""

    api_version: str = "resource.k8s.io/v1"
    kind: str = "ResourceClaim"
    spec: ResourceClaimSpec = Field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = Field(default_factory=ResourceClaimStatus)


class ResourceClaimTemplateSpec(Model):
    """The metadata and spec of the claims that are created from a template."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: ResourceClaimSpec = Field(default_factory=ResourceClaimSpec)


class ResourceClaimTemplate(KubeObject):
    """A template from which each pod that refers to it gets a claim of its own."""

    api_version: str = "resource.k8s.io/v1"
    kind: str = "ResourceClaimTemplate"
    spec: ResourceClaimTemplateSpec = Field(default_factory=ResourceClaimTemplateSpec)


class DeviceClassConfiguration(Model):
    """Parameters for the devices of a class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Model):
    """Conditions for the devices of a class, and parameters for their drivers."""

    selectors: list[DeviceSelector] | None = None
    config: list[DeviceClassConfiguration] | None = None
    extended_resource_name: str | None = None


class DeviceClass(KubeObject):
    """A class of devices, to which requests in claims refer."""

    api_version: str = "resource.k8s.io/v1"
    kind: str = "DeviceClass"
    spec: DeviceClassSpec = Field(default_factory=DeviceClassSpec)
