"""Which claims and pods a change touches."""

from __future__ import annotations

from collections.abc import Iterable

from kcm.api.core_v1 import Pod
from kcm.api.resource_v1 import ResourceClaim, ResourceClaimTemplate
from kcm.api.resource_v1.pod_claims import (
    claim_entry,
    find_claim_name,
    list_claim_names,
    template_entry,
)
from kcm.apimachinery.ownership import is_controlled_by
from kcm.controllers.resourceclaim.claims import is_done
from kcm.controllers.resourceclaim.pods import needs_reservation
from kcm.helpers.pods import is_active
from kcm.sdk import BY_CLAIM, Change, View

CLAIM, POD = "claim", "pod"


def of_pod(change: Change[Pod], view: View) -> Iterable[str]:
    """Returns the keys of the claims that the pod needs no more, and its own if it lacks some."""
    pod = change.object
    if change.new is None or is_done(pod):
        for name in list_claim_names(pod):
            yield f"{CLAIM}:{pod.namespace}/{name}"
    if change.new is not None and _lacks_claims(pod, view):
        yield f"{POD}:{pod.key}"


def of_claim(change: Change[ResourceClaim], view: View) -> Iterable[str]:
    """Returns the keys of the claim, unless it was deleted, and of the pods that use it and lack
    some claim.
    """
    if change.new is not None:
        yield f"{CLAIM}:{change.object.key}"
    yield from _pods_under(claim_entry(change.object.key), view)


def of_template(change: Change[ResourceClaimTemplate], view: View) -> Iterable[str]:
    """Returns the keys of the pods that wait for the template."""
    if change.new is not None:
        yield from _pods_under(template_entry(change.object.key), view)


def _pods_under(entry: str, view: View) -> Iterable[str]:
    for pod in view.lister(Pod).by_index(BY_CLAIM, entry):
        yield from of_pod(Change(pod, pod), view)


def _lacks_claims(pod: Pod, view: View) -> bool:
    """Reports whether a claim has to be made for the pod, or to be reserved for it."""
    if not is_active(pod):
        return False
    for wanted in pod.spec.resource_claims or ():
        noted = find_claim_name(pod, wanted)
        if noted is None:
            return True
        claim = view.lister(ResourceClaim).find(f"{pod.namespace}/{noted.name}")
        if noted.name and claim is None and wanted.resource_claim_template_name is not None:
            return True
        if claim is None or (noted.made and not is_controlled_by(claim, pod)):
            continue  # somebody else has to create the claim, or to delete it
        if needs_reservation(claim, pod):
            return True
    return False
