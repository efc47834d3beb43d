"""The ResourceClaims of a pod: their names, and whether a claim was made for the pod.

Source: staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go, Kubernetes
1.36.
"""

from __future__ import annotations

from dataclasses import dataclass

from kcm.api.core_v1 import Pod
from kcm.api.core_v1.pods import PodResourceClaim

POD_CLAIM = "resource.kubernetes.io/pod-claim-name"  # an annotation of claims made from templates
EXTENDED = "resource.kubernetes.io/extended-resource-claim"  # of claims that the scheduler makes


@dataclass(frozen=True)
class ClaimName:
    """The name of a pod's claim, "" if none is needed, and whether it was made for the pod."""

    name: str
    made: bool


def find_claim_name(pod: Pod, wanted: PodResourceClaim) -> ClaimName | None:
    """Returns the name of a claim in the pod's spec, or None if it has not been made yet."""
    if wanted.resource_claim_name is not None:
        return ClaimName(wanted.resource_claim_name, made=False)
    for status in pod.status.resource_claim_statuses or ():
        if status.name == wanted.name:
            return ClaimName(status.resource_claim_name or "", made=True)
    return None


def list_claim_names(pod: Pod) -> list[str]:
    """Returns the names of the ResourceClaims that a pod has, with that for extended resources."""
    claims = [find_claim_name(pod, wanted) for wanted in pod.spec.resource_claims or ()]
    names = [claim.name for claim in claims if claim is not None]
    if pod.status.extended_resource_claim_status is not None:
        names.append(pod.status.extended_resource_claim_status.resource_claim_name)
    return [name for name in dict.fromkeys(names) if name]


def list_claim_entries(pod: Pod) -> list[str]:
    """Returns the index entries of a pod for the ResourceClaims and templates that it uses."""
    entries = []
    for wanted in pod.spec.resource_claims or ():
        claim = find_claim_name(pod, wanted)
        if claim is not None and claim.name:
            entries.append(claim_entry(f"{pod.namespace}/{claim.name}"))
        if wanted.resource_claim_template_name is not None:
            entries.append(template_entry(f"{pod.namespace}/{wanted.resource_claim_template_name}"))
    return list(dict.fromkeys(entries))


def claim_entry(key: str) -> str:
    """Returns the index entry for the pods that use a ResourceClaim with this key."""
    return f"resourceclaim:{key}"


def template_entry(key: str) -> str:
    """Returns the index entry for the pods that use a ResourceClaimTemplate with this key."""
    return f"resourceclaimtemplate:{key}"
