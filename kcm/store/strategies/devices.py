"""The strategies of ResourceClaims and ResourceSlices.

Source: pkg/registry/resource/{resourceclaim,resourceslice}/strategy.go and
pkg/apis/resource/v1/defaults.go, Kubernetes 1.36. Departure: a taint that an update adds to a slice
has no `timeAdded` unless the update says it.
"""

from __future__ import annotations

from kcm.api.resource_v1 import ResourceClaim, ResourceClaimStatus, ResourceSlice
from kcm.api.resource_v1.slices import Device
from kcm.store.strategies.base import Strategy


class ResourceClaimStrategy(Strategy[ResourceClaim]):
    """What drivers report of a device goes when the device is not allocated any more."""

    def for_status(self, new: ResourceClaim, old: ResourceClaim) -> ResourceClaim:
        gone = _list_allocated(old.status) - _list_allocated(new.status)
        kept = [
            one
            for one in new.status.devices or ()
            if (one.driver, one.pool, one.device, one.share_id) not in gone
        ]
        return old.with_status(new.status.replace(devices=kept or None))


def _list_allocated(
    status: ResourceClaimStatus,
) -> frozenset[tuple[str, str, str, str | None]]:
    results = (status.allocation.devices.results if status.allocation else None) or ()
    return frozenset((one.driver, one.pool, one.device, one.share_id) for one in results)


class ResourceSliceStrategy(Strategy[ResourceSlice]):
    """New taints have the time at which they were added."""

    def for_create(self, obj: ResourceSlice) -> ResourceSlice:
        devices = [_with_time(device, obj) for device in obj.spec.devices or ()]
        return obj.with_spec(obj.spec.replace(devices=devices)) if devices else obj


def _with_time(device: Device, created: ResourceSlice) -> Device:
    if not device.taints:
        return device
    moment = created.metadata.creation_timestamp
    return device.replace(
        taints=[
            taint if taint.time_added else taint.replace(time_added=moment)
            for taint in device.taints
        ]
    )
