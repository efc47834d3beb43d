"""Plays the life of a pod on a simulated node, and returns what users would see."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.kinds.printing import pod_status
from kcm.simulation import statuses, worker
from kcm.simulation.runs import PodEvent, PodRun, begin
from kcm.simulation.scripting import scripts
from kcm.simulation.scripting.behaviour import Pace

START = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
PACE = Pace(start_after=1.0, start_jitter=0.0, run_for=2.0, stop_after=1.0)
PREFIX = scripts.PREFIX


def pod(annotations: Mapping[str, str] | None = None, **spec: Any) -> Pod:
    """Returns a pod with the container `main`, bound to node-1.

    The annotations come without their prefix.
    """
    body: dict[str, Any] = {"nodeName": "node-1", "containers": [{"name": "main", "image": "i:1"}]}
    meta = {
        "name": "p",
        "namespace": "default",
        "uid": "u",
        "annotations": {
            name if "/" in name else PREFIX + name: text
            for name, text in (annotations or {}).items()
        },
    }
    return codec.decode(
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**body, **spec}},
        Pod.resource,
    )


class Life:
    """The life of one pod on a simulated node. Times are seconds since the node first saw it."""

    def __init__(self, pod: Pod, pace: Pace = PACE) -> None:
        self.pod = pod
        self.pace = pace
        self.script, self.faults = scripts.of_pod(pod.annotations, scripts.NO_SCRIPT)
        self.run: PodRun = begin(pod, START, ("10.0.0.1",))
        self.events: list[tuple[float, PodEvent]] = []
        self.now = 0.0
        self.due = 0.0

    def step(self, at: float) -> str:
        """Advances the pod to a time; returns READY and STATUS as kubectl shows them then."""
        self.now = at
        done = worker.advance(self.pod, self.run, self.script, START + at, self.pace)
        self.due = done.due - START
        self.events += [(at, event) for event in done.events]
        status = statuses.status_of(self.pod, self.run, START + at, "192.0.2.1")
        self.pod = self.pod.with_status(status)
        return f"{pod_status.ready(self.pod)} {pod_status.reason(self.pod)}"

    def until(self, end: float) -> list[tuple[float, str]]:
        """Returns each visible change up to a time, as (time, READY and STATUS)."""
        seen: list[tuple[float, str]] = []
        at = self.now
        while at <= end:
            shown = self.step(at)
            if not seen or seen[-1][1] != shown:
                seen.append((round(at, 3), shown))
            if self.due == float("inf"):
                break
            at = max(self.due, at)
        return seen

    def delete(self, at: float, grace: int = 30) -> None:
        """Deletes the pod, as a user does."""
        mark = datetime.fromtimestamp(int(START + at + grace), UTC)
        self.pod = self.pod.with_metadata(
            deletion_timestamp=mark, deletion_grace_period_seconds=grace
        )
        self.now = at

    def is_over(self) -> bool:
        """Reports whether no container runs or will run."""
        return self.run.over

    def list_reasons(self) -> list[str]:
        """Returns the reasons of the Events."""
        return [event.reason for _, event in self.events]

    def condition(self, kind: str) -> tuple[str, str | None, str | None]:
        """Returns status, reason and message of a condition."""
        match = next(c for c in self.pod.status.conditions or () if c.type == kind)
        return match.status, match.reason, match.message
