"""The usage of ResourceClaims: devices by class.

Source: pkg/quota/v1/evaluator/core/resource_claims.go, Kubernetes 1.36. Departure: claims for
extended resources do not count for `requests.<resource>`.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from kcm.api.resource_v1 import ResourceClaim
from kcm.api.resource_v1.requests import DeviceSubRequest, ExactDeviceRequest
from kcm.apimachinery.quantity import Quantity, ResourceList
from kcm.kinds.quota.amounts import ONE

COUNT = "count/resourceclaims.resource.k8s.io"
_OF_CLASS = ".deviceclass.resource.k8s.io/devices"
_MOST_DEVICES = 32  # of one allocation, so of the mode All


def tracks(name: str) -> bool:
    """Reports whether a quota's resource of this name applies to claims."""
    return name == COUNT or name.endswith(_OF_CLASS)


def usage(claim: ResourceClaim, _: datetime) -> ResourceList:
    """Returns the most devices of each class that the claim may get."""
    total: Counter[str] = Counter()
    for request in claim.spec.devices.requests or ():
        most: Counter[str] = Counter()
        for one in request.first_available or filter(None, [request.exactly]):
            most |= Counter({one.device_class_name: _count(one)})
        total += most
    by_class = {f"{name}{_OF_CLASS}": Quantity(count) for name, count in total.items()}
    return {COUNT: ONE, **by_class}


def _count(request: ExactDeviceRequest | DeviceSubRequest) -> int:
    match request.allocation_mode:
        case "ExactCount":
            return request.count or 0
        case "All":
            return _MOST_DEVICES
    return 0
