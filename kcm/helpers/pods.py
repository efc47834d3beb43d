"""The states of pods, and building pods from templates.

Source: pkg/api/v1/pod/util.go and pkg/controller/controller_utils.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from kcm.api.core_v1 import Container, Pod, PodCondition, PodSpec, PodStatus, PodTemplateSpec
from kcm.api.ownership import new_controller_ref
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta

_TERMINAL = frozenset({"Succeeded", "Failed"})


def is_terminal(pod: Pod) -> bool:
    """Reports whether the pod's phase is Succeeded or Failed."""
    return pod.status.phase in _TERMINAL


def is_active(pod: Pod) -> bool:
    """Reports whether the pod is neither terminal nor being deleted, and so counts as a replica."""
    return pod.status.phase not in _TERMINAL and pod.metadata.deletion_timestamp is None


def is_terminating(pod: Pod) -> bool:
    """Reports whether the pod is being deleted and not terminal yet."""
    return pod.metadata.deletion_timestamp is not None and pod.status.phase not in _TERMINAL


def condition_of(status: PodStatus, type: str) -> PodCondition | None:
    """Returns the condition of this type, or None."""
    for condition in status.conditions or ():
        if condition.type == type:
            return condition
    return None


def with_condition(status: PodStatus, condition: PodCondition, now: datetime) -> PodStatus:
    """Returns the status with this condition.

    Its transition time is that of the old condition if the status is the same, otherwise `now`.
    """
    before = condition_of(status, condition.type)
    unchanged = before is not None and before.status == condition.status
    since = before.last_transition_time if before and unchanged else now.replace(microsecond=0)
    others = [c for c in status.conditions or () if c.type != condition.type]
    return status.replace(conditions=[*others, condition.replace(last_transition_time=since)])


def is_ready(pod: Pod) -> bool:
    """Reports whether the pod's condition Ready is True."""
    ready = condition_of(pod.status, "Ready")
    return ready is not None and ready.status == "True"


def ready_since(pod: Pod) -> datetime | None:
    """Returns when the pod became ready, None if it is not ready or the time is unknown."""
    ready = condition_of(pod.status, "Ready")
    return ready.last_transition_time if ready is not None and ready.status == "True" else None


def available_in(pod: Pod, min_ready_seconds: int, now: datetime) -> float | None:
    """Returns the seconds until a ready pod counts as available, 0 if it already does.

    Returns None if time alone will not make it available.
    """
    if not min_ready_seconds:
        return 0.0
    since = ready_since(pod)
    if since is None:
        return None
    left = (since - now).total_seconds() + min_ready_seconds
    # As upstream, the time must have passed, not just been reached.
    return 0.0 if left < 0 else max(left, 0.001)


def next_availability(ready: Iterable[Pod], min_ready_seconds: int, now: datetime) -> float | None:
    """Returns the seconds until the next of these ready pods counts as available.

    Returns None if no pod will become available by time alone.
    """
    waits = (available_in(pod, min_ready_seconds, now) for pod in ready)
    return min((wait for wait in waits if wait), default=None)


def pod_from_template(template: PodTemplateSpec, owner: KubeObject) -> Pod:
    """Returns a new pod of `owner` with a copy of the template's spec. Its name is generated."""
    meta = template.metadata
    return Pod(
        metadata=ObjectMeta(
            generate_name=f"{owner.name}-",
            namespace=owner.metadata.namespace,
            labels=dict(meta.labels) if meta.labels else None,
            annotations=dict(meta.annotations) if meta.annotations else None,
            finalizers=list(meta.finalizers) if meta.finalizers else None,
            owner_references=[new_controller_ref(owner)],
        ),
        spec=template.spec.model_copy(deep=True),
    )


def list_containers(spec: PodSpec) -> list[Container]:
    """Returns all containers of a pod: main, init and ephemeral ones."""
    return [*spec.containers, *(spec.init_containers or ()), *(spec.ephemeral_containers or ())]


def is_sidecar(container: Container) -> bool:
    """Reports whether an init container is a sidecar (restartPolicy Always)."""
    return container.restart_policy == "Always"


def sidecar_place(pod: Pod | None, name: str) -> int | None:
    """Returns the index of a sidecar among the pod's init containers, None if it is no sidecar."""
    inits = (pod.spec.init_containers or ()) if pod else ()
    places = (n for n, init in enumerate(inits) if init.name == name and is_sidecar(init))
    return next(places, None)


def most_restarts(pod: Pod) -> tuple[int, int]:
    """Returns the highest restart counts of a main container and of a sidecar."""
    containers = max((c.restart_count for c in pod.status.container_statuses or ()), default=0)
    sidecars = {c.name for c in pod.spec.init_containers or () if is_sidecar(c)}
    counts = (
        c.restart_count
        for c in pod.status.init_container_statuses or ()
        if sidecars and c.name in sidecars
    )
    return containers, max(counts, default=0)
