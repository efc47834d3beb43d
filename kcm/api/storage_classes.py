"""What claims, volumes and classes say of storage classes.

Source: staging/src/k8s.io/component-helpers/storage/volume/helpers.go and
pkg/volume/util/storageclass.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.storage_v1 import StorageClass

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"
IS_DEFAULT_BETA = "storageclass.beta.kubernetes.io/is-default-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """Returns the name of the claim's class, "" for none."""
    named = claim.annotations.get(CLASS_ANNOTATION)
    return named if named is not None else claim.spec.storage_class_name or ""


def has_class(claim: PersistentVolumeClaim) -> bool:
    """Reports whether the claim names a class, be it the empty one."""
    return CLASS_ANNOTATION in claim.annotations or claim.spec.storage_class_name is not None


def class_of_volume(volume: PersistentVolume) -> str:
    """Returns the name of the volume's class, "" for none."""
    named = volume.annotations.get(CLASS_ANNOTATION)
    return named if named is not None else volume.spec.storage_class_name or ""


def is_default(storage_class: StorageClass) -> bool:
    """Reports whether claims that name no class get this one."""
    annotations = storage_class.annotations
    return "true" in (annotations.get(IS_DEFAULT), annotations.get(IS_DEFAULT_BETA))


def default_of(classes: Iterable[StorageClass]) -> StorageClass | None:
    """Returns the default class, None if there is none.

    Of several it is the newest, and of several of one age the first by name.
    """
    defaults = sorted((c for c in classes if is_default(c)), key=lambda c: c.name)
    newest = max((c.metadata.creation_timestamp or _LONG_AGO for c in defaults), default=_LONG_AGO)
    return next(
        (c for c in defaults if (c.metadata.creation_timestamp or _LONG_AGO) == newest), None
    )


def waits_for_consumer(storage_class: StorageClass | None) -> bool:
    """Reports whether claims of the class are bound only when a pod that uses them is scheduled."""
    return (
        storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    )
