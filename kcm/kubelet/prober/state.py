"""Decides when a container is probed, and turns results into verdicts: pure functions.

Source: doProbe in pkg/kubelet/prober/worker.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from kcm import KUBERNETES_VERSION, errors
from kcm.api.core_v1 import Container, Pod, PodStatus, Probe
from kcm.api.core_v1.container_statuses import ContainerStatus
from kcm.api.pods.restarts import may_restart_all, restarts_after
from kcm.kubelet.status.phase import TERMINAL
from kcm.kubelet.types import strip_runtime_name

# --- The interface of probe runners, and the result of a probe.


USER_AGENT = f"kube-probe/{KUBERNETES_VERSION.rpartition('.')[0]}"


class ProbeOutcome(StrEnum):
    """The outcome of one probe. A warning counts as success and is recorded as an Event."""

    SUCCESS = "success"
    WARNING = "warning"
    FAILURE = "failure"


class ProbeError(errors.KcmError):
    """the probe could not be run"""


@dataclass(frozen=True)
class ProbeResult:
    """The outcome of one probe, and its output or the response."""

    outcome: ProbeOutcome
    output: str = ""


class ProbeRunner(Protocol):
    """Runs single probes. Thread-safe."""

    def probe(self, probed: ProbedContainer, status: PodStatus, container_id: str) -> ProbeResult:
        """Runs a probe and returns its result. Raises ProbeError if it cannot be run.

        `container_id` is the runtime's own id of the container.
        """
        ...

    def close(self) -> None:
        """Frees the connections and other resources that probes share."""
        ...


# --- Keeps the verdicts of probes on containers, and notifies the sync loop of changes.
#
# Source: pkg/kubelet/prober/results/results_manager.go, Kubernetes 1.33.


class ProbeVerdict(StrEnum):
    """The result of one kind of probe for a container, after success and failure thresholds."""

    UNKNOWN = "unknown"
    SUCCESS = "successful"
    FAILURE = "failed"


@dataclass(frozen=True)
class ProbeUpdate:
    """A change of a container's verdict. The id is the runtime's own."""

    container_id: str
    verdict: ProbeVerdict
    pod_uid: str


class ProbeResults:
    """The verdicts of one kind of probe, by container id. Thread-safe."""

    def __init__(self, on_change: Callable[[ProbeUpdate], object] = lambda _: None) -> None:
        """`on_change` is called with each change, outside of the lock. It must not block."""
        self._lock = threading.Lock()
        self._on_change = on_change
        self._verdicts: dict[str, ProbeVerdict] = {}

    def get(self, container_id: str) -> ProbeVerdict | None:
        """Returns the container's verdict, or None if there is none."""
        with self._lock:
            return self._verdicts.get(container_id)

    def passes(self, container_id: str) -> bool | None:
        """Returns whether the container passes, or None while that is unknown."""
        verdict = self.get(container_id)
        if verdict in (None, ProbeVerdict.UNKNOWN):
            return None
        return verdict is ProbeVerdict.SUCCESS

    def set(self, container_id: str, verdict: ProbeVerdict, pod: Pod) -> None:
        """Sets the container's verdict, and calls `on_change` if it is another one."""
        with self._lock:
            previous = self._verdicts.get(container_id)
            self._verdicts[container_id] = verdict
        if previous is not verdict:
            self._on_change(ProbeUpdate(container_id, verdict, pod.uid or ""))

    def remove(self, container_id: str) -> None:
        """Forgets the container."""
        with self._lock:
            self._verdicts.pop(container_id, None)


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

    def restarts_after(self, exit_code: int) -> bool:
        """Reports whether the container may be started again after an exit."""
        spec = self.pod.spec
        return restarts_after(self.container, spec, exit_code) or may_restart_all(spec)


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
        ended = container.state.terminated if container.state else None
        go_on = ended is None or probed.restarts_after(ended.exit_code)
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
