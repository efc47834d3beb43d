"""The claims for volumes of a StatefulSet's pods, and who owns them.

Source: pkg/controller/statefulset/{stateful_pod_control,stateful_set_utils}.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kcm.api.apps_v1 import StatefulSet
from kcm.api.core_v1 import PersistentVolumeClaim, Pod
from kcm.api.ownership import new_controller_ref
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta, OwnerReference
from kcm.controllers.statefulset.identity import claim_name, in_range, ordinal_of
from kcm.reconcile.plan import Patch


def claims_of(found: StatefulSet, pod: str) -> Iterator[PersistentVolumeClaim]:
    """The claims that the pod of this name needs, as they are made."""
    selector = found.spec.selector
    chosen = (selector.match_labels if selector else None) or {}
    owner = [new_controller_ref(found)] if _deletes_with_set(found) else None
    for template in found.spec.volume_claim_templates or ():
        labels = {**template.labels, **chosen}
        yield PersistentVolumeClaim(
            metadata=ObjectMeta(
                name=claim_name(template.name, pod),
                namespace=found.metadata.namespace,
                labels=labels or None,
                annotations=dict(template.annotations) or None,
                finalizers=template.metadata.finalizers,
                owner_references=owner,
            ),
            spec=template.spec,
        )


def is_stale(claim: PersistentVolumeClaim, pod: str) -> bool:
    """Whether it belongs to an earlier pod of this name, and is about to go with it."""
    return any(
        reference.kind == "Pod" and reference.name == pod
        for reference in claim.metadata.owner_references or ()
    )


def _deletes_with_set(found: StatefulSet) -> bool:
    policy = found.spec.persistent_volume_claim_retention_policy
    return policy is not None and policy.when_deleted == "Delete"


def _deletes_when_scaled(found: StatefulSet) -> bool:
    policy = found.spec.persistent_volume_claim_retention_policy
    return policy is not None and policy.when_scaled == "Delete"


def owner_of_claim(found: StatefulSet, pod: Pod) -> KubeObject | None:
    """With whom the pod's claims go: the pod, once it is one too many; the set; or nobody."""
    if _deletes_when_scaled(found) and not in_range(found, ordinal_of(pod)):
        return pod
    return found if _deletes_with_set(found) else None


def retention(found: StatefulSet, pod: Pod, claim: PersistentVolumeClaim) -> Patch | None:
    """What makes the claim's owners as the policy has them; None where they are."""
    change = _owned(found, pod, owner_of_claim(found, pod))
    return None if change(claim) is claim else Patch(claim, change)


def _owned(
    found: StatefulSet, pod: Pod, owner: KubeObject | None
) -> Callable[[KubeObject], KubeObject]:
    """A change that leaves `owner` as the only one of the set and the pod, managing the claim.

    Where somebody else manages it, neither stays. A reference to an earlier set or pod of
    these names counts as theirs: upstream leaves such a claim alone, for the garbage
    collector to delete under a pod that uses it.
    """

    def change(obj: KubeObject) -> KubeObject:
        references: list[OwnerReference] = obj.metadata.owner_references or []
        others = [r for r in references if not (_names(r, found) or _names(r, pod))]
        wanted = list(others)
        if owner is not None and not any(reference.controller for reference in others):
            wanted.append(new_controller_ref(owner))
        if _told_apart(wanted) == _told_apart(references):
            return obj
        return obj.with_metadata(owner_references=wanted or None)

    return change


def _names(reference: OwnerReference, owner: KubeObject) -> bool:
    """Whether a reference is to an object of this kind and name, of whatever incarnation."""
    group, own = (text.rpartition("/")[0] for text in (reference.api_version, owner.api_version))
    return (group, reference.kind, reference.name) == (own, owner.kind, owner.name)


def _told_apart(references: list[OwnerReference]) -> set[tuple[str, bool]]:
    return {(reference.uid, bool(reference.controller)) for reference in references}
