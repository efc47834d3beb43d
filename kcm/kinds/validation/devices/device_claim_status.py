"""Validation of the status of ResourceClaims: allocations, consumers, and reports of drivers.

Source: pkg/apis/resource/validation/validation.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_interface

from kcm.api.resource_v1 import ResourceClaim, ResourceClaimConsumerReference, ResourceClaimStatus
from kcm.api.resource_v1.claims import MOST_CONSUMERS, AllocatedDeviceStatus, NetworkDeviceData
from kcm.api.resource_v1.requests import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
)
from kcm.apimachinery.field_errors import (
    Faults,
    forbidden,
    invalid,
    not_supported,
    require_unchanged,
    required,
    too_long,
)
from kcm.kinds.validation import meta
from kcm.kinds.validation.devices.device_claims import (
    MOST,
    configured,
    list_request_names,
    request_name,
)
from kcm.kinds.validation.devices.parts import (
    binding_conditions,
    driver_name,
    each,
    json_object,
    label_name,
    pool_name,
    share_id,
)
from kcm.kinds.validation.disruption import conditions
from kcm.kinds.validation.podspec.affinity import node_selector

_SOURCES = ("FromClaim", "FromClass")
_MOST_CONDITIONS = 8
_LONGEST_DATA = 10 * 1024
_MOST_ADDRESSES = 16
_LONGEST_INTERFACE, _LONGEST_HARDWARE = 256, 128

Device = tuple[str, str, str, str]
"""Driver, pool and name of an allocated device, and the id of the share or ""."""


def update(new: ResourceClaim, old: ResourceClaim) -> Faults:
    status, before = new.status, old.status
    reserved = "status.reservedFor"
    allocated = _list_devices(status.allocation)

    def report(one: AllocatedDeviceStatus, path: str) -> Faults:
        return _report(one, path, allocated)

    faults = [
        *meta.metadata_update(new, old),
        *each(
            status.reserved_for, reserved, _consumer, most=MOST_CONSUMERS, key=lambda one: one.uid
        ),
        *each(status.devices, "status.devices", report, key=_identify),
    ]
    if status.reserved_for:
        faults += _reservations(new, before, reserved)
    path = "status.allocation"
    if before.allocation is not None and status.allocation is not None:
        return faults + require_unchanged(path, status.allocation, before.allocation)
    if status.allocation is not None:
        faults += _allocation(status.allocation, path, list_request_names(new.spec))
    return faults


def _reservations(new: ResourceClaim, before: ResourceClaimStatus, path: str) -> Faults:
    status = new.status
    if status.allocation is None:
        return [forbidden(path, "may not be specified when `allocated` is not set")]
    reserved = {_key(one) for one in before.reserved_for or ()}
    if new.deleting and any(_key(one) not in reserved for one in status.reserved_for or ()):
        detail = (
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are "
            "set"
        )
        return [forbidden(path, detail)]
    return []


def _key(consumer: ResourceClaimConsumerReference) -> tuple[str | None, ...]:
    return consumer.api_group, consumer.resource, consumer.name, consumer.uid


def _consumer(reference: ResourceClaimConsumerReference, path: str) -> Faults:
    return [
        required(f"{path}.{field}")
        for field in ("resource", "name", "uid")
        if not getattr(reference, field)
    ]


def _allocation(result: AllocationResult, path: str, requests: Collection[str]) -> Faults:
    def device(one: DeviceRequestAllocationResult, at: str) -> Faults:
        return [
            *request_name(one.request, f"{at}.request", requests),
            *driver_name(one.driver, f"{at}.driver"),
            *pool_name(one.pool, f"{at}.pool"),
            *label_name(one.device, f"{at}.device"),
            *binding_conditions(
                one.binding_conditions or (), one.binding_failure_conditions or (), at
            ),
            *share_id(one.share_id, f"{at}.shareID"),
        ]

    def configuration(one: DeviceAllocationConfiguration, at: str) -> Faults:
        return _source(one.source, f"{at}.source") + configured(one, at, requests)

    where = f"{path}.devices"
    faults = each(result.devices.results, f"{where}.results", device, most=MOST)
    faults += each(result.devices.config, f"{where}.config", configuration, most=2 * MOST)
    if result.node_selector is not None:
        faults += node_selector(result.node_selector, f"{path}.nodeSelector")
    return faults


def _source(source: str, path: str) -> Faults:
    if not source:
        return [required(path)]
    return [] if source in _SOURCES else [not_supported(path, source, _SOURCES)]


def _identify(one: DeviceRequestAllocationResult | AllocatedDeviceStatus) -> Device:
    return one.driver, one.pool, one.device, one.share_id or ""


def _list_devices(allocation: AllocationResult | None) -> frozenset[Device]:
    results = (allocation.devices.results if allocation else None) or ()
    return frozenset(map(_identify, results))


def _report(one: AllocatedDeviceStatus, path: str, allocated: Collection[Device]) -> Faults:
    faults = [
        *driver_name(one.driver, f"{path}.driver"),
        *pool_name(one.pool, f"{path}.pool"),
        *label_name(one.device, f"{path}.device"),
        *share_id(one.share_id, f"{path}.shareID"),
    ]
    if _identify(one) not in allocated:
        shown = "/".join(filter(None, _identify(one)))
        faults.append(invalid(path, shown, "must be an allocated device in the claim"))
    faults += each(one.conditions, f"{path}.conditions", lambda *_: [], most=_MOST_CONDITIONS)
    faults += conditions(one.conditions or [], f"{path}.conditions")
    if one.data is not None:
        faults += json_object(one.data, f"{path}.data", _LONGEST_DATA)
    return faults + (_network(one.network_data, f"{path}.networkData") if one.network_data else [])


def _network(data: NetworkDeviceData, path: str) -> Faults:
    texts = {
        "interfaceName": (data.interface_name, _LONGEST_INTERFACE),
        "hardwareAddress": (data.hardware_address, _LONGEST_HARDWARE),
    }
    faults = [
        too_long(f"{path}.{field}", most)
        for field, (text, most) in texts.items()
        if len((text or "").encode()) > most
    ]
    return faults + each(data.ips, f"{path}.ips", _address, most=_MOST_ADDRESSES, key=str)


def _address(text: str, path: str) -> Faults:
    """Checks an address with the length of its network's prefix, such as 192.168.0.5/24."""
    try:
        canonical = str(ip_interface(text))
    except ValueError:
        canonical = ""
    if "/" not in text or not canonical:
        detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        return [invalid(path, text, detail)]
    if canonical != text:
        return [invalid(path, text, f'must be in canonical form ("{canonical}")')]
    return []
