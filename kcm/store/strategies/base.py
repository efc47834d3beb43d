"""What kinds may do differently when objects are created, updated and deleted.

Source: staging/src/k8s.io/apiserver/pkg/registry/rest/{create,update,delete}.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import datetime

from kcm.apimachinery.meta_v1 import KubeObject


class Strategy:
    """The rules of most kinds: no status at birth, no grace period."""

    def for_create(self, obj: KubeObject) -> KubeObject:
        """The object without the parts a creator may not set."""
        status = getattr(obj, "status", None)
        return obj if status is None else obj.with_status(type(status)())

    def for_update(self, new: KubeObject, old: KubeObject) -> KubeObject:
        """The new object with what an update leaves out but does not mean to take away."""
        return new

    def for_status(self, new: KubeObject, old: KubeObject) -> KubeObject:
        """The old object with what an update of its status changes besides."""
        return old

    def is_revised(self, new: KubeObject, old: KubeObject) -> bool:
        """Whether the change counts as a new generation."""
        return bool(getattr(new, "spec", None) != getattr(old, "spec", None))

    def for_delete(self, obj: KubeObject, now: datetime) -> KubeObject:
        """The object at the moment when its deletion begins."""
        return obj

    def grace_period(self, obj: KubeObject, requested: int | None) -> int:
        """Seconds between the deletion mark and the removal."""
        return 0

    # Whether dependents stay when a deletion does not say what becomes of them.
    orphans_by_default = False


class WithoutGeneration(Strategy):
    """The rules of kinds whose changes nobody counts."""

    def for_create(self, obj: KubeObject) -> KubeObject:
        return super().for_create(obj).with_metadata(generation=None)

    def is_revised(self, new: KubeObject, old: KubeObject) -> bool:
        return False
