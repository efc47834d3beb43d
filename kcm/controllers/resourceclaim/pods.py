"""The sync of a pod with claims: those from templates are made, and noted in its status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.api.core_v1.pods import PodResourceClaim, PodResourceClaimStatus
from kcm.api.resource_v1 import (
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimTemplate,
)
from kcm.api.resource_v1.pod_claims import POD_CLAIM, find_claim_name
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apimachinery.ownership import is_controlled_by, new_controller_ref
from kcm.helpers.pods import is_active
from kcm.sdk import (
    BY_CONTROLLER,
    Counter,
    Counts,
    Create,
    Event,
    Outcome,
    Patch,
    Plan,
    View,
    controller_key,
    sum_counts,
)

CREATES = Counter(
    "resourceclaim_controller_creates",
    "Number of ResourceClaims creation requests, categorized by creation status and admin access",
    ("status", "admin_access"),
)
REASON = "FailedResourceClaimCreation"
_LONGEST_BASE = 57  # characters; a hyphen and five random ones follow


def sync(pod: Pod, view: View) -> Plan:
    """Returns what to do for a pod."""
    if not is_active(pod):
        return Plan()
    missing = [
        wanted for wanted in pod.spec.resource_claims or () if _is_missing(pod, wanted, view)
    ]
    # The change of the status brings the pod back.
    return _create(pod, missing, view) if missing else _reserve(pod, view)


def _create(pod: Pod, missing: Iterable[PodResourceClaim], view: View) -> Plan:
    """Creates claims, up to the first whose template is missing, and then notes all of them."""
    plan = Plan(counts_after=_count, events_after=partial(_list_failures, pod))
    present: dict[str, str] = {}  # claims that the status does not have yet, by their names there
    for wanted in missing:
        if claim := _find_made(pod, wanted, view):
            present[wanted.name] = claim.name or ""
            continue
        name = wanted.resource_claim_template_name
        template = view.lister(ResourceClaimTemplate).find(f"{pod.namespace}/{name}")
        if template is None:
            return _refuse(plan, pod, wanted)
        plan.then(Create(new_claim(pod, wanted, template)), essential=True)
    plan.plan_after = partial(_note, pod, present)
    return plan


def needs_reservation(claim: ResourceClaim, pod: Pod) -> bool:
    """Reports whether the claim is allocated, and not reserved for this pod on a node."""
    return (
        bool(pod.spec.node_name)
        and claim.status.allocation is not None
        and all(user.uid != pod.uid for user in claim.status.reserved_for or ())
    )


def _is_missing(pod: Pod, wanted: PodResourceClaim, view: View) -> bool:
    """Reports whether a claim from a template is not there, or not the pod's, or not noted."""
    if wanted.resource_claim_template_name is None:
        return False
    noted = find_claim_name(pod, wanted)
    if noted is None or not noted.name:
        return noted is None
    claim = view.lister(ResourceClaim).find(f"{pod.namespace}/{noted.name}")
    return claim is None or not is_controlled_by(claim, pod)


def _find_made(pod: Pod, wanted: PodResourceClaim, view: View) -> ResourceClaim | None:
    """Returns the claim that an earlier sync made, before it could note it, or None."""
    owned = view.lister(ResourceClaim).by_index(
        BY_CONTROLLER, controller_key(pod.namespace, pod.uid)
    )
    return next((one for one in owned if one.annotations.get(POD_CLAIM) == wanted.name), None)


def _refuse(plan: Plan, pod: Pod, wanted: PodResourceClaim) -> Plan:
    """Lets the sync fail because the template of a claim is missing."""
    name = wanted.resource_claim_template_name
    why = (
        f'resource claim template "{name}": resourceclaimtemplate.resource.k8s.io "{name}" not '
        "found"
    )
    text = f"PodResourceClaim {wanted.name}: {why}"
    plan.record(pod, REASON, text, warning=True)
    plan.error = errors.NotFound(f"pod {pod.key}, {text}")
    return plan


def new_claim(pod: Pod, wanted: PodResourceClaim, template: ResourceClaimTemplate) -> ResourceClaim:
    """Returns the claim that is made from the template, with the pod as its owner."""
    base = f"{pod.name}-{wanted.name}-"
    if len(base) > _LONGEST_BASE:  # both names lose the same share
        kept = [
            name[: len(name) * _LONGEST_BASE // len(base)] for name in (pod.name or "", wanted.name)
        ]
        base = "-".join(kept)
    metadata = ObjectMeta(
        generate_name=base,
        namespace=pod.namespace,
        owner_references=[new_controller_ref(pod).replace(block_owner_deletion=None)],
        annotations={**(template.spec.metadata.annotations or {}), POD_CLAIM: wanted.name},
        labels=template.spec.metadata.labels,
    )
    return ResourceClaim(metadata=metadata, spec=template.spec.spec)


def _note(pod: Pod, present: Mapping[str, str], outcome: Outcome) -> Plan:
    """Returns the plan that notes the claims, created ones and those that were there, in the pod's
    status.
    """
    created = {obj.annotations[POD_CLAIM]: obj.name or "" for _, obj in outcome.done}
    return Plan().then(Patch(pod, partial(_with_claims, {**present, **created}), status=True))


def _with_claims(names: Mapping[str, str], pod: Pod) -> Pod:
    others = [one for one in pod.status.resource_claim_statuses or () if one.name not in names]
    noted = [
        PodResourceClaimStatus(name=name, resource_claim_name=claim)
        for name, claim in names.items()
    ]
    return pod.with_status(pod.status.replace(resource_claim_statuses=[*others, *noted]))


def _count(outcome: Outcome) -> Counts:
    done = [_count_creation(write, "success") for write, _ in outcome.done]
    failed = [_count_creation(failure.write, "failure") for failure in outcome.failures]
    return sum_counts([*done, *failed])


def _count_creation(write: object, status: str) -> Counts:
    assert isinstance(write, Create)  # the plan has no other writes
    assert isinstance(write.obj, ResourceClaim)
    return CREATES.count(status, str(write.obj.spec.has_admin_access).lower())


def _list_failures(pod: Pod, outcome: Outcome) -> list[Event]:
    events = []
    for failure in outcome.failures:
        assert isinstance(failure.write, Create)  # the plan has no other writes
        name = failure.write.obj.annotations[POD_CLAIM]
        text = f"PodResourceClaim {name}: create ResourceClaim : {failure.error}"
        events.append(Event(pod, "Warning", REASON, text))
    return events


def _reserve(pod: Pod, view: View) -> Plan:
    """Reserves the claims of a pod that was bound to a node without the scheduler."""
    plan = Plan()
    for wanted in pod.spec.resource_claims or ():
        noted = find_claim_name(pod, wanted)
        if noted is None or not noted.name:
            continue
        claim = view.lister(ResourceClaim).find(f"{pod.namespace}/{noted.name}")
        if claim is not None and needs_reservation(claim, pod):
            plan.then(Patch(claim, partial(_reserve_for, pod), status=True))
    return plan


def _reserve_for(pod: Pod, claim: ResourceClaim) -> ResourceClaim:
    if not needs_reservation(claim, pod):
        return claim
    user = ResourceClaimConsumerReference(resource="pods", name=pod.name or "", uid=pod.uid)
    users = [*(claim.status.reserved_for or ()), user]
    return claim.with_status(claim.status.replace(reserved_for=users))
