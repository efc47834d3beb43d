"""resource.k8s.io/v1: requests for devices, and the devices that were allocated for them.

Source: staging/src/k8s.io/api/resource/v1/types.go, Kubernetes 1.36.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from kcm.api.core_v1.affinity import NodeSelector
from kcm.apimachinery.base import Bool, Int64, Model
from kcm.apimachinery.meta_v1 import Time
from kcm.apimachinery.quantity import ResourceList


class CELDeviceSelector(Model):
    """An expression in CEL that is true for the devices it selects."""

    expression: str = ""


class DeviceSelector(Model):
    """A condition for devices. Exactly one field is set."""

    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(Model):
    """Parameters for a driver, in a form of its own."""

    driver: str = ""
    parameters: Any = None


class DeviceToleration(Model):
    """Lets a request have devices with a matching taint, for a time or without a limit."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: Int64 | None = None


class CapacityRequirements(Model):
    """Amounts of a device's capacities, for devices that several claims share."""

    requests: ResourceList | None = None


class ExactDeviceRequest(Model):
    """A request for one or several devices of a class."""

    device_class_name: str = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str | None = None
    count: Int64 | None = None
    admin_access: Bool | None = None
    tolerations: list[DeviceToleration] | None = None
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(Model):
    """One of several requests of which the first is taken that can be satisfied."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str | None = None
    count: Int64 | None = None
    tolerations: list[DeviceToleration] | None = None
    capacity: CapacityRequirements | None = None


class DeviceRequest(Model):
    """A request under a name: exactly one of its two forms is set."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] | None = None


class DeviceConstraint(Model):
    """What the devices of several requests must have in common, or must differ in."""

    requests: list[str] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Model):
    """Parameters for the devices of some requests, or of all."""

    requests: list[str] | None = None
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Model):
    """Requests for devices, constraints among them, and parameters for drivers."""

    requests: list[DeviceRequest] | None = None
    constraints: list[DeviceConstraint] | None = None
    config: list[DeviceClaimConfiguration] | None = None


class DeviceRequestAllocationResult(Model):
    """A device that was allocated for a request."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: Bool | None = None
    tolerations: list[DeviceToleration] | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    share_id: str | None = None
    consumed_capacity: ResourceList | None = None


class DeviceAllocationConfiguration(Model):
    """Parameters for allocated devices, and whether the class or the claim has given them."""

    source: str = ""
    requests: list[str] | None = None
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Model):
    """All devices that were allocated for a claim, and parameters for their drivers."""

    results: list[DeviceRequestAllocationResult] | None = None
    config: list[DeviceAllocationConfiguration] | None = None


class AllocationResult(Model):
    """What was allocated for a claim, and the nodes on which it can be used."""

    devices: DeviceAllocationResult = Field(default_factory=DeviceAllocationResult)
    node_selector: NodeSelector | None = None
    allocation_timestamp: Time | None = None
