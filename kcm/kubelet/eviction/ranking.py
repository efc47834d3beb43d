"""The order in which pods are evicted, and the messages of evictions: pure functions.

Source: rankMemoryPressure, rankDiskPressureFunc, rankPIDPressure and evictionMessage in
pkg/kubelet/eviction/helpers.go, Kubernetes 1.33. Departure: what containers write into their own
folders is not measured; volumes and logs are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kcm.api.core_v1 import Pod
from kcm.api.pods.resources import requests_of
from kcm.apimachinery.quantity import Quantity
from kcm.kubelet.eviction.thresholds import (
    DISK,
    INODES,
    MEMORY,
    RESOURCES,
    Observations,
    Signal,
    Threshold,
    format_amount,
)
from kcm.kubelet.stats.provider import PodStats

StatsByUid = Mapping[str, PodStats]
_RankKey = tuple[bool, bool, int, int]


def rank_pods(signal: Signal, pods: Iterable[Pod], stats: StatsByUid) -> list[Pod]:
    """Returns the pods in the order in which they are evicted.

    Pods without stats come first, then pods that use more than they requested, then the others.
    Within these groups, pods of lower priority come first, and of the same priority those that
    exceed their requests most. For PIDs, only the priority and the number of processes count.
    """
    if signal is Signal.PIDS:
        return sorted(pods, key=lambda pod: _pid_key(pod, stats.get(pod.uid or "")))
    resource = RESOURCES[signal]
    usage_of = _USAGE[resource]

    def key(pod: Pod) -> _RankKey:
        pod_stats = stats.get(pod.uid or "")
        if pod_stats is None:
            return (False, False, _priority(pod), 0)
        excess = usage_of(pod_stats) - _request(pod, resource)
        return (True, excess <= 0, _priority(pod), -excess)

    return sorted(pods, key=key)


def _pid_key(pod: Pod, stats: PodStats | None) -> tuple[int, bool, int]:
    return (_priority(pod), stats is not None, -(stats.processes if stats else 0))


def _disk_usage(stats: PodStats) -> int:
    return stats.disk.size + sum(container.log_bytes for container in stats.containers)


_USAGE: Mapping[str, Callable[[PodStats], int]] = {
    MEMORY: lambda stats: stats.memory,
    DISK: _disk_usage,
    INODES: lambda stats: stats.disk.files,
}


def _priority(pod: Pod) -> int:
    return pod.spec.priority or 0


def _request(pod: Pod, resource: str) -> int:
    request = requests_of(pod.spec).get(resource)
    return request.value() if request is not None else 0


def sort_by_urgency(thresholds: Iterable[Threshold]) -> list[Threshold]:
    """Returns the thresholds with those of memory first.

    Without memory left, the kernel would choose which processes to kill.
    """
    return sorted(thresholds, key=lambda threshold: threshold.signal is not Signal.MEMORY)


def build_eviction_message(
    threshold: Threshold, pod: Pod, stats: PodStats | None, observed: Observations
) -> str:
    """Returns the message of an eviction, for the pod's status and an Event."""
    signal, resource = threshold.signal, RESOURCES[threshold.signal]
    text = f"The node was low on resource: {resource}. "
    observation = observed.get(signal)
    if observation is not None:
        quantity = threshold.value.format(signal, observation.capacity)
        available = format_amount(signal, observation.available)
        text += f"Threshold quantity: {quantity}, available: {available}. "
    return text + "".join(_describe_excesses(signal, resource, pod, stats))


def _describe_excesses(
    signal: Signal, resource: str, pod: Pod, stats: PodStats | None
) -> Iterable[str]:
    """Yields a sentence for each container that uses more of the resource than it requested."""
    specs = {c.name: c for c in (*pod.spec.containers, *(pod.spec.init_containers or ()))}
    amounts: Sequence[tuple[str, int]] = ()
    if stats is not None and resource == MEMORY:
        amounts = [(container.name, container.memory) for container in stats.containers]
    elif stats is not None and resource == DISK:
        amounts = [(container.name, container.log_bytes) for container in stats.containers]
    for name, amount in amounts:
        spec = specs.get(name)
        request = ((spec.resources.requests if spec else None) or {}).get(resource) or Quantity()
        if amount > request.value():
            yield (
                f"Container {name} was using {format_amount(signal, amount)}, "
                f"request is {request}, has larger consumption of {resource}. "
            )


@dataclass(frozen=True)
class StorageExcess:
    """The reason to evict a pod that exceeds a limit of local storage.

    `signal` is the label of the eviction in the metrics.
    """

    signal: str
    message: str


def find_storage_excess(pod: Pod, stats: PodStats) -> StorageExcess | None:
    """Returns how the pod exceeds its limits of local storage, or None if it does not."""
    for volume in pod.spec.volumes or ():
        limit = volume.empty_dir and volume.empty_dir.size_limit
        used = stats.disk.volumes.get(volume.name)
        if limit and limit.sign() > 0 and used is not None and used > limit.value():
            message = f'Usage of EmptyDir volume "{volume.name}" exceeds the limit "{limit}". '
            return StorageExcess("emptydirfs.limit", message)
    limits = [(c.resources.limits or {}).get("ephemeral-storage") for c in pod.spec.containers]
    if limits and all(limits):
        total = sum((limit for limit in limits if limit is not None), Quantity())
        if _disk_usage(stats) > total.value():
            usage = "Pod ephemeral local storage usage"
            message = f"{usage} exceeds the total limit of containers {total}. "
            return StorageExcess("ephemeralpodfs.limit", message)
    return None
