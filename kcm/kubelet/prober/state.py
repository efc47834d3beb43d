"""Decides when a container is probed, and turns results into verdicts: pure functions.

Source: doProbe in pkg/kubelet/prober/worker.go, Kubernetes 1.33.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from kcm.api.core_v1 import Container, Pod, PodStatus, Probe
from kcm.api.core_v1.container_statuses import ContainerStatus
from kcm.kubelet.prober.results import ProbeVerdict
from kcm.kubelet.status.phase import TERMINAL
from kcm.kubelet.types import strip_runtime_name

DEFAULT_PERIOD = 10  # seconds
DEFAULT_TIMEOUT = 1  # seconds
_FAILURE_THRESHOLD, _SUCCESS_THRESHOLD = 3, 1  # defaults


class ProbeKind(StrEnum):
    """The kinds of probes, under the names that Events have for them."""

    STARTUP = "Startup"
    READINESS = "Readiness"
    LIVENESS = "Liveness"


INITIAL_VERDICTS = {
    ProbeKind.STARTUP: ProbeVerdict.UNKNOWN,
    ProbeKind.READINESS: ProbeVerdict.FAILURE,
    ProbeKind.LIVENESS: ProbeVerdict.SUCCESS,
}
"""The verdict on a container that was never probed, by kind of probe."""


def probe_of(container: Container, kind: ProbeKind) -> Probe | None:
    """Returns the container's probe of that kind, or None if it has none."""
    match kind:
        case ProbeKind.STARTUP:
            return container.startup_probe
        case ProbeKind.READINESS:
            return container.readiness_probe
    return container.liveness_probe


@dataclass(frozen=True)
class ProbeWorkerState:
    """What a worker remembers between two probes."""

    container_id: str = ""
    last: ProbeVerdict | None = None  # the result of the last probe
    run: int = 0  # how many probes in a row had the result `last`
    on_hold: bool = False  # no probes until there is a new attempt of the container


@dataclass(frozen=True)
class ProbedContainer:
    """A container of a pod, and its probe that a worker runs."""

    kind: ProbeKind
    pod: Pod
    container: Container
    spec: Probe

    @property
    def is_restarted(self) -> bool:
        """Whether the container is started again after its exit."""
        inits = self.pod.spec.init_containers or ()
        is_sidecar = any(container.name == self.container.name for container in inits)
        return is_sidecar or self.pod.spec.restart_policy != "Never"


@dataclass(frozen=True)
class ProbeStep:
    """What a worker has to do next."""

    state: ProbeWorkerState
    forget: str = ""  # the id of a container whose verdict is removed
    verdict: ProbeVerdict | None = None  # the new verdict on the container in `state`
    probe: bool = False  # whether to probe now
    go_on: bool = True  # False stops the worker


def plan_probe(
    probed: ProbedContainer, state: ProbeWorkerState, status: PodStatus | None, now: datetime
) -> ProbeStep:
    """Decides by the pod status whether to probe now. `status` is None if there is none yet."""
    if status is None:
        return ProbeStep(state)
    if status.phase in TERMINAL:
        return ProbeStep(state, go_on=False)
    container = container_status(status, probed.container.name)
    if container is None or not container.container_id:
        return ProbeStep(state)
    forget, verdict = "", None
    container_id = strip_runtime_name(container.container_id)
    if container_id != state.container_id:
        forget, verdict = state.container_id, INITIAL_VERDICTS[probed.kind]
        state = replace(state, container_id=container_id, on_hold=False)
    if state.on_hold:
        return ProbeStep(state)
    running = container.state.running if container.state else None
    if running is None:
        ended = container.state is not None and container.state.terminated is not None
        go_on = not ended or probed.is_restarted
        return ProbeStep(state, forget, ProbeVerdict.FAILURE, go_on=go_on)
    if probed.pod.deleting and probed.kind is not ProbeKind.READINESS:
        return ProbeStep(state, forget, ProbeVerdict.SUCCESS, go_on=False)
    delay = probed.spec.initial_delay_seconds or 0
    since = running.started_at
    too_early = since is not None and int((now - since).total_seconds()) < delay
    # Startup probes run until the container has started, the others only after that.
    wanted = bool(container.started) is (probed.kind is not ProbeKind.STARTUP)
    return ProbeStep(state, forget, verdict, probe=wanted and not too_early)


def apply_result(
    probed: ProbedContainer, state: ProbeWorkerState, result: ProbeVerdict
) -> ProbeStep:
    """Applies a probe's result. The verdict changes only once the threshold is reached."""
    run = state.run + 1 if state.last is result else 1
    state = replace(state, last=result, run=run)
    thresholds = {
        ProbeVerdict.FAILURE: probed.spec.failure_threshold or _FAILURE_THRESHOLD,
        ProbeVerdict.SUCCESS: probed.spec.success_threshold or _SUCCESS_THRESHOLD,
    }
    if run < thresholds.get(result, 0):
        return ProbeStep(state)
    if result is ProbeVerdict.FAILURE and probed.kind is not ProbeKind.READINESS:
        # The container is about to be killed: further probes would be misleading.
        state = replace(state, on_hold=True, run=0)
    return ProbeStep(state, verdict=result)


def container_status(status: PodStatus, name: str) -> ContainerStatus | None:
    """Returns the status of a main container or a sidecar, or None if there is none."""
    main = _find_status(status.container_statuses, name)
    if main is not None and main.container_id:
        return main
    return _find_status(status.init_container_statuses, name)


def _find_status(statuses: list[ContainerStatus] | None, name: str) -> ContainerStatus | None:
    return next((status for status in statuses or () if status.name == name), None)
