"""In-place resizing: which resources a node gives to the containers of a pod. Pure functions.

A pod's spec says what is wanted. The status of its running containers says what the node has given
them, its allocation. The allocation changes to what is wanted if the node has room for that.

Source: handlePodResourcesResize in pkg/kubelet/kubelet.go, GetPodResizeConditions in
pkg/kubelet/status/status_manager.go and computePodResizeAction in
pkg/kubelet/kuberuntime/kuberuntime_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kcm.api.core_v1 import Container, Pod, PodCondition, ResourceRequirements

PENDING = "PodResizePending"
IN_PROGRESS = "PodResizeInProgress"
DEFERRED = "Deferred"
INFEASIBLE = "Infeasible"
EVENTS = {DEFERRED: "ResizeDeferred", INFEASIBLE: "ResizeInfeasible"}
_RESIZED = ("cpu", "memory")

Allocation = Mapping[str, ResourceRequirements]  # by the containers' names


@dataclass(frozen=True)
class Refusal:
    """Why a node does not resize a pod now (DEFERRED) or ever (INFEASIBLE)."""

    reason: str
    message: str


def list_resizable(pod: Pod) -> list[Container]:
    """Returns the pod's main and init containers."""
    return [*pod.spec.containers, *(pod.spec.init_containers or ())]


def wanted_by(pod: Pod) -> Allocation:
    """Returns what the pod's spec asks for."""
    return {container.name: container.resources for container in list_resizable(pod)}


def reported_by(pod: Pod) -> Allocation:
    """Returns the allocation that the pod's status reports.

    A container that does not run, or whose resources are not reported, has what the spec asks for.
    """
    statuses = (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ()))
    reported = {
        status.name: status.resources
        for status in statuses
        if status.resources is not None and status.state and status.state.running
    }
    return {**wanted_by(pod), **reported}


def is_same(left: Allocation, right: Allocation) -> bool:
    """Reports whether two allocations have the same limits and requests."""
    return left.keys() == right.keys() and all(
        (mine.limits or {}, mine.requests or {})
        == (right[name].limits or {}, right[name].requests or {})
        for name, mine in left.items()
    )


def with_allocation(pod: Pod, allocation: Allocation) -> Pod:
    """Returns the pod with these resources in its spec."""

    def fill(containers: Iterable[Container]) -> list[Container]:
        return [
            container.replace(resources=allocation.get(container.name, container.resources))
            for container in containers
        ]

    inits = fill(pod.spec.init_containers or ())
    spec = pod.spec.replace(
        containers=fill(pod.spec.containers), init_containers=inits or pod.spec.init_containers
    )
    return pod.with_spec(spec)


def list_changed(pod: Pod, before: Allocation, *, restarts: bool) -> list[str]:
    """Returns the names of the containers whose CPU or memory differs from an allocation.

    With `restarts`, only those that have to be restarted for it, by their resize policies.
    """
    return [
        container.name
        for container in list_resizable(pod)
        if (changed := _changes(container.resources, before.get(container.name)))
        and (not restarts or needs_restart(container, changed))
    ]


def _changes(now: ResourceRequirements, before: ResourceRequirements | None) -> list[str]:
    if before is None:
        return []
    return [
        name
        for name in _RESIZED
        if any(
            (getattr(now, kind) or {}).get(name) != (getattr(before, kind) or {}).get(name)
            for kind in ("limits", "requests")
        )
    ]


def needs_restart(container: Container, changed: Sequence[str]) -> bool:
    """Reports whether the container has to be restarted for a change of these resources."""
    return any(
        policy.restart_policy == "RestartContainer" and policy.resource_name in changed
        for policy in container.resize_policy or ()
    )


def build_conditions(pod: Pod, refusal: Refusal | None, *, in_progress: bool) -> list[PodCondition]:
    """Returns the pod's conditions about resizing, none if nothing is to be resized."""
    conditions = []
    generation = pod.metadata.generation
    if refusal is not None:
        conditions.append(
            PodCondition(
                type=PENDING,
                status="True",
                observed_generation=generation,
                reason=refusal.reason,
                message=refusal.message,
            )
        )
    if in_progress:
        conditions.append(
            PodCondition(type=IN_PROGRESS, status="True", observed_generation=generation)
        )
    return conditions
