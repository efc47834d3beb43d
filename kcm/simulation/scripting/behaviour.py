"""The behavior of one attempt of a container: its script, completed with defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kcm.api.core_v1 import Container, EphemeralContainer, Pod
from kcm.apimachinery.durations import FOREVER
from kcm.helpers.pods import is_sidecar
from kcm.simulation.scripting.jitter import spread
from kcm.simulation.scripting.scripts import (
    FAILURES_ANNOTATION,
    INDEX_ANNOTATION,
    ContainerScript,
    PodScript,
)

_SHORT = 0.5  # seconds that init containers run, and containers that crash
# A kubelet looks at its containers in rounds, so that many are seen to run at the same time. Here,
# too, so that a thousand pods make ten changes of their owner's status, and not hundreds.
_ROUNDS = 10
_MOST_DIGITS = 10  # of a Job's index, or of its failures


@dataclass(frozen=True, slots=True)
class Pace:
    """How long each step of a container takes by default, in seconds."""

    start_after: float = 0.3  # creating a container
    start_jitter: float = 0.2  # the most that is added to it
    run_for: float = 1.0  # until the exit of containers that exit
    stop_after: float = 0.5  # from SIGTERM to the exit


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The behavior of one attempt of a container.

    `start_after` is the seconds that its creation takes, `ready_after` those from its start until
    it is ready, `run_for` those from its start until its outcome, and `stop_after` those from
    SIGTERM to its exit.
    """

    outcome: str
    start_after: float
    ready_after: float
    run_for: float
    stop_after: float
    exit_code: int = 0
    reason: str = "Completed"
    message: str = ""


def seconds_of_hook(spec: Container) -> float:
    """Returns for how long a container's preStop hook sleeps. Other hooks do nothing here."""
    hook = spec.lifecycle.pre_stop if spec.lifecycle else None
    return float(hook.sleep.seconds) if hook and hook.sleep else 0.0


def behaviour_of(
    pod: Pod, spec: Container, number: int, script: PodScript, pace: Pace
) -> Behaviour:
    """Returns the behavior of a container's attempt, after `number` earlier attempts."""
    ordinary = any(container.name == spec.name for container in pod.spec.containers)
    own = script.of(spec.name, ordinary=ordinary)
    outcome = own.outcome or _default_outcome(pod, spec, own, ordinary=ordinary)
    jitter = own.jitter * spread(pod.uid, spec.name, number) if own.jitter else 0.0
    code = _exit_code(pod, number, own, outcome)
    start = own.start_after
    if start is None:
        round_number = int(_ROUNDS * spread(pod.uid, spec.name))
        start = pace.start_after + pace.start_jitter * round_number / _ROUNDS
    passing = not (ordinary or is_sidecar(spec))  # an init container, which is never ready
    short = passing or outcome == "crash"
    ready = FOREVER if passing or outcome == "never-ready" else _ready_after(spec, own, jitter)
    return Behaviour(
        outcome=outcome,
        start_after=FOREVER if outcome == "never-start" else start + jitter,
        ready_after=ready,
        run_for=_run_for(own, outcome, _SHORT if short else pace.run_for) + jitter,
        stop_after=pace.stop_after if own.stop_after is None else own.stop_after,
        exit_code=code,
        reason="OOMKilled" if outcome == "oom" else "Error" if code else "Completed",
        message=own.message,
    )


def _default_outcome(pod: Pod, spec: Container, own: ContainerScript, *, ordinary: bool) -> str:
    if own.exit_codes or own.exit_codes_by_index:
        return "fail"
    if isinstance(spec, EphemeralContainer):
        return "run"
    if not ordinary:
        return "run" if is_sidecar(spec) else "succeed"
    restarts = (pod.spec.restart_policy or "Always") == "Always"
    return "run" if restarts and own.run_for is None else "succeed"


def _run_for(own: ContainerScript, outcome: str, usual: float) -> float:
    if outcome in ("run", "never-ready"):
        return FOREVER
    return usual if own.run_for is None else own.run_for


def _ready_after(spec: Container, own: ContainerScript, jitter: float) -> float:
    if own.ready_after is not None:
        return own.ready_after + jitter
    probes = (spec.startup_probe, spec.readiness_probe)
    return float(max((p.initial_delay_seconds or 0 for p in probes if p), default=0))


def _exit_code(pod: Pod, number: int, own: ContainerScript, outcome: str) -> int:
    if outcome in ("oom", "unhealthy"):
        return 137
    if outcome not in ("fail", "crash"):
        return 0
    annotations = pod.annotations
    index = _number(annotations, INDEX_ANNOTATION)
    codes = own.exit_codes_by_index.get(-1 if index is None else index)
    if codes is None:
        codes = own.exit_codes or ((0,) if own.exit_codes_by_index else (1,))
    attempt = number + (_number(annotations, FAILURES_ANNOTATION) or 0)
    return codes[min(attempt, len(codes) - 1)]


def _number(annotations: Mapping[str, str], name: str) -> int | None:
    text = annotations.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None
