"""The strategy of most kinds, from which the strategies of single kinds inherit.

Source: staging/src/k8s.io/apiserver/pkg/registry/rest/{create,update,delete}.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import datetime
from typing import Generic, TypeVar

from kcm.apimachinery.meta_v1 import KubeObject

T = TypeVar("T", bound=KubeObject)


class Strategy(Generic[T]):
    """The strategy of most kinds: a new object has an empty status, and no grace period."""

    is_copyable = True  # whether only the name and the uid of two equal creations differ

    def for_create(self, obj: T) -> T:
        """Returns the object to create, without the fields that its creator may not set."""
        status = getattr(obj, "status", None)
        return obj if status is None else obj.with_status(type(status)())

    def for_update(self, new: T, old: T) -> T:
        """Returns the new object with fields from the old one that an update does not remove by
        omission.
        """
        return new

    def for_status(self, new: T, old: T) -> T:
        """Returns the old object with the status of the new one, and what else an update of the
        status changes.
        """
        return old.with_status(new.status)  # type: ignore[attr-defined] # the kind has one

    def complete(self, obj: T) -> T:
        """Returns an object to create, which plugins have admitted, with what follows from the
        other fields.
        """
        return obj

    def is_revised(self, new: T, old: T) -> bool:
        """Reports whether the change increases the generation, if the kind has one."""
        return bool(getattr(new, "spec", None) != getattr(old, "spec", None))

    def for_delete(self, obj: T, now: datetime) -> T:
        """Returns the object with the changes that its kind makes when its deletion begins."""
        return obj

    def grace_period(self, obj: T, requested: int | None) -> int:
        """Returns the seconds between the start of the deletion and the removal.

        `requested` is that of the delete options, None for the default.
        """
        return 0

    # Whether an object that is removed at once gets a deletion timestamp before.
    marks_at_once = False

    # Whether a deletion without a propagation policy orphans the dependents.
    orphans_by_default = False
