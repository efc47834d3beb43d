"""Admission of claims and volumes: protecting finalizers, a claim's default class, its growth.

Source: admission.go in storageobjectinuseprotection, storageclass/setdefault and
persistentvolume/resize of plugin/pkg/admission/storage, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm import errors
from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.finalizers import CLAIM_PROTECTION, VOLUME_PROTECTION
from kcm.api.storage_classes import class_of_claim, default_of, has_class
from kcm.api.storage_v1 import StorageClass
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.quantity import Quantity
from kcm.store.admission.memory import WriteWatch
from kcm.store.reader import StoreReader

_NO_GROWTH = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc "
    "must support resize"
)


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

    def check_growth(
        self, new: PersistentVolumeClaim, old: PersistentVolumeClaim, monotonic: float
    ) -> None:
        """Raises Forbidden for a claim that grows although it may not. Raises: StoreUnavailable."""
        before, wanted = _size(old), _size(new)
        if before is None or wanted is None or not before < wanted:
            return
        why = ""
        if old.status.phase != "Bound":
            why = "Only bound persistent volume claims can be expanded"
        elif not self._allows_growth(class_of_claim(new), monotonic):
            why = _NO_GROWTH
        if why:
            raise errors.Forbidden(
                f'persistentvolumeclaims "{new.name}" is forbidden: {why}',
                resource="persistentvolumeclaims",
                name=new.name,
            )

    def _allows_growth(self, name: str, monotonic: float) -> bool:
        return any(
            c.name == name and c.allow_volume_expansion for c in self._list_classes(monotonic)
        )

    def _list_classes(self, monotonic: float) -> Sequence[StorageClass]:
        if self._writes.has_news(monotonic):
            self._classes = self._reader.list(StorageClass.resource).items
        return self._classes

    def _with_class(self, claim: PersistentVolumeClaim, monotonic: float) -> PersistentVolumeClaim:
        """Returns the claim with the default class if it names none and there is one."""
        if has_class(claim):
            return claim
        default = default_of(self._list_classes(monotonic))
        if default is None:
            return claim
        return claim.with_spec(claim.spec.replace(storage_class_name=default.name))


def _size(claim: PersistentVolumeClaim) -> Quantity | None:
    return (claim.spec.resources.requests or {}).get("storage")


def _protected(obj: KubeObject, finalizer: str) -> KubeObject:
    present = obj.metadata.finalizers or []
    if finalizer in present:
        return obj
    return obj.with_metadata(finalizers=[*present, finalizer])
