"""One simulated container: a plain value whose state depends on the time alone.

Times are seconds since 1970. Nothing here waits or reads a clock.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from sys import intern

from kcm.api.core_v1 import Container, Pod
from kcm.apimachinery.durations import FOREVER
from kcm.kubelet.cri import RuntimeContainerState
from kcm.kubelet.kuberuntime.labels import hash_of_image
from kcm.kubelet.kuberuntime.view import ContainerView
from kcm.kubelet.types import MINIMUM_GRACE
from kcm.simulation.scripting.behaviour import Behaviour

NAME = "simulated"  # the runtime's name, which precedes container ids
KILLED = 137  # 128 + SIGKILL


@dataclass(slots=True)
class Attempt:
    """One attempt of a container, from its creation to its exit.

    It exits at `ends` unless it is stopped before that, with `code`, `reason` and `message`. Its
    startup and readiness probes succeed from `ready` on, and its liveness probe fails from `sick`
    on.
    """

    name: str
    image: str
    number: int  # how many attempts there were before
    created: float
    started: float = FOREVER
    ready: float = FOREVER
    sick: float = FOREVER
    ends: float = FOREVER
    code: int = 0
    reason: str = "Completed"
    message: str = ""
    stopping: bool = False  # SIGTERM was sent
    again: bool = False  # it was stopped in order to restart it
    unready: bool = False  # its readiness probe fails, whatever `ready` is

    @classmethod
    def of(cls, spec: Container, number: int, now: float) -> Attempt:
        """Returns an attempt that was just created."""
        return cls(intern(spec.name), intern(spec.image or ""), number, now)

    def start(self, now: float, does: Behaviour) -> None:
        """Starts the container, which then follows its script."""
        self.started = now
        # FOREVER is one shared object, so that it takes no memory for each container.
        self.ready = now if not does.ready_after else _after(now, does.ready_after)
        self.code, self.reason, self.message = does.exit_code, does.reason, does.message
        ends = _after(now, does.run_for)
        if does.outcome == "unhealthy":
            self.sick, ends = ends, FOREVER
        self.ends = ends

    def stop(self, now: float, does: Behaviour, grace: float, hook: float = 0.0) -> None:
        """Runs a hook of that many seconds, sends SIGTERM, and SIGKILL after `grace` seconds in
        all.

        A hook that takes all of the time leaves MINIMUM_GRACE after SIGTERM. A second call can make
        the container exit earlier, but not later.
        """
        self.stopping = True
        if hook:
            now, grace = now + min(hook, grace), max(grace - hook, MINIMUM_GRACE)
        ends = now + min(does.stop_after, grace)
        if ends >= self.ends:
            return
        self.ends, self.message = ends, ""
        if does.outcome != "unhealthy":
            self.code, self.reason = 0, "Completed"
        if does.stop_after > grace:
            self.code, self.reason = KILLED, "Error"

    def exit(self, at: float, code: int, reason: str) -> None:
        """Ends the container at that time, if it runs then."""
        if self.runs(at):
            self.ends, self.code, self.reason, self.message = at, code, reason, ""

    def kill(self, now: float) -> None:
        """Sends SIGKILL, if the container runs."""
        if self.runs(now):
            self.ends, self.code, self.reason, self.message = now, KILLED, "Error", ""

    def state(self, now: float) -> RuntimeContainerState:
        """Returns the container's state at that time."""
        if self.started > now:
            return RuntimeContainerState.CREATED
        return RuntimeContainerState.RUNNING if self.ends > now else RuntimeContainerState.EXITED

    def runs(self, now: float) -> bool:
        """Reports whether the container runs at that time."""
        return self.started <= now < self.ends

    def is_ready(self, now: float) -> bool:
        """Reports whether the container runs and is ready at that time."""
        return self.runs(now) and self.ready <= now and not self.unready


def _after(now: float, wait: float) -> float:
    return FOREVER if wait == FOREVER else now + wait


def container_id(pod: Pod, name: str, number: int) -> str:
    """Returns the container's id, which changes with each restart."""
    return hashlib.sha256(f"{pod.uid}/{name}/{number}".encode()).hexdigest()


def build_view(pod: Pod, attempt: Attempt, now: float) -> ContainerView:
    """Returns the kubelet's view of the container, with times in whole seconds as in statuses."""
    state = attempt.state(now)
    ended = state is RuntimeContainerState.EXITED
    return ContainerView(
        id=container_id(pod, attempt.name, attempt.number),
        name=attempt.name,
        state=state,
        created_at=moment(attempt.created),
        started_at=moment(attempt.started) if attempt.started <= now else None,
        finished_at=moment(attempt.ends) if ended else None,
        exit_code=attempt.code if ended else 0,
        reason=attempt.reason if ended else "",
        message=attempt.message if ended else "",
        image=attempt.image,
        hash=hash_of_image(attempt.name, attempt.image),
        restart_count=attempt.number,
    )


def moment(timestamp: float) -> datetime:
    """Returns the time in whole seconds."""
    return datetime.fromtimestamp(int(timestamp), UTC)
