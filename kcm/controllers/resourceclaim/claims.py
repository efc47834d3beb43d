"""The sync of a claim: who uses it, and what becomes of it when nobody does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from kcm.api.core_v1 import Pod
from kcm.api.resource_v1 import ResourceClaim, ResourceClaimConsumerReference
from kcm.api.resource_v1.claims import FINALIZER
from kcm.apimachinery.ownership import controller_of
from kcm.helpers.pods import is_terminal
from kcm.sdk import Absent, Delete, Guard, Patch, Plan, View

_PODS = Pod.resource.name


def sync(claim: ResourceClaim, view: View) -> Plan:
    """Returns what to do for a claim."""
    plan = Plan()
    reserved = claim.status.reserved_for or ()
    stale = {one.uid: one for one in reserved if _is_stale(one, claim, view)}
    remain = len(stale) < len(reserved)
    if stale:
        guards = tuple(_guard_absent_pods(stale.values(), claim, view))
        release = Patch(claim, partial(_release, frozenset(stale)), guards, status=True)
        plan.then(release, essential=True).then(Patch(claim, _without_finalizer))
    elif claim.deleting and not remain and FINALIZER in (claim.metadata.finalizers or ()):
        release = Patch(claim, partial(_release, frozenset()), status=True)
        plan.then(release, essential=True).then(Patch(claim, _without_finalizer))
    if not remain and _is_left_over(claim, view):
        plan.then(Delete(claim))
    return plan


def is_done(pod: Pod) -> bool:
    """Reports whether no container of the pod runs or ever will."""
    return is_terminal(pod) or (pod.deleting and not pod.spec.node_name)


def _is_stale(user: ResourceClaimConsumerReference, claim: ResourceClaim, view: View) -> bool:
    """Reports whether a user is a pod that is gone, replaced or done."""
    if user.api_group or user.resource != "pods":
        return False
    pod = view.lister(Pod).find(f"{claim.namespace}/{user.name}")
    return pod is None or pod.uid != user.uid or is_done(pod)


def _guard_absent_pods(
    users: Iterable[ResourceClaimConsumerReference], claim: ResourceClaim, view: View
) -> Iterator[Guard]:
    """Yields a guard for each pod that the cache does not have: the claim may be newer than it."""
    for user in users:
        key = f"{claim.namespace}/{user.name}"
        if view.lister(Pod).find(key) is None:
            yield Absent(_PODS, key, user.uid)


def _release(gone: frozenset[str], claim: ResourceClaim) -> ResourceClaim:
    """Returns the claim without these users. After the last one it is not allocated any more, if a
    scheduler has allocated it, which the finalizer says.
    """
    left = [one for one in claim.status.reserved_for or () if one.uid not in gone]
    status = claim.status.replace(reserved_for=left or None)
    if not left and FINALIZER in (claim.metadata.finalizers or ()):
        status = status.replace(allocation=None)
    return claim if status == claim.status else claim.with_status(status)


def _without_finalizer(claim: ResourceClaim) -> ResourceClaim:
    """Returns the claim, which may be deleted if it is not allocated."""
    finalizers = claim.metadata.finalizers or []
    if claim.status.allocation is not None or FINALIZER not in finalizers:
        return claim
    left = [name for name in finalizers if name != FINALIZER]
    return claim.with_metadata(finalizers=left or None)


def _is_left_over(claim: ResourceClaim, view: View) -> bool:
    """Reports whether the claim was made for a pod that is replaced or done.

    Of a pod that is gone the garbage collector deletes the claims.
    """
    owner = controller_of(claim)
    if owner is None or (owner.api_version, owner.kind) != ("v1", "Pod") or claim.deleting:
        return False
    pod = view.lister(Pod).find(f"{claim.namespace}/{owner.name}")
    return pod is not None and (pod.uid != owner.uid or is_done(pod))
