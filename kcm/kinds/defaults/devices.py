"""Defaults of resource.k8s.io, and its fields whose feature gates are off by default.

Source: pkg/apis/resource/v1/defaults.go, and dropDisabledFields in
pkg/registry/resource/resourceslice/strategy.go, Kubernetes 1.36. `timeAdded` of taints is set by
the strategy, which has the time.
"""

from __future__ import annotations

from typing import TypeVar

from kcm.api.resource_v1 import (
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceSlice,
)
from kcm.api.resource_v1.requests import DeviceRequest, DeviceSubRequest, ExactDeviceRequest
from kcm.api.resource_v1.slices import Device
from kcm.kinds.defaults.defaulting import change_fields, fill_defaults, fill_each

_EXACT = "ExactCount"

RequestT = TypeVar("RequestT", ExactDeviceRequest, DeviceSubRequest)


def claim(obj: ResourceClaim) -> ResourceClaim:
    return change_fields(obj, spec=_claim_spec(obj.spec))


def template(obj: ResourceClaimTemplate) -> ResourceClaimTemplate:
    spec = change_fields(obj.spec, spec=_claim_spec(obj.spec.spec))
    return change_fields(obj, spec=spec)


def _claim_spec(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    requests = fill_each(spec.devices.requests, _request)
    return change_fields(spec, devices=change_fields(spec.devices, requests=requests))


def _request(request: DeviceRequest) -> DeviceRequest:
    exactly = request.exactly and _details(request.exactly)
    first_available = fill_each(request.first_available, _details)
    return change_fields(request, exactly=exactly, first_available=first_available)


def _details(request: RequestT) -> RequestT:
    filled = fill_defaults(request, allocation_mode=_EXACT)
    if filled.allocation_mode == _EXACT and not filled.count:
        filled = change_fields(filled, count=1)
    return filled


def resource_slice(obj: ResourceSlice) -> ResourceSlice:
    devices = fill_each(obj.spec.devices, _without_disabled)
    return change_fields(obj, spec=change_fields(obj.spec, devices=devices))


def _without_disabled(device: Device) -> Device:
    """Drops values that are lists (DRAListTypeAttributes) and accounts of the node's own resources
    (DRANodeAllocatableResources).
    """
    attributes = device.attributes and {
        name: change_fields(value, ints=None, bools=None, strings=None, versions=None)
        for name, value in device.attributes.items()
    }
    return change_fields(device, attributes=attributes, node_allocatable_resource_mappings=None)
