"""resource.k8s.io/v1: devices that nodes have, and claims to them."""

from kcm.api.resource_v1.claims import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from kcm.api.resource_v1.slices import ResourceSlice

GROUP = "resource.k8s.io"

__all__ = [
    "GROUP",
    "DeviceClass",
    "ResourceClaim",
    "ResourceClaimConsumerReference",
    "ResourceClaimSpec",
    "ResourceClaimStatus",
    "ResourceClaimTemplate",
    "ResourceClaimTemplateSpec",
    "ResourceSlice",
]
