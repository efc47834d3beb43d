"""The columns of the kinds of resource.k8s.io.

Source: pkg/printers/internalversion/printers.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kcm.api.resource_v1 import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.kinds.printing.column import AGE, NAME, Column


def _state(claim: ResourceClaim, _: datetime) -> str:
    states = ["deleted"] if claim.deleting else []
    if claim.status.allocation is not None:
        states.append("allocated")
        if claim.status.reserved_for:
            states.append("reserved")
    elif not claim.deleting:
        states.append("pending")
    return ",".join(states)


COLUMNS: Mapping[type[KubeObject], tuple[Column, ...]] = {
    DeviceClass: (NAME, AGE),
    ResourceClaim: (NAME, Column("State", _state), AGE),
    ResourceClaimTemplate: (NAME, AGE),
    ResourceSlice: (
        NAME,
        Column("Node", lambda item, _: item.spec.node_name or ""),
        Column("Driver", lambda item, _: item.spec.driver),
        Column("Pool", lambda item, _: item.spec.pool.name),
        AGE,
    ),
}
