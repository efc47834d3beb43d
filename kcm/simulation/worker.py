"""Advances a pod on a simulated node: what the kubelet does now, and when it has to act again.

The decisions are those of kcm.kubelet: which containers start and are killed, how long crashed
containers and failed pulls wait, in which order containers are killed. Where a kubelet waits in a
thread, this returns the time at which to call again. There is no clock and no I/O: `advance`
changes the run that it is given.

Source: SyncPod in pkg/kubelet/kuberuntime/kuberuntime_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from kcm.api.core_v1 import Container, Pod, Probe
from kcm.apimachinery.durations import FOREVER
from kcm.helpers.backoff import BackoffPolicy
from kcm.helpers.pods import sidecar_place
from kcm.kubelet.kuberuntime import messages, results
from kcm.kubelet.kuberuntime.actions import ContainerKill, compute_pod_actions
from kcm.kubelet.pod_workers import active_deadline
from kcm.kubelet.status.phase import TERMINAL
from kcm.kubelet.types import MINIMUM_GRACE, termination_grace_period
from kcm.simulation.runs import NOTHING, PodEvent, PodRun, spec_of
from kcm.simulation.runtime import probes
from kcm.simulation.runtime.containers import Attempt, moment
from kcm.simulation.scripting import images
from kcm.simulation.scripting.behaviour import Behaviour, Pace, behaviour_of, seconds_of_hook
from kcm.simulation.scripting.scripts import ContainerScript, PodScript

RELIST = 1.0  # seconds until a container's exit is noticed, as with PLEG
PULL_FAILURE_SHOWN = 2.0  # seconds of ErrImagePull before ImagePullBackOff
CONFIG_RETRY = 5.0  # seconds after a container could not be created
BACKOFF = BackoffPolicy()
_PERIOD = 10.0  # seconds between probes
V = TypeVar("V")


@dataclass(slots=True)
class Progress:
    """The result of advancing a pod.

    `due` is the time at which to advance it again, in seconds since 1970, and `events` are to be
    recorded.
    """

    due: float
    events: list[PodEvent]


def advance(
    pod: Pod,
    run: PodRun,
    script: PodScript,
    now: float,
    pace: Pace,
    *,
    held: bool = False,
    resized: Sequence[str] = (),
) -> Progress:
    """Advances the run to `now`. A run that is `held` starts no container.

    `resized` are containers that are restarted because they get other resources.
    """
    if run.over:
        return Progress(FOREVER, [])
    worker = _PodAdvance(pod, run, script, now, pace)
    worker.restart(resized)
    worker.work(held=held)
    run.looked = now
    return Progress(FOREVER if run.over else worker.due(), worker.events)


@dataclass(slots=True)
class _PodAdvance:
    """One call of `advance`."""

    pod: Pod
    run: PodRun
    script: PodScript
    now: float
    pace: Pace
    events: list[PodEvent] = field(default_factory=list)
    looks: list[float] = field(default_factory=list)
    started: bool = False

    def work(self, *, held: bool) -> None:
        self._check_deadline()
        self._follow_programs(self.run.attempts)
        self._follow_incidents(self.run.attempts)
        if not held and not self._must_terminate():
            made = [name for name, until in self.run.making.items() if until <= self.now]
            for name in made:
                self._make(spec_of(self.pod, name))
            self._sync()
        if self._must_terminate():
            self._stop_all()
        self._record_probe_failures()

    def restart(self, names: Sequence[str]) -> None:
        """Kills running containers that are to start again with other resources."""
        for name in names:
            newest = self.run.newest(name)
            if newest is not None and newest.runs(self.now):
                text = f"Container {name} resize requires restart"
                self._kill(ContainerKill(spec_of(self.pod, name), "", text), again=True)

    def due(self) -> float:
        """Returns when the pod has to be advanced again."""
        run, now = self.run, self.now
        times = [*self.looks, *run.making.values()]
        end = self._deadline()
        if end is not None and not run.failure:
            times.append(end)
        for attempt in run.list_running(now):
            times += [at for at in (attempt.ends, attempt.ready, attempt.sick) if at > now]
        return min(times, default=FOREVER)

    def _follow_incidents(self, attempts: Sequence[Attempt]) -> None:
        """Ends started containers and sets their readiness, as annotations say."""
        for attempt in attempts:
            own = self._script_of(attempt.name)
            if own.exit is not None:
                attempt.exit(own.exit.at, own.exit.code, own.exit.reason)
            attempt.unready = own.ready is False
            if own.ready:
                attempt.ready = min(attempt.ready, self.now)

    def _follow_programs(self, attempts: Sequence[Attempt]) -> None:
        """Lets the programs of running containers go on, and ends containers whose programs end."""
        programs = self.run.programs
        if programs is None:
            return
        for attempt in attempts:
            does = self._behaviour(spec_of(self.pod, attempt.name), attempt.number)
            own, end = self._script_of(attempt.name), attempt.started + does.run_for
            self.looks.append(programs.follow(self.pod, attempt, own, self.now, end))

    def _script_of(self, name: str) -> ContainerScript:
        ordinary = any(container.name == name for container in self.pod.spec.containers)
        return self.script.of(name, ordinary=ordinary)

    # --- starting containers

    def _sync(self) -> None:
        """Starts and kills containers, until nothing more has to be done at this time."""
        again = True
        while again:
            again = self._sync_once() and self.run.terminating_at is None

    def _sync_once(self) -> bool:
        """Starts and kills containers once; returns whether any was started."""
        self.started = False
        run, pod = self.run, self.pod
        view = run.view(pod, self.now)
        current = {
            container.id: attempt
            for container, attempt in zip(view.containers, run.attempts, strict=True)
        }
        actions = compute_pod_actions(pod, view, probes.health(current, self.now))
        if actions.kill_pod and not actions.create_sandbox:
            run.terminating_at = self.now
            return False
        inits, ephemeral = pod.spec.init_containers or [], pod.spec.ephemeral_containers or []
        wanted: list[Container] = [ephemeral[index] for index in actions.ephemeral_to_start]
        wanted += [inits[index] for index in actions.init_to_start]
        wanted += [pod.spec.containers[index] for index in actions.to_start]
        for kill in actions.to_kill:
            self._kill(kill, again=kill.container in wanted)
        stopped = [
            attempt.name for attempt in run.attempts if attempt.again and not attempt.runs(self.now)
        ]
        wanted += [spec_of(pod, name) for name in stopped if all(c.name != name for c in wanted)]
        for spec in wanted:
            self._start(spec)
        return self.started

    def _start(self, spec: Container) -> None:
        """Starts a container, unless it is being created or runs, or has to wait."""
        name, run = spec.name, self.run
        newest = run.newest(name)
        if name in run.making or (newest is not None and newest.runs(self.now)):
            return
        if newest is not None and self._do_backoff(name, newest):
            return
        if name in run.pulls and self._is_pull_waiting(spec):
            return
        if newest is None and name not in run.pulls:
            delay = self._behaviour(spec, 0).start_after
            if delay > 0:
                run.making = {**run.making, name: self.now + delay}
                return
        self._make(spec)

    def _do_backoff(self, name: str, dead: Attempt) -> bool:
        """Returns whether a container waits in back-off after its exit.

        If it does not, counts its exit, so that the next one makes it wait.
        """
        run, since = self.run, dead.ends
        if dead.again:
            # A sync that kills a container also restarts it, and only knows its earlier exits.
            before = run.before(name)
            dead.again = False
            if before is None:
                return False
            since = before.ends
        elif self.now < since + RELIST:
            self.looks.append(since + RELIST)
            return True
        wait = run.crashes.get(name)
        if wait is None or not BACKOFF.remaining(wait, since, self.now):
            run.crashes = {**run.crashes, name: BACKOFF.next(wait, since, self.now)}
            return False
        result = results.build_crash_loop_result(self.pod, name, wait.delay)
        if run.reasons.get(name) != (result.reason, result.message):
            self._record(name, "Warning", "BackOff", messages.build_restart_delayed(self.pod, name))
            self._wait(result)
        self.looks.append(since + wait.delay)
        return True

    def _is_pull_waiting(self, spec: Container) -> bool:
        """Returns whether the container waits in back-off after a failed pull."""
        name, run, image = spec.name, self.run, spec.image or ""
        pull = run.pulls[name]
        if not BACKOFF.remaining(pull, pull.last_update, self.now):
            return False
        self.looks.append(pull.last_update + pull.delay)
        shown = pull.last_update + PULL_FAILURE_SHOWN
        reason, why = run.reasons.get(name, ("", ""))
        if self.now < shown:
            self.looks.append(shown)
        elif reason != results.IMAGE_PULL_BACKOFF:
            self._record(name, "Normal", "BackOff", messages.build_pull_delayed(image))
            self._record(
                name, "Warning", "Failed", messages.build_error(results.IMAGE_PULL_BACKOFF)
            )
            self._wait(results.build_pull_backoff_result(name, image, why or images.NOT_FOUND))
        return True

    def _make(self, spec: Container) -> None:
        """Pulls, creates and starts a container, or records that its pull failed."""
        name, run = spec.name, self.run
        run.sandbox = True
        run.making = _without(run.making, name)
        newest = run.newest(name)
        number = newest.number + 1 if newest else 0
        does = self._behaviour(spec, number)
        if does.outcome == "image-pull-error":
            self._fail_pull(spec, does)
            return
        image = spec.image or ""
        if spec.image_pull_policy == "Always":
            self._record(name, "Normal", "Pulling", messages.build_pulling(image))
            text = messages.build_pulled(image, images.TOOK, images.size_of(image))
        else:
            text = messages.build_image_present(image)
        self._record(name, "Normal", "Pulled", text)
        if run.programs is not None:
            own = self._script_of(name)
            if why := run.programs.prepare(self.pod, spec, own, number, self.now):
                self._fail_creation(spec, why)
                return
        self._record(name, "Normal", "Created", messages.build_created(name))
        self._record(name, "Normal", "Started", messages.build_started(name))
        attempt = Attempt.of(spec, number, self.now)
        attempt.start(self.now, does)
        self._follow_programs([attempt])
        self._follow_incidents([attempt])
        run.add(attempt)
        run.reasons, run.pulls = _without(run.reasons, name), _without(run.pulls, name)
        self.started = True

    def _fail_creation(self, spec: Container, why: str) -> None:
        """Records that a container cannot be created, which is tried again."""
        self._record(spec.name, "Warning", "Failed", messages.build_error(why))
        self._wait(results.StartResult(spec.name, results.CONFIG_ERROR, why))
        self.run.making = {**self.run.making, spec.name: self.now + CONFIG_RETRY}

    def _fail_pull(self, spec: Container, does: Behaviour) -> None:
        name, run, image = spec.name, self.run, spec.image or ""
        why = does.message or images.NOT_FOUND
        self._record(name, "Normal", "Pulling", messages.build_pulling(image))
        self._record(name, "Warning", "Failed", messages.build_pull_failed(image, why))
        self._record(name, "Warning", "Failed", messages.build_error(results.IMAGE_PULL_ERROR))
        wait = BACKOFF.next(run.pulls.get(name), self.now, self.now)
        run.pulls = {**run.pulls, name: wait}
        self._wait(results.StartResult(name, results.IMAGE_PULL_ERROR, why))
        self.looks.append(self.now + PULL_FAILURE_SHOWN)

    def _wait(self, result: results.StartResult) -> None:
        reason = (result.reason, result.message)
        self.run.reasons = {**self.run.reasons, result.container: reason}

    # --- killing containers

    def _must_terminate(self) -> bool:
        pod, run = self.pod, self.run
        return (
            run.terminating_at is not None
            or run.failure is not None
            or pod.deleting
            or pod.status.phase in TERMINAL
        )

    def _stop_all(self) -> None:
        """Stops all containers: sidecars after the others, the last one first."""
        run, now = self.run, self.now
        run.making = NOTHING
        if run.terminating_at is None:
            run.terminating_at = now
        grace = termination_grace_period(self.pod)
        while running := run.list_running(now):
            places = {attempt.name: sidecar_place(self.pod, attempt.name) for attempt in running}
            ordinary = [attempt for attempt in running if places[attempt.name] is None]
            last = max(running, key=lambda attempt: places[attempt.name] or 0)
            left = grace if ordinary else run.terminating_at + grace - now
            for attempt in ordinary or [last]:
                self._stop(attempt, left, messages.build_stopping(attempt.name))
            if any(attempt.runs(now) for attempt in ordinary or [last]):
                return
        run.over = True

    def _kill(self, kill: ContainerKill, *, again: bool) -> None:
        newest = self.run.newest(kill.container.name)
        if newest is None or newest.stopping:
            return
        probe = kill.container.liveness_probe
        grace: float = termination_grace_period(self.pod)
        if kill.reason == "LivenessProbe":
            self._record(
                newest.name, "Warning", "Unhealthy", probes.build_failure_message("Liveness", probe)
            )
            own = probe.termination_grace_period_seconds if probe else None
            grace = grace if own is None else own
        newest.again = again
        self._stop(newest, grace, kill.message)

    def _stop(self, attempt: Attempt, grace: float, message: str) -> None:
        if not attempt.stopping:
            self._record(attempt.name, "Normal", "Killing", message)
        spec = spec_of(self.pod, attempt.name)
        does = self._behaviour(spec, attempt.number)
        attempt.stop(self.now, does, max(grace, MINIMUM_GRACE), seconds_of_hook(spec))

    def _deadline(self) -> float | None:
        end = active_deadline.deadline_of(self.pod, moment(self.run.seen))
        return end.timestamp() if end is not None else None

    def _check_deadline(self) -> None:
        end = self._deadline()
        if end is None or self.now < end or self.run.failure or self._must_terminate():
            return
        self._record("", "Normal", active_deadline.REASON, active_deadline.MESSAGE)
        self.run.failure = (active_deadline.REASON, active_deadline.MESSAGE)

    # --- probes and Events

    def _record_probe_failures(self) -> None:
        """Records an Event for each failure of a readiness probe since the last call."""
        for attempt in self.run.list_running(self.now):
            if attempt.ready < FOREVER and not attempt.unready:
                continue
            spec = spec_of(self.pod, attempt.name)
            outcome = self._behaviour(spec, attempt.number).outcome
            if outcome != "never-ready" and not attempt.unready:
                continue
            probe = spec.readiness_probe
            period = _period(probe)
            made = _count_probes(attempt.started, self.now, period)
            if made > _count_probes(attempt.started, self.run.looked, period):
                text = probes.build_failure_message("Readiness", probe)
                self._record(attempt.name, "Warning", "Unhealthy", text)
            self.looks.append(attempt.started + (made + 1) * period)

    def _behaviour(self, spec: Container, number: int) -> Behaviour:
        return behaviour_of(self.pod, spec, number, self.script, self.pace)

    def _record(
        self, container: str, type_: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        self.events.append(PodEvent(type_, reason, message, container))


def _count_probes(started: float, now: float, period: float) -> int:
    """Returns how many probes there were until `now`."""
    return max(int((now - started) / period + 1e-3), 0)


def _period(probe: Probe | None) -> float:
    return float((probe and probe.period_seconds) or _PERIOD)


def _without(mapping: Mapping[str, V], name: str) -> Mapping[str, V]:
    if name not in mapping:
        return mapping
    return {key: value for key, value in mapping.items() if key != name} or NOTHING
