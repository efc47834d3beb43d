"""The life of a simulated pod's containers: (pod, run, script, now) to the next run, and when.

Pure: no clock, no I/O. The rules are the kubelet's: init containers one after the
other, sidecars between them and ended last, restarts by policy with a back-off
that doubles, SIGTERM and then, at the end of the grace period, SIGKILL.

Source: pkg/kubelet/kuberuntime/kuberuntime_manager.go, pkg/kubelet/images/image_manager.go
and pkg/kubelet/kubelet.go (MaxContainerBackOff), Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from kcm.api.core_v1 import Container, Pod, Probe
from kcm.simulation import words
from kcm.simulation.behaviour import Behaviour, Pace, behaviour_of
from kcm.simulation.runs import ContainerRun, Ended, Note, Phase, PodRun
from kcm.simulation.scripts import PodScript
from kcm.simulation.values import FOREVER

FIRST_BACKOFF = 10.0  # seconds; doubles with each further end
LONGEST_BACKOFF = 300.0  # seconds
BACKOFF_FORGOTTEN = 2 * LONGEST_BACKOFF  # seconds of running after which it starts small again
RELIST = 1.0  # seconds between a container's end and what is done about it, as upstream's PLEG
PULL_FAILURE_SHOWN = 2.0  # seconds of ErrImagePull before ImagePullBackOff
DEFAULT_GRACE = 30.0  # seconds


@dataclass(frozen=True, slots=True)
class Advance:
    """What has become of a pod: its run, when to look again (seconds since 1970), what to tell."""

    run: PodRun
    due: float
    notes: tuple[Note, ...] = ()


def begin(pod: Pod, now: float, ips: tuple[str, ...] = ()) -> PodRun:
    """A pod that the node has just seen."""
    init: list[ContainerRun] = [
        ContainerRun(c.name, "sidecar" if c.restart_policy == "Always" else "init")
        for c in pod.spec.init_containers or ()
    ]
    mains = [ContainerRun(c.name, "main") for c in pod.spec.containers]
    return PodRun((*init, *mains), now, ips=ips)


def advance(pod: Pod, run: PodRun, script: PodScript, now: float, pace: Pace) -> Advance:
    """Let time pass until `now`."""
    if run.rejected:
        return Advance(run, FOREVER)
    life = _Life(pod, run, script, now, pace)
    life.pass_on()
    return Advance(life.run, life.due(), tuple(life.notes))


@dataclass(slots=True)
class _Life:
    """One call of `advance`."""

    pod: Pod
    run: PodRun
    script: PodScript
    now: float
    pace: Pace
    notes: list[Note] = field(default_factory=list)

    def pass_on(self) -> None:
        for container in self.run.containers:
            self._elapse(container)
        self._check_deadline()
        if self._stopped_from_outside():
            self._stop_all()
        elif self._mains_are_over():
            self._stop_sidecars()
        else:
            self._start_what_may()

    def due(self) -> float:
        """When something happens next."""
        times = [self._deadline()]
        for c in self.run.containers:
            times += [c.until, c.probe_at]
            if c.phase is Phase.RUNNING and c.ready_at > self.now:
                times.append(c.ready_at)
        return min(times)

    # --- what happens by itself

    def _elapse(self, c: ContainerRun) -> None:
        while self.now >= c.until:
            c = _STEPS[c.phase](self, c)
            self.run = self.run.put(c)
        if c.phase is Phase.RUNNING and self.now >= c.probe_at:
            probe = self._spec(c).readiness_probe
            self._tell(c, "Warning", "Unhealthy", words.probe_failed("Readiness", probe))
            self.run = self.run.put(replace(c, probe_at=self.now + _period(probe)))

    def _created(self, c: ContainerRun) -> ContainerRun:
        self.run = replace(self.run, sandbox=True)
        if self._behaviour(c).outcome == "image-pull-error":
            return self._pull_failed(c)
        return self._running(c)

    def _pull_failed(self, c: ContainerRun) -> ContainerRun:
        image = self._spec(c).image or ""
        why = self._behaviour(c).message or words.NO_SUCH_IMAGE
        self._tell(c, "Normal", "Pulling", f'Pulling image "{image}"')
        self._tell(c, "Warning", "Failed", f'Failed to pull image "{image}": {why}')
        self._tell(c, "Warning", "Failed", "Error: ErrImagePull")
        until = self.now + PULL_FAILURE_SHOWN
        return replace(c, phase=Phase.PULL_FAILED, until=until, pulls=c.pulls + 1)

    def _pull_backoff(self, c: ContainerRun) -> ContainerRun:
        image = self._spec(c).image or ""
        self._tell(c, "Normal", "BackOff", f'Back-off pulling image "{image}"')
        self._tell(c, "Warning", "Failed", "Error: ImagePullBackOff")
        wait = min(FIRST_BACKOFF * 2 ** min(c.pulls - 1, 10), LONGEST_BACKOFF)
        return replace(c, phase=Phase.PULL_BACKOFF, until=self.now + wait - PULL_FAILURE_SHOWN)

    def _running(self, c: ContainerRun) -> ContainerRun:
        does, spec = self._behaviour(c), self._spec(c)
        for note in words.started(spec):
            self._tell(c, "Normal", *note)
        fails_probe = does.outcome == "never-ready"
        return replace(
            c,
            phase=Phase.RUNNING,
            until=self.now + does.run_for,
            started=self.now,
            ready_at=FOREVER if fails_probe else self.now + does.ready_after,
            probe_at=self.now + _period(spec.readiness_probe) if fails_probe else FOREVER,
            pulls=0,
            killed=False,
        )

    def _exited(self, c: ContainerRun) -> ContainerRun:
        does = self._behaviour(c)
        if c.killed:
            in_time = does.stop_after < FOREVER
            return self._end(c, 0 if in_time else 137, "Completed" if in_time else "Error")
        if does.outcome == "unhealthy":
            probe = self._spec(c).liveness_probe
            self._tell(c, "Warning", "Unhealthy", words.probe_failed("Liveness", probe))
            text = f"Container {c.name} failed liveness probe, will be restarted"
            self._tell(c, "Normal", "Killing", text)
        return self._end(c, does.exit_code, does.reason, does.message)

    def _end(self, c: ContainerRun, code: int, reason: str, message: str = "") -> ContainerRun:
        ended = Ended(code, reason, c.started, self.now, message, words.container_id(self.pod, c))
        again = not c.killed and not self.run.failure and starts_again(self.pod, c, code)
        return replace(
            c,
            phase=Phase.EXITED,
            until=self.now + RELIST if again else FOREVER,
            ended=ended,
            ready_at=FOREVER,
            probe_at=FOREVER,
            delay=0.0 if self.now - c.started >= BACKOFF_FORGOTTEN else c.delay,
        )

    def _decide(self, c: ContainerRun) -> ContainerRun:
        """An ended container that is to run again: at once the first time, then after a pause."""
        if not c.delay or c.ended is None:
            return self._restarted(replace(c, delay=0.0))
        until = max(c.ended.finished + c.delay, self.now)
        text = f"Back-off restarting failed container {c.name} in pod {words.described(self.pod)}"
        self._tell(c, "Warning", "BackOff", text)
        return replace(c, phase=Phase.BACKOFF, until=until)

    def _restarted(self, c: ContainerRun) -> ContainerRun:
        delay = min(2 * c.delay, LONGEST_BACKOFF) or FIRST_BACKOFF
        return self._running(replace(c, restarts=c.restarts + 1, delay=delay))

    # --- starting

    def _start_what_may(self) -> None:
        for c in self.run.of("init", "sidecar"):
            if c.phase is Phase.WAITING:
                self._create(c)
                return
            if not self._lets_go_on(c):
                return
        for c in self.run.of("main"):
            if c.phase is Phase.WAITING:
                self._create(c)

    def _lets_go_on(self, c: ContainerRun) -> bool:
        if c.sort == "init":
            return c.gone and c.ended is not None and c.ended.exit_code == 0
        has_run = any(main.phase is not Phase.WAITING for main in self.run.of("main"))
        return has_run or words.is_started(self._spec(c), c, self.now)

    def _create(self, c: ContainerRun) -> None:
        does = self._behaviour(c)
        until = FOREVER if does.outcome == "never-start" else self.now + does.start_after
        c = replace(c, phase=Phase.CREATING, until=until)
        self.run = self.run.put(c)
        self._elapse(c)
        if until <= self.now:
            self._start_what_may()

    # --- stopping

    def _stopped_from_outside(self) -> bool:
        finished = self.pod.status.phase in ("Succeeded", "Failed")
        return self.pod.deleting or self.run.failure is not None or finished

    def _mains_are_over(self) -> bool:
        failed = [c for c in self.run.of("init") if c.gone and c.ended and c.ended.exit_code]
        return bool(failed) or all(c.gone for c in self.run.of("main"))

    def _stop_all(self) -> None:
        for c in self.run.of("main", "init"):
            self._stop(c)
        if all(c.gone for c in self.run.of("main", "init")):
            self._stop_sidecars()

    def _stop_sidecars(self) -> None:
        """From the last to the first, each once the one behind it has ended."""
        for c in reversed(self.run.of("sidecar")):
            if not c.gone:
                self._stop(c)
                return

    def _stop(self, c: ContainerRun) -> None:
        if c.gone:
            return
        if c.phase is not Phase.RUNNING:
            ended = c.ended or Ended(137, "ContainerStatusUnknown", 0.0, 0.0, words.NOT_LOCATED)
            self.run = self.run.put(replace(c, phase=Phase.EXITED, until=FOREVER, ended=ended))
            return
        if not c.killed:
            self._tell(c, "Normal", "Killing", f"Stopping container {c.name}")
            until = self.now + self._behaviour(c).stop_after
            c = replace(c, killed=True, until=min(until, self.now + self._grace()))
        if self.pod.metadata.deletion_timestamp is not None:
            # To the second and cut off, so that the grace period ends within the next one.
            limit = self.pod.metadata.deletion_timestamp.timestamp() + 1
            c = replace(c, until=min(c.until, max(limit, self.now)))
        self.run = self.run.put(c)

    def _grace(self) -> float:
        found = self.pod.metadata.deletion_grace_period_seconds
        if found is None:
            found = self.pod.spec.termination_grace_period_seconds
        return DEFAULT_GRACE if found is None else float(found)

    def _check_deadline(self) -> None:
        if self.now >= self._deadline() and not self.run.over:
            reason, message = words.DEADLINE_EXCEEDED
            self.notes.append(Note("Normal", reason, message))
            self.run = replace(self.run, failure=words.DEADLINE_EXCEEDED)

    def _deadline(self) -> float:
        limit = self.pod.spec.active_deadline_seconds
        if limit is None or self.run.failure or self.run.over:
            return FOREVER
        return self.run.started + limit

    # --- look-ups

    def _behaviour(self, c: ContainerRun) -> Behaviour:
        return behaviour_of(self.pod, self._spec(c), c, self.script, self.pace)

    def _spec(self, c: ContainerRun) -> Container:
        return spec_of(self.pod, c.name)

    def _tell(self, c: ContainerRun, type_: str, reason: str, message: str) -> None:
        self.notes.append(words.note(c, type_, reason, message))


_STEPS: Mapping[Phase, Callable[[_Life, ContainerRun], ContainerRun]] = {
    Phase.CREATING: _Life._created,
    Phase.PULL_FAILED: _Life._pull_backoff,
    Phase.PULL_BACKOFF: _Life._pull_failed,
    Phase.RUNNING: _Life._exited,
    Phase.EXITED: _Life._decide,
    Phase.BACKOFF: _Life._restarted,
}


def starts_again(pod: Pod, c: ContainerRun, code: int) -> bool:
    """Whether a container that ended with `code` runs again by the pod's restart policy."""
    if pod.deleting:
        return False
    policy = pod.spec.restart_policy or "Always"
    if c.sort == "sidecar" or (c.sort == "main" and policy == "Always"):
        return True
    return policy != "Never" and code != 0


def spec_of(pod: Pod, name: str) -> Container:
    """The container of a name. Raises KeyError."""
    containers: list[Container] = [*pod.spec.containers, *(pod.spec.init_containers or ())]
    for container in containers:
        if container.name == name:
            return container
    raise KeyError(name)


def _period(probe: Probe | None) -> float:
    return float((probe and probe.period_seconds) or 10)
