"""Divides the time of a node's shutdown among its pods by their priority: pure functions.

Source: ShutdownGracePeriodByPodPriority in pkg/kubelet/apis/config/types.go, and migrateConfig and
groupByPriority in pkg/kubelet/nodeshutdown/nodeshutdown_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kcm.api.core_v1 import Pod
from kcm.errors import ConfigurationError
from kcm.kubelet.types import SYSTEM_CRITICAL_PRIORITY


@dataclass(frozen=True)
class ShutdownGracePeriod:
    """The grace period, in seconds, of pods of at least this priority when the node shuts down."""

    priority: int
    seconds: int


@dataclass(frozen=True)
class PodShutdownGroup:
    """The pods that share one grace period of a shutdown."""

    period: ShutdownGracePeriod
    pods: tuple[Pod, ...] = ()


def split_grace_period(total: float, critical: float) -> tuple[ShutdownGracePeriod, ...]:
    """Returns the grace periods of ordinary and of critical pods, from the two flags in seconds.

    With a total of 0 there are none, and pods are left running. Raises ConfigurationError if
    critical pods have more than the total.
    """
    if critical > total:
        raise ConfigurationError(
            "--shutdown-grace-period-critical-pods is part of --shutdown-grace-period "
            "and must not be longer than that"
        )
    if total <= 0:
        return ()
    return (
        ShutdownGracePeriod(0, int(total - critical)),
        ShutdownGracePeriod(SYSTEM_CRITICAL_PRIORITY, int(critical)),
    )


def group_by_priority(
    periods: Sequence[ShutdownGracePeriod], pods: Iterable[Pod]
) -> list[PodShutdownGroup]:
    """Returns one group for each period, in the order in which the groups are terminated.

    A pod belongs to the last period whose priority is not above its own, or else to the first one.
    """
    members: list[list[Pod]] = [[] for _ in periods]
    for pod in pods:
        priority = pod.spec.priority or 0
        reached = [index for index, period in enumerate(periods) if period.priority <= priority]
        members[reached[-1] if reached else 0].append(pod)
    return [
        PodShutdownGroup(period, tuple(group))
        for period, group in zip(periods, members, strict=True)
    ]
