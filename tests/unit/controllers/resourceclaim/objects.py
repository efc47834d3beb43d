"""Pods, claims and templates of upstream's tests of the ResourceClaim controller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kcm.api.core_v1 import Pod
from kcm.api.core_v1.pods import PodResourceClaim, PodResourceClaimStatus
from kcm.api.resource_v1 import (
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from kcm.api.resource_v1.claims import FINALIZER
from kcm.api.resource_v1.pod_claims import POD_CLAIM
from kcm.api.resource_v1.requests import AllocationResult, DeviceClaim, DeviceRequest
from kcm.kinds import defaults
from kcm.testing import builders

NAME = "acme"  # of the claim in the pod's spec
WANTED = PodResourceClaim(name=NAME, resource_claim_template_name="template")
REQUEST = {"name": "req-0", "exactly": {"deviceClassName": "class"}}
SPEC = ResourceClaimSpec(devices=DeviceClaim(requests=[DeviceRequest.model_validate(REQUEST)]))
OTHERS = ResourceClaimConsumerReference(api_group="foo.com", resource="foo", name="foo", uid="123")


def pod(name: str = "web", *, noted: str = "", **fields: Any) -> Pod:
    """Returns a pod that wants a claim from the template. `noted` is the claim in its status."""
    statuses = [PodResourceClaimStatus(name=NAME, resource_claim_name=noted)] if noted else None
    status = {"resource_claim_statuses": statuses, **fields.pop("status", {})}
    return builders.pod(name, **{"resource_claims": [WANTED], "status": status, **fields})


def user(pod: Pod) -> ResourceClaimConsumerReference:
    return ResourceClaimConsumerReference(resource="pods", name=pod.name or "", uid=pod.uid)


def claim(
    name: str = "web-acme-1",
    *,
    owner: Pod | None = None,
    users: Sequence[ResourceClaimConsumerReference] = (),
    allocated: bool = False,
    finalizer: bool = False,
    deleting: bool = False,
    namespace: str = "default",
) -> ResourceClaim:
    """Returns a claim. One with an owner has the annotation of a claim from a template."""
    overrides: dict[str, Any] = {
        "annotations": {POD_CLAIM: NAME} if owner is not None else None,
        "finalizers": [FINALIZER] if finalizer else None,
        "deletion_timestamp": builders.START if deleting else None,
    }
    metadata = builders.object_meta(
        "ResourceClaim", name, namespace, owner=owner, overrides=overrides
    )
    allocation = AllocationResult() if allocated else None
    status = ResourceClaimStatus(allocation=allocation, reserved_for=list(users) or None)
    return defaults.apply(ResourceClaim(metadata=metadata, spec=SPEC, status=status))


def template(*, admin: bool = False) -> ResourceClaimTemplate:
    request = {**REQUEST, "exactly": {"deviceClassName": "class", "adminAccess": admin or None}}
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=[DeviceRequest.model_validate(request)]))
    metadata = builders.object_meta("ResourceClaimTemplate", "template", "default")
    return defaults.apply(
        ResourceClaimTemplate(metadata=metadata, spec=ResourceClaimTemplateSpec(spec=spec))
    )
