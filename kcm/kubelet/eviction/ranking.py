"""Who goes first, and what it is told: pure.

Source: rankMemoryPressure, rankDiskPressureFunc, rankPIDPressure and evictionMessage in
pkg/kubelet/eviction/helpers.go, Kubernetes 1.33. Departure: what containers write into
their own folders is not measured; volumes and logs count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kcm.api.core_v1 import Pod
from kcm.apimachinery.quantity import Quantity
from kcm.kubelet.eviction.thresholds import (
    DISK,
    INODES,
    MEMORY,
    RESOURCES,
    Observations,
    Signal,
    Threshold,
    shown,
)
from kcm.kubelet.stats.provider import PodUse
from kcm.quota.pods import requests_of

Uses = Mapping[str, PodUse]  # by uid
_Key = tuple[bool, bool, int, int]


def ranked(signal: Signal, pods: Iterable[Pod], uses: Uses) -> list[Pod]:
    """The pods, the first to go first: those of which nothing is known, those that use more
    than they asked for, by priority, and by how much more. So best-effort pods go before
    burstable ones, and pods that keep to their requests last."""
    if signal is Signal.PIDS:
        return sorted(pods, key=lambda pod: _pid_key(pod, uses.get(pod.uid or "")))
    resource = RESOURCES[signal]
    used = _USED[resource]

    def key(pod: Pod) -> _Key:
        use = uses.get(pod.uid or "")
        if use is None:
            return (False, False, _priority(pod), 0)
        asked = _asked(pod, resource)
        over = used(use) - asked
        return (True, over <= 0, _priority(pod), -over)

    return sorted(pods, key=key)


def _pid_key(pod: Pod, use: PodUse | None) -> tuple[int, bool, int]:
    return (_priority(pod), use is not None, -(use.processes if use else 0))


def _disk(use: PodUse) -> int:
    return use.disk.size + sum(one.log_bytes for one in use.containers)


_USED: Mapping[str, Callable[[PodUse], int]] = {
    MEMORY: lambda use: use.memory,
    DISK: _disk,
    INODES: lambda use: use.disk.files,
}


def _priority(pod: Pod) -> int:
    return pod.spec.priority or 0


def _asked(pod: Pod, resource: str) -> int:
    asked = requests_of(pod.spec).get(resource)
    return asked.value() if asked is not None else 0


def by_urgency(thresholds: Iterable[Threshold]) -> list[Threshold]:
    """Memory first: when it is gone, the machine chooses."""
    return sorted(thresholds, key=lambda one: one.signal is not Signal.MEMORY)


def message_of(threshold: Threshold, pod: Pod, use: PodUse | None, observed: Observations) -> str:
    """Why a pod was evicted, in its status and in an Event."""
    resource = RESOURCES[threshold.signal]
    text = f"The node was low on resource: {resource}. "
    one = observed.get(threshold.signal)
    if one is not None:
        least = threshold.value.shown(threshold.signal, one.capacity)
        left = shown(threshold.signal, one.available)
        text += f"Threshold quantity: {least}, available: {left}. "
    return text + "".join(_blamed(threshold.signal, resource, pod, use))


def _blamed(signal: Signal, resource: str, pod: Pod, use: PodUse | None) -> Iterable[str]:
    """The containers that use more than they asked for."""
    specs = {one.name: one for one in (*pod.spec.containers, *(pod.spec.init_containers or ()))}
    amounts: Sequence[tuple[str, int]] = ()
    if use is not None and resource == MEMORY:
        amounts = [(one.name, one.memory) for one in use.containers]
    elif use is not None and resource == DISK:
        amounts = [(one.name, one.log_bytes) for one in use.containers]
    for name, amount in amounts:
        spec = specs.get(name)
        asked = ((spec.resources.requests if spec else None) or {}).get(resource) or Quantity()
        if amount > asked.value():
            yield (
                f"Container {name} was using {shown(signal, amount)}, request is {asked}, "
                f"has larger consumption of {resource}. "
            )


def over_limit(pod: Pod, use: PodUse) -> str:
    """Why a pod that writes more than it may has to go; "" when it does not: pure."""
    for volume in pod.spec.volumes or ():
        limit = volume.empty_dir and volume.empty_dir.size_limit
        used = use.disk.volumes.get(volume.name)
        if limit and limit.sign() > 0 and used is not None and used > limit.value():
            return f'Usage of EmptyDir volume "{volume.name}" exceeds the limit "{limit}". '
    limits = [(one.resources.limits or {}).get("ephemeral-storage") for one in pod.spec.containers]
    if limits and all(limits):
        most = sum((limit for limit in limits if limit is not None), Quantity())
        if _disk(use) > most.value():
            return (
                f"Pod ephemeral local storage usage exceeds the total limit of containers {most}. "
            )
    return ""
