"""A Job with its controller in memory, for tests that sync it many times or interrupt a sync."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from kcm.api.batch_v1 import COMPLETION_INDEX, Job, JobStatus
from kcm.api.core_v1 import ContainerState, ContainerStateTerminated, ContainerStatus, Pod
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.job import JobController
from kcm.controllers.job.pods import is_tracked
from kcm.helpers.pods import is_active
from kcm.reconcile.counters import sum_counts
from kcm.reconcile.plan import Event, Outcome, Plan, Update, Write
from kcm.testing import builders
from kcm.testing.world import World


class CrashError(Exception):
    """Stands for the crash of the worker in the middle of a sync."""


class Jobs:
    """Holds a Job and its controller in a World; a test decides the fate of the Job's pods."""

    def __init__(self, job: Job, *others: KubeObject) -> None:
        self.world = World(job, *others)
        self.key = job.key
        self.events: list[Event] = []
        self.statuses: list[JobStatus] = []
        self.counted: dict[str, int] = {}

    @property
    def job(self) -> Job:
        obj = self.world.objects["jobs.batch", self.key]
        assert isinstance(obj, Job)
        return obj

    @property
    def status(self) -> JobStatus:
        return self.job.status

    @property
    def pods(self) -> list[Pod]:
        return [pod for pod in self.world.of(Pod) if isinstance(pod, Pod)]

    @property
    def active(self) -> list[Pod]:
        return [pod for pod in self.pods if is_active(pod)]

    @property
    def left(self) -> list[str]:
        """Returns the names of the pods that still have the Job's tracking finalizer."""
        return [pod.name for pod in self.pods if is_tracked(pod)]

    def conditions(self) -> dict[str, str]:
        """Returns the reasons of the conditions that are true, by type, in their order."""
        all_conditions = self.status.conditions or ()
        return {c.type: c.reason or "" for c in all_conditions if c.status == "True"}

    def counts(self) -> tuple[int, int, int]:
        """Returns how many pods are active, succeeded and failed according to the Job's status."""
        status = self.status
        return status.active or 0, status.succeeded or 0, status.failed or 0

    def indexes(self) -> list[int]:
        """Returns the completion indexes of the active pods, in ascending order."""
        return sorted(int(pod.annotations[COMPLETION_INDEX]) for pod in self.active)

    def reasons(self) -> list[str]:
        """Returns the reasons of the Events so far, in their order."""
        return [event.reason for event in self.events]

    # --- time and users

    def step(self, seconds: float) -> None:
        self.world.now += timedelta(seconds=seconds)

    def change(self, **spec: Any) -> None:
        old = self.job
        self.world.write(Update(old.with_spec(old.spec.replace(**spec)), old))

    # --- syncs

    def plan(self) -> Plan:
        return JobController().reconcile(self.key, self.world.view())

    def sync(self, *, writes: int = 10**6) -> Plan:
        """Syncs once. With `writes`, CrashError is raised after that many writes."""
        plan = self.plan()
        outcome = self._carry_out(plan, writes)
        self.events += [*plan.events, *plan.events_after(outcome)]
        self.counted = sum_counts([self.counted, plan.counts_after(outcome)])
        return plan

    def settle(self, rounds: int = 20) -> None:
        """Syncs until nothing changes."""
        for _ in range(rounds):
            before = dict(self.world.objects)
            self.sync()
            if before == self.world.objects:
                return
        raise AssertionError("it does not come to rest")

    def _carry_out(self, plan: Plan, left: int) -> Outcome:
        done: list[tuple[Write, KubeObject]] = []
        for batch in plan.batches:
            for write in batch.writes:
                left = self._spend(left)
                done.append((write, self.world.write(write)))
                self._look()
        outcome = Outcome(tuple(done))
        status = plan.status_after(outcome)
        if status is not None:
            self._spend(left)
            self.world.write(status)
            self._look()
        return outcome

    @staticmethod
    def _spend(left: int) -> int:
        if left == 0:
            raise CrashError
        return left - 1

    def _look(self) -> None:
        if not self.statuses or self.statuses[-1] != self.status:
            self.statuses.append(self.status)

    # --- kubelets

    def put(self, pod: Pod, *, ready: bool = False, **status: Any) -> Pod:
        """Sets fields of a pod's status, and returns the new pod."""
        now = self.world.now
        if ready:
            status["conditions"] = [builders.condition("Ready", since=now)]
        new_pod = pod.with_status(pod.status.replace(**status))
        self.world.put(new_pod)
        return new_pod

    def place(self, node: str = "n1") -> None:
        """Binds the pods without a node to `node`, and makes them run and ready."""
        for pod in self.active:
            if not pod.spec.node_name:
                bound = pod.with_spec(pod.spec.replace(node_name=node))
                self.put(bound, phase="Running", ready=True)

    def succeed(self, *pods: Pod) -> None:
        for pod in pods:
            self.put(
                pod, phase="Succeeded", conditions=None, container_statuses=self._end_containers(0)
            )

    def fail(self, *pods: Pod, code: int = 1, conditions: Any = None) -> None:
        for pod in pods:
            self.put(
                pod,
                phase="Failed",
                conditions=conditions,
                container_statuses=self._end_containers(code),
            )

    def _end_containers(self, code: int) -> list[ContainerStatus]:
        ended = ContainerStateTerminated(exit_code=code, finished_at=self.world.now)
        return [ContainerStatus(name="c", state=ContainerState(terminated=ended))]

    def end(self) -> None:
        """Stops the pods that are being deleted, as kubelets do: they fail, and vanish without a
        finalizer.
        """
        for pod in self.pods:
            if pod.deleting:
                self.world.put(pod.with_metadata(deletion_grace_period_seconds=0))
                self.put(self._get(pod), phase="Failed", conditions=None)
                if not is_tracked(pod):
                    self.world.remove(self.world.objects["pods", pod.key])

    def _get(self, pod: Pod) -> Pod:
        obj = self.world.objects["pods", pod.key]
        assert isinstance(obj, Pod)
        return obj

    def at(self, index: int) -> Pod:
        """Returns the active pod with a completion index."""
        (pod,) = (p for p in self.active if p.annotations[COMPLETION_INDEX] == str(index))
        return pod


def build_indexed_job(completions: int, parallelism: int | None = None, **spec: Any) -> Job:
    spec |= {"completion_mode": "Indexed", "completions": completions}
    return builders.job(parallelism=parallelism or completions, **spec)


def failure_rules(*rules: Mapping[str, Any]) -> dict[str, Any]:
    return {"rules": list(rules)}


def of_reason(events: Iterable[Event], reason: str) -> Iterator[str]:
    return (event.message for event in events if event.reason == reason)
