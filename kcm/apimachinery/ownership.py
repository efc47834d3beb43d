"""Controller references: which owner manages an object.

Source: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/controller_ref.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.apimachinery.meta_v1 import KubeObject, OwnerReference


def controller_of(obj: KubeObject) -> OwnerReference | None:
    """Returns the object's controller reference, or None if it has none."""
    for reference in obj.metadata.owner_references or ():
        if reference.controller:
            return reference
    return None


def is_controlled_by(obj: KubeObject, owner: KubeObject) -> bool:
    """Reports whether the object's controller reference has the uid of `owner`."""
    reference = controller_of(obj)
    return reference is not None and reference.uid == owner.uid


def new_controller_ref(owner: KubeObject) -> OwnerReference:
    """Returns a controller reference to `owner`.

    It has blockOwnerDeletion, so a foreground deletion of `owner` waits for the dependent.
    """
    resource = owner.resource
    return OwnerReference(
        api_version=resource.api_version,
        kind=resource.kind,
        name=owner.name,
        uid=owner.uid,
        controller=True,
        block_owner_deletion=True,
    )
