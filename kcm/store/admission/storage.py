"""Admission of claims and volumes: their protecting finalizers, and a claim's default class.

Source: plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go and
plugin/pkg/admission/storage/storageclass/setdefault/admission.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api import scheme
from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.finalizers import CLAIM_PROTECTION, VOLUME_PROTECTION
from kcm.api.storage_classes import default_of, has_class
from kcm.api.storage_v1 import StorageClass
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store.admission.memory import WriteWatch
from kcm.store.reader import StoreReader


class StorageAdmission:
    """Completes the claims and volumes of one store."""

    def __init__(self, reader: StoreReader) -> None:
        self._reader = reader
        self._writes = WriteWatch(reader, StorageClass)
        self._classes: Sequence[StorageClass] = ()

    def forget(self) -> None:
        """Makes the next admission read the classes again, for one was written here."""
        self._writes.look_soon()

    def admit(self, obj: KubeObject, monotonic: float) -> KubeObject:
        """Returns a new object with what the system adds. Raises: StoreUnavailable."""
        if isinstance(obj, PersistentVolume):
            return _protected(obj, VOLUME_PROTECTION)
        if isinstance(obj, PersistentVolumeClaim):
            return _protected(self._with_class(obj, monotonic), CLAIM_PROTECTION)
        return obj

    def _with_class(self, claim: PersistentVolumeClaim, monotonic: float) -> PersistentVolumeClaim:
        """Returns the claim with the default class if it names none and there is one."""
        if has_class(claim):
            return claim
        if self._writes.has_news(monotonic):
            items = self._reader.list(scheme.resource_of(StorageClass)).items
            self._classes = [item for item in items if isinstance(item, StorageClass)]
        default = default_of(self._classes)
        if default is None:
            return claim
        return claim.with_spec(claim.spec.replace(storage_class_name=default.name))


def _protected(obj: KubeObject, finalizer: str) -> KubeObject:
    present = obj.metadata.finalizers or []
    if finalizer in present:
        return obj
    return obj.with_metadata(finalizers=[*present, finalizer])
