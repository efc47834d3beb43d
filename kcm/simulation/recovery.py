"""From a pod's status back to its run, for a simulator that has just started.

To the second, as statuses are. Where the status does not tell (how long a pull has
been failing), the run begins there anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kcm.api.core_v1 import ContainerStateTerminated, ContainerStatus, Pod
from kcm.simulation.behaviour import Pace, behaviour_of
from kcm.simulation.lifecycle import (
    FIRST_BACKOFF,
    LONGEST_BACKOFF,
    begin,
    spec_of,
    starts_again,
)
from kcm.simulation.runs import ContainerRun, Ended, Phase, PodRun
from kcm.simulation.scripts import PodScript
from kcm.simulation.values import FOREVER

_PULL_REASONS = ("ErrImagePull", "ImagePullBackOff")


def recovered(pod: Pod, script: PodScript, now: float, pace: Pace) -> PodRun:
    """The run that the pod's status shows."""
    status = pod.status
    started = status.start_time.timestamp() if status.start_time else now
    ips = tuple(entry.ip for entry in status.pod_ips or ())
    run = replace(begin(pod, started, ips), sandbox=bool(ips))
    if status.phase == "Failed" and status.reason:
        run = replace(run, failure=(status.reason, status.message or ""))
        if not status.container_statuses:
            return replace(run, rejected=True)
    known: Mapping[str, ContainerStatus] = {
        s.name: s for s in (*(status.init_container_statuses or ()),
                            *(status.container_statuses or ()))
    }  # fmt: skip
    for container in run.containers:
        if found := known.get(container.name):
            run = run.put(_Recovery(pod, script, now, pace).container(container, found))
    return run


@dataclass(frozen=True, slots=True)
class _Recovery:
    """One call of `recovered`."""

    pod: Pod
    script: PodScript
    now: float
    pace: Pace

    def container(self, c: ContainerRun, status: ContainerStatus) -> ContainerRun:
        state, last = status.state, status.last_state
        before = _ended(last.terminated) if last and last.terminated else None
        delay = _delay(status.restart_count)
        c = replace(c, restarts=status.restart_count, delay=delay, ended=before)
        if state and state.running:
            at = state.running.started_at
            return self._running(c, at.timestamp() if at else self.now, status.ready)
        if state and state.terminated:
            return self._exited(c, _ended(state.terminated))
        reason = state.waiting.reason if state and state.waiting else None
        if reason == "CrashLoopBackOff" and before is not None:
            return replace(c, phase=Phase.BACKOFF, until=before.finished + delay)
        if reason in _PULL_REASONS:
            until = self.now + FIRST_BACKOFF
            return replace(c, phase=Phase.PULL_BACKOFF, until=until, pulls=1)
        return c

    def _exited(self, c: ContainerRun, ended: Ended) -> ContainerRun:
        finished = self.pod.status.phase in ("Succeeded", "Failed")
        again = not finished and starts_again(self.pod, c, ended.exit_code)
        return replace(c, phase=Phase.EXITED, ended=ended, until=self.now if again else FOREVER)

    def _running(self, c: ContainerRun, begun: float, ready: bool) -> ContainerRun:
        does = behaviour_of(self.pod, spec_of(self.pod, c.name), c, self.script, self.pace)
        ready_at = begun if ready else begun + does.ready_after
        return replace(
            c,
            phase=Phase.RUNNING,
            started=begun,
            until=begun + does.run_for,
            ready_at=FOREVER if does.outcome == "never-ready" else ready_at,
        )


def _delay(restarts: int) -> float:
    """The back-off that so many ends in a row have brought about."""
    if not restarts:
        return 0.0
    return float(min(FIRST_BACKOFF * 2 ** min(restarts - 1, 10), LONGEST_BACKOFF))


def _ended(found: ContainerStateTerminated) -> Ended:
    return Ended(
        exit_code=found.exit_code,
        reason=found.reason or "",
        started=found.started_at.timestamp() if found.started_at else 0.0,
        finished=found.finished_at.timestamp() if found.finished_at else 0.0,
        message=found.message or "",
        container_id=found.container_id or "",
    )
