"""What kinds may do differently when objects are created, updated and deleted.

Source: staging/src/k8s.io/apiserver/pkg/registry/rest/{create,update,delete}.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import datetime
from typing import Generic, TypeVar

from kcm.apimachinery.meta_v1 import KubeObject

T = TypeVar("T", bound=KubeObject)


class Strategy(Generic[T]):
    """The rules of most kinds: an object has no status at first, and no grace period."""

    def for_create(self, obj: T) -> T:
        """Returns the object without the fields that its creator may not set."""
        status = getattr(obj, "status", None)
        return obj if status is None else obj.with_status(type(status)())

    def for_update(self, new: T, old: T) -> T:
        """Returns the new object with the fields that an update leaves out and does not mean to
        remove.
        """
        return new

    def for_status(self, new: T, old: T) -> T:
        """Returns the old object with what an update of its status changes besides the status."""
        return old

    def is_revised(self, new: T, old: T) -> bool:
        """Reports whether the change counts as a new generation."""
        return bool(getattr(new, "spec", None) != getattr(old, "spec", None))

    def for_delete(self, obj: T, now: datetime) -> T:
        """Returns the object as it is when its deletion begins."""
        return obj

    def grace_period(self, obj: T, requested: int | None) -> int:
        """Returns the seconds between the deletion mark and the removal."""
        return 0

    # Whether dependents stay when a deletion does not say what becomes of them.
    orphans_by_default = False


class WithoutGeneration(Strategy[T]):
    """The rules of kinds whose objects have no generation."""

    def for_create(self, obj: T) -> T:
        return super().for_create(obj).with_metadata(generation=None)

    def is_revised(self, new: T, old: T) -> bool:
        return False
