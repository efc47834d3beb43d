"""Ending all pods of a node by priority, within a time that is shared out.

Guarantees: from the first moment no pod is taken, and the node is not ready; critical
pods end last, and have time of their own.

Source: pkg/kubelet/nodeshutdown/nodeshutdown_manager_linux.go, Kubernetes 1.33.
Departure: the kubelet's SIGTERM begins it, in place of a message of systemd's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import structlog

from kcm.api.core_v1 import Pod
from kcm.clock import Clock
from kcm.errors import ConfigurationError
from kcm.kubelet.admission import Refusal
from kcm.kubelet.pod_workers.terminator import Ending, Terminator
from kcm.kubelet.recorder import Recorder
from kcm.kubelet.types import SYSTEM_CRITICAL_PRIORITY

log = structlog.get_logger("kcm.kubelet")

REASON = "Terminated"
MESSAGE = "Pod was terminated in response to imminent node shutdown."
REFUSED = Refusal("NodeShutdown", "Pod was rejected as the node is shutting down.")
NOT_READY = "node is shutting down"


@dataclass(frozen=True)
class Group:
    """Pods of a priority or more, and the seconds that they have."""

    priority: int
    seconds: int
    pods: tuple[Pod, ...] = ()


def groups_of(seconds: float, critical: float) -> list[Group]:
    """How the time is shared out. Raises ConfigurationError."""
    if critical > seconds:
        raise ConfigurationError(
            "--shutdown-grace-period-critical-pods is part of --shutdown-grace-period, "
            "and must not be longer"
        )
    if seconds <= 0:
        return []
    return [
        Group(0, int(seconds - critical)),
        Group(SYSTEM_CRITICAL_PRIORITY, int(critical)),
    ]


def grouped(groups: Sequence[Group], pods: Iterable[Pod]) -> list[Group]:
    """The groups with their pods, the first to end first: pure."""
    members: list[list[Pod]] = [[] for _ in groups]
    for pod in pods:
        priority = pod.spec.priority or 0
        at = [index for index, group in enumerate(groups) if group.priority <= priority]
        members[at[-1] if at else 0].append(pod)
    return [
        Group(group.priority, group.seconds, tuple(found))
        for group, found in zip(groups, members, strict=True)
    ]


class ShutdownManager:
    """Thread-safe."""

    def __init__(
        self,
        groups: Sequence[Group],
        active: Callable[[], Sequence[Pod]],
        terminator: Terminator,
        *,
        recorder: Recorder,
        clock: Clock,
        report: Callable[[], None] = lambda: None,
    ) -> None:
        """`report` has the node tell its status soon."""
        self._groups = groups
        self._active = active
        self._terminator = terminator
        self._recorder = recorder
        self._clock = clock
        self._report = report
        self._now = False

    def faults(self) -> list[str]:
        """Why the node is not ready."""
        return [NOT_READY] if self._now else []

    def admit(self, _: Pod, __: Sequence[Pod]) -> Refusal | None:
        return REFUSED if self._now else None

    def shut_down(self) -> None:
        """End all pods; returns when they have ended, or when the time is over."""
        if not self._groups:
            return
        self._recorder.of_node("Normal", "NodeShutdown", "Shutdown manager detected shutdown event")
        self._now = True
        self._report()
        for group in grouped(self._groups, self._active()):
            if group.pods:
                self._end(group)

    def _end(self, group: Group) -> None:
        until = self._clock.monotonic() + group.seconds
        log.info("Pods end with their node", pods=len(group.pods), seconds=group.seconds)
        endings = [(pod, self._begin(pod, group)) for pod in group.pods]
        for pod, done in endings:
            if not self._clock.wait(done, max(until - self._clock.monotonic(), 0.0)):
                log.warning("Shutdown manager pod killing time out", pod=pod.key)

    def _begin(self, pod: Pod, group: Group) -> threading.Event:
        own = pod.spec.termination_grace_period_seconds
        grace = group.seconds if own is None else min(own, group.seconds)
        return self._terminator.end(pod, Ending(REASON, MESSAGE, grace))
