"""Validation of a pod's resource claims, of the names by which containers use them, and of their
statuses.

Source: validatePodResourceClaims, validateResourceClaimNames and validatePodResourceClaimStatuses
in pkg/apis/core/validation/validation.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from kcm.api.core_v1.containers import ResourceClaim
from kcm.api.core_v1.pods import (
    ContainerExtendedResourceRequest,
    PodExtendedResourceClaimStatus,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
)
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    Faults,
    duplicate,
    invalid,
    invalid_all,
    not_found,
    required,
)

_MOST_SHOWN = 16  # names in a message


def pod_claims(claims: Iterable[PodResourceClaim], path: str) -> Faults:
    faults: Faults = []
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        where = f"{path}[{index}]"
        if not claim.name:
            faults.append(required(f"{where}.name"))
        elif claim.name in seen:
            faults.append(duplicate(f"{where}.name", claim.name))
        else:
            faults += invalid_all(f"{where}.name", claim.name, names.label_faults(claim.name))
        seen.add(claim.name)
        faults += _source(claim, where)
    return faults


def _source(claim: PodResourceClaim, path: str) -> Faults:
    both = {
        "resourceClaimName": claim.resource_claim_name,
        "resourceClaimTemplateName": claim.resource_claim_template_name,
    }
    given = {field: name for field, name in both.items() if name is not None}
    faults: Faults = []
    if len(given) > 1:
        detail = (
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        )
        faults.append(invalid(path, claim, detail))
    elif not given:
        detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        faults.append(invalid(path, claim, detail))
    for field, name in given.items():
        faults += invalid_all(f"{path}.{field}", name, names.subdomain_faults(name))
    return faults


def container_claims(
    claims: Sequence[ResourceClaim], path: str, pod_names: Collection[str]
) -> Faults:
    """Checks that a container uses claims of the pod, and each of them, or request, once."""
    if not claims:
        return []
    faults: Faults = []
    choice = _describe_choice(pod_names)
    used: set[tuple[str, str]] = set()
    used_names: set[str] = set()
    for index, claim in enumerate(claims):
        where = f"{path}[{index}]"
        name, request = claim.name, claim.request or ""
        if not name:
            faults.append(required(where))
            continue
        if request:
            faults += invalid_all(f"{where}.request", request, names.label_faults(request))
        if (name, "") in used or (not request and name in used_names):
            faults.append(duplicate(where, name))
        elif (name, request) in used:
            faults.append(duplicate(where, f"{name}/{request}"))
        used.add((name, request))
        used_names.add(name)
        if name not in pod_names:
            faults.append(not_found(where, name, choice))
    return faults


def _describe_choice(pod_names: Collection[str]) -> str:
    shown = sorted(pod_names)[:_MOST_SHOWN]
    rest = f": {', '.join(shown)}" if shown else " which is empty"
    return f"must be one of the names in pod.spec.resourceClaims{rest}"


def claim_statuses(
    statuses: Iterable[PodResourceClaimStatus], claims: Iterable[PodResourceClaim], path: str
) -> Faults:
    """Checks the names of the claims that were made for a pod."""
    faults: Faults = []
    present = {claim.name for claim in claims}
    seen: set[str] = set()
    for index, status in enumerate(statuses):
        where = f"{path}[{index}]"
        if status.name not in present:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            faults.append(invalid(f"{where}.name", status.name, detail))
        if status.name in seen:
            faults.append(duplicate(f"{where}.name", status.name))
        seen.add(status.name)
        if status.resource_claim_name is not None:
            at, name = f"{where}.resourceClaimName", status.resource_claim_name
            faults += invalid_all(at, name, names.subdomain_faults(name))
    return faults


def extended_claim_status(
    status: PodExtendedResourceClaimStatus, spec: PodSpec, path: str
) -> Faults:
    """Checks from which claim the containers of a pod have extended resources."""
    where, name = f"{path}.requestMappings", status.resource_claim_name
    faults: Faults = []
    if not status.request_mappings:
        faults.append(required(where, "at least one request mapping is required"))
    containers = [*(spec.init_containers or ()), *spec.containers]
    requested = {container.name: container.resources.requests or {} for container in containers}
    seen: set[tuple[str, str, str]] = set()
    for index, mapping in enumerate(status.request_mappings or ()):
        identity = mapping.container_name, mapping.resource_name, mapping.request_name
        faults += _mapping(mapping, requested, f"{where}[{index}]")
        if identity in seen:
            faults += [
                duplicate(f"{where}[{index}].containerName", mapping.container_name),
                duplicate(f"{where}[{index}].resourceName", mapping.resource_name),
                duplicate(f"{where}[{index}].requestName", mapping.request_name),
            ]
        seen.add(identity)
        complaints = names.label_faults(mapping.request_name)
        faults += invalid_all(f"{path}.requestName", mapping.request_name, complaints)
    if not name:
        return [*faults, required(f"{path}.resourceClaimName")]
    return faults + invalid_all(f"{path}.resourceClaimName", name, names.subdomain_faults(name))


def _mapping(
    mapping: ContainerExtendedResourceRequest,
    requested: Mapping[str, Collection[str]],
    path: str,
) -> Faults:
    """Checks a mapping. `requested` are the resources that the containers ask for, by name."""
    container, resource = mapping.container_name, mapping.resource_name
    if container not in requested:
        detail = (
            "must match the name of an entry in spec.initContainers.name or spec.containers.name"
        )
        return [invalid(f"{path}.containerName", container, detail)]
    if resource in requested[container]:
        return []
    detail = (
        "must match the extended resource name of an entry in "
        "spec.initContainers.resources.requests or spec.containers.resources.requests"
    )
    return [invalid(f"{path}.resourceName", resource, detail)]
