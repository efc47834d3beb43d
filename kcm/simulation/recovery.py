"""Recovers a pod's run from its status, for a simulator that has just started.

Times are in whole seconds, as in statuses. What is not in the status, such as how long a pull has
been failing, starts again.
"""

from __future__ import annotations

from sys import intern

from kcm.api.core_v1 import ContainerStateTerminated, ContainerStatus, Pod
from kcm.helpers.backoff import BackoffEntry
from kcm.kubelet.kuberuntime import results
from kcm.kubelet.status.phase import TERMINAL
from kcm.simulation.runs import PodRun, begin, spec_of
from kcm.simulation.runtime.containers import Attempt
from kcm.simulation.scripting.behaviour import Pace, behaviour_of
from kcm.simulation.scripting.scripts import PodScript
from kcm.simulation.worker import BACKOFF

_PULLS = (results.IMAGE_PULL_ERROR, results.IMAGE_PULL_BACKOFF)


def recover_run(pod: Pod, script: PodScript, now: float, pace: Pace) -> PodRun:
    """Returns the run that the pod's status describes."""
    status = pod.status
    started = status.start_time.timestamp() if status.start_time else now
    run = begin(pod, started, tuple(entry.ip for entry in status.pod_ips or ()))
    run.sandbox = bool(run.ips)
    run.looked = now
    if status.phase == "Failed" and status.reason:
        run.failure = (status.reason, status.message or "")
        run.rejected = run.over = not status.container_statuses
    if run.rejected:
        return run
    for container_status in (
        *(status.init_container_statuses or ()),
        *(status.container_statuses or ()),
        *(status.ephemeral_container_statuses or ()),
    ):
        _recover(pod, run, container_status, script, pace)
    run.over = status.phase in TERMINAL and not run.list_running(now)
    return run


def _recover(pod: Pod, run: PodRun, status: ContainerStatus, script: PodScript, pace: Pace) -> None:
    """Recovers the attempts of one container, and its back-off."""
    name, restarts = status.name, status.restart_count
    state, last = status.state, status.last_state
    running, ended = (state.running, state.terminated) if state else (None, None)
    waiting = state.waiting if state else None
    before = last.terminated if last else None
    if before is not None:
        run.add(_dead(pod, status, before, restarts - (running is not None or ended is not None)))
    if ended is not None:
        run.add(_dead(pod, status, ended, restarts))
    elif running is not None:
        begun = running.started_at.timestamp() if running.started_at else run.looked
        attempt = Attempt(intern(name), intern(status.image or ""), restarts, begun)
        attempt.start(begun, behaviour_of(pod, spec_of(pod, name), restarts, script, pace))
        if status.ready:
            attempt.ready = begun
        run.add(attempt)
    reason = (waiting.reason or "") if waiting else ""
    if reason in _PULLS:
        run.pulls = {**run.pulls, name: BackoffEntry(BACKOFF.initial, run.looked)}
    if reason in (*_PULLS, results.CRASH_LOOP) and waiting:
        run.reasons = {**run.reasons, name: (reason, waiting.message or "")}
    if restarts and (newest := run.newest(name)) is not None:
        run.crashes = {**run.crashes, name: BackoffEntry(_delay(restarts), newest.started)}


def _dead(
    pod: Pod, status: ContainerStatus, ended: ContainerStateTerminated, number: int
) -> Attempt:
    finished = ended.finished_at.timestamp() if ended.finished_at else 0.0
    begun = ended.started_at.timestamp() if ended.started_at else 0.0
    return Attempt(
        intern(status.name), intern(status.image or ""), max(number, 0), begun, begun,
        ends=finished, code=ended.exit_code, reason=ended.reason or "",
        message=ended.message or "",
    )  # fmt: skip


def _delay(restarts: int) -> float:
    """Returns the back-off in seconds after so many crashes in a row."""
    return float(min(BACKOFF.initial * 2 ** min(restarts - 1, 10), BACKOFF.maximum))
