"""Finalizers that keep an object while it is in use.

Source: pkg/controller/volume/protectionutil/utils.go, Kubernetes 1.33.
"""

from __future__ import annotations

from functools import partial

from kcm.apimachinery.meta_v1 import Kind, KubeObject
from kcm.reconcile.plan import Patch, Plan


def is_deletion_candidate(obj: KubeObject, finalizer: str) -> bool:
    """Reports whether the object is being deleted and still has the finalizer."""
    return obj.deleting and finalizer in (obj.metadata.finalizers or ())


def needs_finalizer(obj: KubeObject, finalizer: str) -> bool:
    """Reports whether the object is not being deleted and lacks the finalizer."""
    return not obj.deleting and finalizer not in (obj.metadata.finalizers or ())


def with_finalizer(finalizer: str, obj: Kind) -> Kind:
    """Returns the object with the finalizer; the object itself if it has it or is being deleted."""
    if not needs_finalizer(obj, finalizer):
        return obj
    return obj.with_metadata(finalizers=[*(obj.metadata.finalizers or ()), finalizer])


def without_finalizer(finalizer: str, obj: Kind) -> Kind:
    """Returns the object without the finalizer; the object itself if it does not have it."""
    present = obj.metadata.finalizers or []
    if finalizer not in present:
        return obj
    return obj.with_metadata(finalizers=[name for name in present if name != finalizer] or None)


def protect(obj: KubeObject, finalizer: str, *, in_use: bool) -> Plan:
    """Returns the plan that adds the finalizer, or takes it away from a deleted, unused object."""
    if is_deletion_candidate(obj, finalizer):
        return Plan() if in_use else Plan().then(Patch(obj, partial(without_finalizer, finalizer)))
    if needs_finalizer(obj, finalizer):
        return Plan().then(Patch(obj, partial(with_finalizer, finalizer)))
    return Plan()
