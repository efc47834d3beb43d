"""resource.k8s.io/v1: ResourceSlice, which lists devices.

Source: staging/src/k8s.io/api/resource/v1/types.go, Kubernetes 1.36.
"""

from __future__ import annotations

from pydantic import Field

from kcm.api.core_v1.affinity import NodeSelector
from kcm.apimachinery.base import Bool, Int64, Model
from kcm.apimachinery.meta_v1 import KubeObject, Time
from kcm.apimachinery.quantity import Quantity


class ResourcePool(Model):
    """The pool of which a slice is a part, and how many slices it has in this generation."""

    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class Counter(Model):
    """An amount of which devices take a share."""

    value: Quantity = Field(default_factory=Quantity)


class CounterSet(Model):
    """Counters that the devices of a pool share, under a name."""

    name: str = ""
    counters: dict[str, Counter] | None = None


class DeviceCounterConsumption(Model):
    """What a device takes of a counter set."""

    counter_set: str = ""
    counters: dict[str, Counter] | None = None


class DeviceAttribute(Model):
    """A value that describes a device. Exactly one field is set."""

    int: Int64 | None = None
    bool: Bool | None = None
    string: str | None = None
    version: str | None = None
    ints: list[Int64] | None = None
    bools: list[Bool] | None = None
    strings: list[str] | None = None
    versions: list[str] | None = None


class CapacityRequestPolicyRange(Model):
    """The least and the most that a request may take of a capacity, and in which steps."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Model):
    """How much of a capacity requests may take: certain amounts, or those in a range."""

    default: Quantity | None = None
    valid_values: list[Quantity] | None = None
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Model):
    """An amount that a device has, and how requests may share it."""

    value: Quantity = Field(default_factory=Quantity)
    request_policy: CapacityRequestPolicy | None = None


class DeviceTaint(Model):
    """Keeps claims that do not tolerate it off a device."""

    key: str = ""
    value: str | None = None
    effect: str = ""
    time_added: Time | None = None


class NodeAllocatableResourceMapping(Model):
    """How a device accounts for one of the node's own resources."""

    capacity_key: str | None = None
    allocation_multiplier: Quantity | None = None


class Device(Model):
    """A device of a node, or of several nodes: attributes, capacities, and taints."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: list[DeviceCounterConsumption] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: Bool | None = None
    taints: list[DeviceTaint] | None = None
    binds_to_node: Bool | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    allow_multiple_allocations: Bool | None = None
    node_allocatable_resource_mappings: dict[str, NodeAllocatableResourceMapping] | None = None


class ResourceSliceSpec(Model):
    """Devices of one driver and pool, and the nodes that can use them."""

    driver: str = ""
    pool: ResourcePool = Field(default_factory=ResourcePool)
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: Bool | None = None
    devices: list[Device] | None = None
    per_device_node_selection: Bool | None = None
    shared_counters: list[CounterSet] | None = None


class ResourceSlice(KubeObject):
    """A list of devices, which the driver on a node publishes."""

    api_version: str = "resource.k8s.io/v1"
    kind: str = "ResourceSlice"
    spec: ResourceSliceSpec = Field(default_factory=ResourceSliceSpec)
