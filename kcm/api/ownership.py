"""Owner references: who owns an object.

Source: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/controller_ref.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api import scheme
from kcm.apimachinery.meta_v1 import KubeObject, OwnerReference


def controller_of(obj: KubeObject) -> OwnerReference | None:
    """Returns the reference to the one owner that manages the object, or None."""
    for reference in obj.metadata.owner_references or ():
        if reference.controller:
            return reference
    return None


def is_controlled_by(obj: KubeObject, owner: KubeObject) -> bool:
    """Reports whether this very incarnation of `owner` manages the object."""
    reference = controller_of(obj)
    return reference is not None and reference.uid == owner.uid


def new_controller_ref(owner: KubeObject) -> OwnerReference:
    """Returns a reference that makes `owner` the managing owner, deleted after its dependents."""
    resource = scheme.resource_of(owner)
    return OwnerReference(
        api_version=resource.api_version,
        kind=resource.kind,
        name=owner.name,
        uid=owner.uid,
        controller=True,
        block_owner_deletion=True,
    )
