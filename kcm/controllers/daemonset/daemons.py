"""Groups the pods of a DaemonSet by node, and decides which pods to create and delete.

Source: podsShouldBeOnNode, manage and updateDaemonSetStatus in
pkg/controller/daemon/daemon_controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kcm.api.apps_v1 import DaemonSet, DaemonSetStatus
from kcm.api.core_v1 import Node, Pod
from kcm.controllers.daemonset.backoff import FailedPodsBackoff
from kcm.controllers.daemonset.placement import (
    POD_GENERATION,
    Fitness,
    Placement,
    node_of,
    template_generation,
)
from kcm.helpers.history import REVISION_HASH
from kcm.helpers.intstr import scaled_value
from kcm.helpers.pods import available_in, is_ready, is_terminal, next_availability
from kcm.sdk import Event

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def oldest_first(pod: Pod) -> tuple[bool, datetime, str]:
    """Returns a sort key: pods with a node before those without, then by age and name."""
    return not pod.spec.node_name, pod.metadata.creation_timestamp or _BEGINNING, pod.name


def max_surge(daemon_set: DaemonSet, nodes: int) -> int:
    """Returns the number of nodes on which an update may run two pods, 0 unless it is rolling."""
    update = daemon_set.spec.update_strategy.rolling_update
    rolling = daemon_set.spec.update_strategy.type == "RollingUpdate"
    if not rolling or update is None:
        return 0
    return scaled_value(update.max_surge, nodes, round_up=True)


def max_unavailable(daemon_set: DaemonSet, nodes: int) -> int:
    """Returns the number of nodes that may be without an available pod during an update.

    It is 1 where neither maxUnavailable nor maxSurge would let the update proceed.
    """
    update = daemon_set.spec.update_strategy.rolling_update
    given = scaled_value(update.max_unavailable, nodes, round_up=True) if update is not None else 0
    return given or (0 if max_surge(daemon_set, nodes) else 1)


@dataclass
class Daemons:
    """The pods of one DaemonSet by node, and the changes that one sync decides on."""

    daemon_set: DaemonSet
    nodes: Sequence[Node]
    revision: str  # the hash of the present template
    backoff: FailedPodsBackoff
    now: datetime
    by_node: dict[str, list[Pod]] = field(default_factory=dict)
    fitness: dict[str, Fitness] = field(default_factory=dict)  # keyed by node
    wanted: list[str] = field(default_factory=list)  # nodes that should run a pod
    missing: list[str] = field(default_factory=list)  # nodes on which to create a pod
    to_delete: list[Pod] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    retry_after: float | None = None  # seconds

    def observe(self, pods: Iterable[Pod]) -> None:
        """Groups the pods by their nodes, and computes the fitness of the nodes.

        A pod that has ended and is being deleted waits for a finalizer only and is ignored.
        """
        for pod in pods:
            if not (pod.deleting and is_terminal(pod)) and (node := node_of(pod)):
                self.by_node.setdefault(node, []).append(pod)
        placement = Placement.of(self.daemon_set)
        self.fitness = {node.name: placement.judge(node) for node in self.nodes}
        self.wanted = [name for name, fitness in self.fitness.items() if fitness.starts]

    def is_updated(self, pod: Pod) -> bool:
        """Reports whether the pod was created from the present template."""
        generation = template_generation(self.daemon_set)
        return pod.labels.get(REVISION_HASH) == self.revision or (
            bool(generation) and pod.labels.get(POD_GENERATION) == generation
        )

    def is_available(self, pod: Pod) -> bool:
        """Reports whether the pod has been ready for minReadySeconds."""
        seconds = self.daemon_set.spec.min_ready_seconds or 0
        return is_ready(pod) and available_in(pod, seconds, self.now) == 0

    # --- one pod per node

    def manage(self) -> None:
        """Decides which pods are missing and which are surplus, before any rolling update."""
        for node, fitness in self.fitness.items():
            pods = self.by_node.get(node)
            if fitness.starts and pods is None:
                self.missing.append(node)
            elif fitness.stays:
                self._keep_one(node, fitness, pods or [])
            else:
                self.to_delete += [pod for pod in pods or () if not pod.deleting]
        for node, pods in self.by_node.items():
            if node not in self.fitness:  # no such node: nothing else deletes its unbound pods
                self.to_delete += [p for p in pods if not p.spec.node_name and not p.deleting]

    def _keep_one(self, node: str, fitness: Fitness, pods: list[Pod]) -> None:
        running = [p for p in pods if not p.deleting and not self._delete_ended(node, p)]
        running.sort(key=oldest_first)
        if not max_surge(self.daemon_set, len(self.wanted)):
            self.to_delete += running[1:]
        elif not running and fitness.starts:
            self.missing.append(node)
        elif len(running) > 1:
            self._keep_two(running)

    def _keep_two(self, running: list[Pod]) -> None:
        """Keeps one new pod, and one old pod as long as it is ready and the new one not yet
        available.
        """
        new = next((p for p in running if p.labels.get(REVISION_HASH) == self.revision), None)
        old = next((p for p in running if p.labels.get(REVISION_HASH) != self.revision), None)
        self.to_delete += [pod for pod in running if pod is not new and pod is not old]
        if new is not None and old is not None and (not is_ready(old) or self.is_available(new)):
            self.to_delete.append(old)

    def _delete_ended(self, node: str, pod: Pod) -> bool:
        """Reports whether the pod has failed or succeeded, and deletes such a pod.

        A failed pod is deleted only when the back-off of its node is over.
        """
        if pod.status.phase == "Succeeded":
            self._record(pod, node, "SucceededDaemonPod", "succeeded", "delete")
            self.to_delete.append(pod)
        elif pod.status.phase == "Failed":
            wait = self.backoff.wait(node)
            if wait:
                self.retry_after = min(wait, self.retry_after or wait)
            else:
                self.backoff.next(node)
                self._record(pod, node, "FailedDaemonPod", "failed", "kill")
                self.to_delete.append(pod)
        return is_terminal(pod)

    def _record(self, pod: Pod, node: str, reason: str, state: str, verb: str) -> None:
        message = f"Found {state} daemon pod {pod.key} on node {node}, will try to {verb} it"
        failed = state == "failed"
        self.events.append(
            Event(self.daemon_set, "Warning" if failed else "Normal", reason, message)
        )

    # --- status

    def status(self, collisions: int) -> DaemonSetStatus:
        """Returns the new status. Its counts are those before the writes of this sync."""
        running = [n for n in self.wanted if self.by_node.get(n)]
        first = [min(self.by_node[node], key=oldest_first) for node in running]
        available = sum(self.is_available(pod) for pod in first)
        astray = [n for n, fit in self.fitness.items() if not fit.starts and self.by_node.get(n)]
        return self.daemon_set.status.replace(
            observed_generation=self.daemon_set.metadata.generation,
            desired_number_scheduled=len(self.wanted),
            current_number_scheduled=len(running),
            number_misscheduled=len(astray),
            number_ready=sum(map(is_ready, first)),
            updated_number_scheduled=sum(map(self.is_updated, first)) or None,
            number_available=available or None,
            number_unavailable=len(self.wanted) - available or None,
            collision_count=collisions or self.daemon_set.status.collision_count,
        )

    def next_availability(self) -> float | None:
        """Returns the seconds until the next ready pod has been ready for minReadySeconds, None if
        all have.
        """
        seconds = self.daemon_set.spec.min_ready_seconds or 0
        ready = (pod for pods in self.by_node.values() for pod in pods if is_ready(pod))
        return next_availability(ready, seconds, self.now)
