"""The default class of `kcm up`: volumes that are folders on nodes."""

from __future__ import annotations

from kcm.api.local_volumes import DEFAULT_CLASS, DRIVER, PROVISIONER
from kcm.api.storage_v1 import (
    IS_DEFAULT,
    WAIT_FOR_FIRST_CONSUMER,
    CSIDriver,
    CSIDriverSpec,
    StorageClass,
)
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta


def local_volume_objects() -> tuple[KubeObject, ...]:
    """Returns the StorageClass, and the CSIDriver that says that nothing is to be attached."""
    storage_class = StorageClass(
        metadata=ObjectMeta(name=DEFAULT_CLASS, annotations={IS_DEFAULT: "true"}),
        provisioner=PROVISIONER,
        reclaim_policy="Delete",
        allow_volume_expansion=True,
        volume_binding_mode=WAIT_FOR_FIRST_CONSUMER,
    )
    driver = CSIDriver(metadata=ObjectMeta(name=DRIVER), spec=CSIDriverSpec(attach_required=False))
    return storage_class, driver
