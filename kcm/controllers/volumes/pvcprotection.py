"""PVCProtection: keeps a deleted claim until no pod on a node uses it.

Source: pkg/controller/volume/pvcprotection/pvc_protection_controller.go, Kubernetes 1.33.
Departure: upstream lists the pods once more from the API server before it lets a claim go; here a
sync begins with caches that hold every earlier write.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kcm.api.core_v1 import PersistentVolumeClaim, Pod
from kcm.api.storage_v1 import claim_keys, claim_name
from kcm.api.volumes.finalizers import CLAIM_PROTECTION
from kcm.apimachinery.ownership import is_controlled_by
from kcm.helpers.pods import is_terminal
from kcm.helpers.volumes.protection import is_deletion_candidate, needs_finalizer, protect
from kcm.sdk import BY_CLAIM, Change, Controller, Plan, View, Watch


class PVCProtectionController(Controller):
    """Syncs claims, one key each."""

    name = "persistentvolumeclaim-protection-controller"
    short_name = "pvcprotection"

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(PersistentVolumeClaim, claims_to_change), Watch(Pod, claims_of_pod))

    def reconcile(self, key: str, view: View) -> Plan:
        claim = view.lister(PersistentVolumeClaim).find(key)
        if claim is None:
            return Plan()
        pods = view.lister(Pod).by_index(BY_CLAIM, key)
        return protect(claim, CLAIM_PROTECTION, in_use=any(uses(pod, claim) for pod in pods))


def claims_to_change(change: Change, view: View) -> Iterable[str]:
    """Returns the claim's key if its finalizer has to come or may have to go."""
    claim = change.new
    if claim is not None and (
        needs_finalizer(claim, CLAIM_PROTECTION) or is_deletion_candidate(claim, CLAIM_PROTECTION)
    ):
        yield claim.key


def claims_of_pod(change: Change, view: View) -> Iterable[str]:
    """Returns the keys of the deleted claims that the pod may use no longer."""
    old, new = change.old, change.new
    for pod in (old, new):
        if not isinstance(pod, Pod) or (pod is new and not _may_release(pod)):
            continue
        if pod is old and new is not None and old is not None and new.uid == old.uid:
            continue
        for key in claim_keys(pod):
            claim = view.lister(PersistentVolumeClaim).find(key)
            if claim is not None and is_deletion_candidate(claim, CLAIM_PROTECTION):
                yield key


def _may_release(pod: Pod) -> bool:
    """Reports whether a pod that exists may have stopped to use its claims."""
    return not pod.spec.node_name or is_terminal(pod) or _is_shut_down(pod)


def uses(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Reports whether the pod keeps the claim. A pod without a node does not."""
    if not pod.spec.node_name:
        return False
    for volume in pod.spec.volumes or ():
        if claim_name(pod, volume) != claim.name:
            continue
        if volume.ephemeral is None:
            return True
        if not _is_shut_down(pod) and is_controlled_by(claim, pod):
            return True
    return False


def _is_shut_down(pod: Pod) -> bool:
    """Reports whether the kubelet is done with the pod, or it was deleted by force.

    The claims of its ephemeral volumes may go then, which its own finalizers may wait for.
    """
    return pod.deleting and pod.metadata.deletion_grace_period_seconds == 0
