"""Computes how many pods a budget should have, from the scales of the pods' owners.

Source: getExpectedPodCount, getExpectedScale and the finders in
pkg/controller/disruption/disruption.go, Kubernetes 1.33. Upstream has finders for four kinds and
asks the API for the scale of all others. Here the scheme says of every kind where it keeps its
scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from kcm import errors
from kcm.api.apps_v1 import ReplicaSet
from kcm.api.core_v1 import Pod
from kcm.api.policy_v1 import PodDisruptionBudget
from kcm.api.scaling import scale_of
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject, OwnerReference
from kcm.apimachinery.ownership import controller_of
from kcm.sdk import View


@dataclass(frozen=True)
class Expected:
    """The pods that a budget should have, how many of them must be healthy, and whether some lack
    an owner.
    """

    pods: int
    healthy: int
    unmanaged: bool = False


def expect_pods(budget: PodDisruptionBudget, pods: Iterable[Pod], view: View) -> Expected:
    """Returns the numbers that follow from a budget's spec and the scales of its pods' owners.

    Raises ApiError when a pod's owner cannot be scaled or found, or a number cannot be parsed.
    """
    pods, spec = list(pods), budget.spec
    if spec.max_unavailable is not None:
        total, unmanaged = _scale_of_all(pods, view)
        return Expected(
            total, max(0, total - _resolve_amount(spec.max_unavailable, total)), unmanaged
        )
    if isinstance(spec.min_available, str):
        total, unmanaged = _scale_of_all(pods, view)
        return Expected(total, _resolve_amount(spec.min_available, total), unmanaged)
    if spec.min_available is not None:
        return Expected(len(pods), spec.min_available)
    return Expected(0, 0)


def _resolve_amount(value: int | str, total: int) -> int:
    """Returns a number as it is, or a percentage of the total, rounded up. Raises BadRequest."""
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    if digits == value or not digits.isdecimal():
        raise errors.BadRequest(f"invalid value for IntOrString: invalid type: {value}")
    return math.ceil(int(digits) * total / 100)


def _scale_of_all(pods: Iterable[Pod], view: View) -> tuple[int, bool]:
    """Returns the sum of the scales of all owners, and whether some pods have no owner.

    Raises ApiError if an owner is not found.
    """
    scales: dict[str, int] = {}
    asked: set[str] = set()
    unmanaged = False
    for pod in pods:
        reference = controller_of(pod)
        if reference is None:
            unmanaged = True
        elif reference.uid not in asked:
            asked.add(reference.uid)
            owner_scale = _scale(reference, pod, view)
            if owner_scale is None:
                raise errors.ApiError(f'found no controllers for pod "{pod.name}"')
            scales[owner_scale[0]] = owner_scale[1]
    return sum(scales.values()), unmanaged


def _scale(reference: OwnerReference, pod: Pod, view: View) -> tuple[str, int] | None:
    """Returns the uid of the object that decides on the number of pods, and that number.

    For a ReplicaSet of a Deployment that is the Deployment, as long as it exists. Returns None if
    the owner is not found.
    """
    owner_and_kind = _owner(reference, pod.namespace, view)
    if owner_and_kind is None:
        return None
    resource, owner = owner_and_kind
    above = controller_of(owner)
    if isinstance(owner, ReplicaSet) and above is not None and _is_deployment(above):
        over = _owner(above, pod.namespace, view)
        if over is not None:
            return over[1].uid, _replicas(*over)
    return owner.uid, _replicas(resource, owner)


def _is_deployment(reference: OwnerReference) -> bool:
    group = reference.api_version.rpartition("/")[0]
    return (group, reference.kind) == ("apps", "Deployment")


def _owner(
    reference: OwnerReference, namespace: str, view: View
) -> tuple[Resource, KubeObject] | None:
    group = reference.api_version.rpartition("/")[0]
    kinds = (r for r in view.scheme.resources() if (r.group, r.kind) == (group, reference.kind))
    resource = next(kinds, None)
    if resource is None:
        raise errors.ApiError(
            f'no matches for kind "{reference.kind}" in version "{reference.api_version}"'
        )
    if resource.scale is None:
        raise errors.ApiError(f"{resource.name} does not implement the scale subresource")
    owner = view.lister(resource.model).find(f"{namespace}/{reference.name}")
    return (resource, owner) if owner is not None and owner.uid == reference.uid else None


def _replicas(resource: Resource, owner: KubeObject) -> int:
    replicas = scale_of(owner, resource).replicas
    return replicas if isinstance(replicas, int) else 0
