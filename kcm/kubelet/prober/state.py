"""When a container is probed, and what follows from a probe's result: pure.

Source: doProbe in pkg/kubelet/prober/worker.go, Kubernetes 1.33.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from kcm.api.core_v1 import Container, Pod, PodStatus, Probe
from kcm.api.core_v1.container_statuses import ContainerStatus
from kcm.kubelet.prober.results import Result

DEFAULT_PERIOD = 10  # seconds
DEFAULT_TIMEOUT = 1  # seconds
_FAILURES, _SUCCESSES = 3, 1  # default thresholds


class Kind(StrEnum):
    """What a probe is for; as events name it."""

    STARTUP = "Startup"
    READINESS = "Readiness"
    LIVENESS = "Liveness"


INITIAL = {
    Kind.STARTUP: Result.UNKNOWN,
    Kind.READINESS: Result.FAILURE,
    Kind.LIVENESS: Result.SUCCESS,
}
"""What holds until the first probe."""


def probe_of(container: Container, kind: Kind) -> Probe | None:
    """The container's probe of that kind."""
    match kind:
        case Kind.STARTUP:
            return container.startup_probe
        case Kind.READINESS:
            return container.readiness_probe
    return container.liveness_probe


@dataclass(frozen=True)
class State:
    """What one worker remembers."""

    container_id: str = ""
    last: Result | None = None
    run: int = 0  # how often `last` came in a row
    on_hold: bool = False  # until there is a new container


@dataclass(frozen=True)
class Subject:
    """What a worker looks after."""

    kind: Kind
    pod: Pod
    container: Container
    spec: Probe

    @property
    def restarts(self) -> bool:
        """Whether the container is started again after its end."""
        inits = self.pod.spec.init_containers or ()
        sidecar = any(one.name == self.container.name for one in inits)
        return sidecar or self.pod.spec.restart_policy != "Never"


@dataclass(frozen=True)
class Step:
    """What to do: forget the result of one container, note another's, probe, go on."""

    state: State
    forget: str = ""
    note: Result | None = None
    probe: bool = False
    go_on: bool = True


def look(subject: Subject, state: State, status: PodStatus | None, now: datetime) -> Step:
    """Decide by the pod's status whether to probe now."""
    if status is None:
        return Step(state)
    if status.phase in ("Failed", "Succeeded"):
        return Step(state, go_on=False)
    found = status_of(status, subject.container.name)
    if found is None or not found.container_id:
        return Step(state)
    forget, note = "", None
    container_id = bare(found.container_id)
    if container_id != state.container_id:
        forget, note = state.container_id, INITIAL[subject.kind]
        state = replace(state, container_id=container_id, on_hold=False)
    if state.on_hold:
        return Step(state)
    running = found.state.running if found.state else None
    if running is None:
        ended = found.state is not None and found.state.terminated is not None
        return Step(state, forget, Result.FAILURE, go_on=not ended or subject.restarts)
    if subject.pod.deleting and subject.kind is not Kind.READINESS:
        return Step(state, forget, Result.SUCCESS, go_on=False)
    delay = subject.spec.initial_delay_seconds or 0
    since = running.started_at
    waits = since is not None and int((now - since).total_seconds()) < delay
    # Startup probes until the container has started, the others only then.
    wanted = bool(found.started) is (subject.kind is not Kind.STARTUP)
    return Step(state, forget, note, probe=wanted and not waits)


def judge(subject: Subject, state: State, result: Result) -> Step:
    """What a probe's result means; unchanged below the threshold."""
    run = state.run + 1 if state.last is result else 1
    state = replace(state, last=result, run=run)
    spec = subject.spec
    needed = {
        Result.FAILURE: spec.failure_threshold or _FAILURES,
        Result.SUCCESS: spec.success_threshold or _SUCCESSES,
    }
    if run < needed.get(result, 0):
        return Step(state)
    if result is Result.FAILURE and subject.kind is not Kind.READINESS:
        # It is going to be restarted: no probe meets a container on its way out.
        state = replace(state, on_hold=True, run=0)
    return Step(state, note=result)


def status_of(status: PodStatus, name: str) -> ContainerStatus | None:
    """A container's status; of a sidecar, among those of the init containers."""
    ordinary = _named(status.container_statuses, name)
    if ordinary is not None and ordinary.container_id:
        return ordinary
    return _named(status.init_container_statuses, name)


def _named(statuses: list[ContainerStatus] | None, name: str) -> ContainerStatus | None:
    return next((one for one in statuses or () if one.name == name), None)


def bare(container_id: str) -> str:
    """An id as the runtime knows it: without `process://`."""
    return container_id.rpartition("://")[2]
