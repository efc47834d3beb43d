"""Builds the volume claims of a StatefulSet's pods, and sets their owners.

Source: pkg/controller/statefulset/{stateful_pod_control,stateful_set_utils}.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kcm.api.apps_v1 import StatefulSet
from kcm.api.core_v1 import PersistentVolumeClaim, Pod
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta, OwnerReference
from kcm.apimachinery.ownership import new_controller_ref
from kcm.controllers.statefulset.identity import claim_name, in_range, ordinal_of
from kcm.sdk import Patch


def claims_of(stateful_set: StatefulSet, pod: str) -> Iterator[PersistentVolumeClaim]:
    """Yields the claims that the pod of this name needs, in the form in which they are created."""
    selector = stateful_set.spec.selector
    chosen = (selector.match_labels if selector else None) or {}
    owner = [new_controller_ref(stateful_set)] if _deletes_with_set(stateful_set) else None
    for template in stateful_set.spec.volume_claim_templates or ():
        labels = {**template.labels, **chosen}
        yield PersistentVolumeClaim(
            metadata=ObjectMeta(
                name=claim_name(template.name, pod),
                namespace=stateful_set.metadata.namespace,
                labels=labels or None,
                annotations=dict(template.annotations) or None,
                finalizers=template.metadata.finalizers,
                owner_references=owner,
            ),
            spec=template.spec,
        )


def is_stale(claim: PersistentVolumeClaim, pod: str) -> bool:
    """Reports whether the claim is owned by an earlier pod of this name, with which it will be
    deleted.
    """
    return any(
        reference.kind == "Pod" and reference.name == pod
        for reference in claim.metadata.owner_references or ()
    )


def _deletes_with_set(stateful_set: StatefulSet) -> bool:
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    return policy is not None and policy.when_deleted == "Delete"


def _deletes_when_scaled(stateful_set: StatefulSet) -> bool:
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    return policy is not None and policy.when_scaled == "Delete"


def owner_of_claim(stateful_set: StatefulSet, pod: Pod) -> KubeObject | None:
    """Returns the object with which the pod's claims are deleted.

    That is the pod if it is surplus, or the set, as the retention policy says; None if the claims
    are kept.
    """
    if _deletes_when_scaled(stateful_set) and not in_range(stateful_set, ordinal_of(pod)):
        return pod
    return stateful_set if _deletes_with_set(stateful_set) else None


def plan_retention(
    stateful_set: StatefulSet, pod: Pod, claim: PersistentVolumeClaim
) -> Patch[PersistentVolumeClaim] | None:
    """Returns the patch that sets the claim's owners by the retention policy, None if they are
    right.
    """
    change = _set_owner(stateful_set, pod, owner_of_claim(stateful_set, pod))
    return None if change(claim) is claim else Patch(claim, change)


def _set_owner(
    stateful_set: StatefulSet, pod: Pod, owner: KubeObject | None
) -> Callable[[PersistentVolumeClaim], PersistentVolumeClaim]:
    """Returns a function that makes `owner` the controller of a claim, in place of the set and the
    pod.

    If another object controls the claim, `owner` is not added. References to earlier sets or pods
    of the same names are removed as well. Upstream keeps those, so that the garbage collector
    deletes the claim of a pod that uses it.
    """

    def change(obj: PersistentVolumeClaim) -> PersistentVolumeClaim:
        references: list[OwnerReference] = obj.metadata.owner_references or []
        others = [r for r in references if not (_names(r, stateful_set) or _names(r, pod))]
        wanted = list(others)
        if owner is not None and not any(reference.controller for reference in others):
            wanted.append(new_controller_ref(owner))
        if _reference_identities(wanted) == _reference_identities(references):
            return obj
        return obj.with_metadata(owner_references=wanted or None)

    return change


def _names(reference: OwnerReference, owner: KubeObject) -> bool:
    """Reports whether a reference has the kind and name of `owner`, whatever its uid."""
    group, own = (text.rpartition("/")[0] for text in (reference.api_version, owner.api_version))
    return (group, reference.kind, reference.name) == (own, owner.kind, owner.name)


def _reference_identities(references: list[OwnerReference]) -> set[tuple[str, bool]]:
    return {(reference.uid, bool(reference.controller)) for reference in references}
