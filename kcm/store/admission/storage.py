"""The admission plugins of claims and volumes: protecting finalizers, a claim's default class, its
growth.

Source: admission.go in storageobjectinuseprotection, storageclass/setdefault and
persistentvolume/resize of plugin/pkg/admission/storage, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.admissionregistration_v1 import CREATE, UPDATE
from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.storage_v1 import StorageClass, class_of_claim, default_of, has_class
from kcm.api.volumes.finalizers import CLAIM_PROTECTION, VOLUME_PROTECTION
from kcm.apimachinery.quantity import Quantity
from kcm.clock import Clock
from kcm.store.admission.memory import WriteWatch
from kcm.store.admission.plugin import Plugin, Write, forbid
from kcm.store.reader import StoreReader

_CLAIMS = PersistentVolumeClaim.resource.name
_NO_GROWTH = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc "
    "must support resize"
)


class StorageClasses:
    """The StorageClasses of one store, as they were a short time ago."""

    def __init__(self, reader: StoreReader, clock: Clock) -> None:
        self._reader = reader
        self._classes: Sequence[StorageClass] = ()
        self.writes = WriteWatch(reader, StorageClass, clock)

    def list(self) -> Sequence[StorageClass]:
        """Returns all classes. Raises: StoreUnavailable."""
        if self.writes.has_changed():
            self._classes = self._reader.list(StorageClass.resource).items
        return self._classes


class DefaultStorageClass(Plugin):
    """Gives claims that name no class the default one, if there is one."""

    name = "DefaultStorageClass"

    def __init__(self, classes: StorageClasses) -> None:
        self._classes = classes

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        return resource == StorageClass.resource.name or (resource, operation) == (_CLAIMS, CREATE)

    def admit(self, write: Write) -> Write:
        """Raises: StoreUnavailable."""
        claim = write.new
        if not isinstance(claim, PersistentVolumeClaim) or has_class(claim):
            return write
        default = default_of(self._classes.list())
        if default is None:
            return write
        return write.with_new(claim.with_spec(claim.spec.replace(storage_class_name=default.name)))

    def validate(self, write: Write) -> None:
        """Takes note of writes of classes."""
        if write.resource.name == StorageClass.resource.name:
            self._classes.writes.expect_change()


class StorageObjectInUseProtection(Plugin):
    """Gives claims and volumes the finalizers that keep them while they are used."""

    name = "StorageObjectInUseProtection"

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        return resource in (_CLAIMS, PersistentVolume.resource.name) and operation == CREATE

    def admit(self, write: Write) -> Write:
        obj = write.new
        assert obj is not None  # it handles creations only
        finalizer = CLAIM_PROTECTION if write.resource.name == _CLAIMS else VOLUME_PROTECTION
        present = obj.metadata.finalizers or []
        if finalizer in present:
            return write
        return write.with_new(obj.with_metadata(finalizers=[*present, finalizer]))


class PersistentVolumeClaimResize(Plugin):
    """Refuses the growth of claims that may not grow."""

    name = "PersistentVolumeClaimResize"

    def __init__(self, classes: StorageClasses) -> None:
        self._classes = classes

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        return (resource, operation) == (_CLAIMS, UPDATE)

    def validate(self, write: Write) -> None:
        """Raises: Forbidden, StoreUnavailable."""
        new, old = write.new_as(PersistentVolumeClaim), write.old_as(PersistentVolumeClaim)
        before, wanted = _size(old), _size(new)
        if before is None or wanted is None or not before < wanted:
            return
        if old.status.phase != "Bound":
            raise forbid(new, "Only bound persistent volume claims can be expanded")
        name = class_of_claim(new)
        if not any(c.name == name and c.allow_volume_expansion for c in self._classes.list()):
            raise forbid(new, _NO_GROWTH)


def _size(claim: PersistentVolumeClaim) -> Quantity | None:
    return (claim.spec.resources.requests or {}).get("storage")
