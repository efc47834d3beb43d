"""One simulated container: plain values, from which the time alone makes a state.

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
from kcm.simulated.behaviour import Behaviour

NAME = "simulated"  # the runtime's, in front of ids
KILLED = 137  # 128 + SIGKILL


@dataclass(slots=True)
class Attempt:
    """One run of a container, from its creation to its end.

    `ends` is when it ends if nobody stops it before; `code`, `reason` and `message` tell how. From
    `ready` on its probes succeed, from `sick` on its liveness probe fails.
    """

    name: str
    image: str
    number: int  # how often it was started before
    created: float
    started: float = FOREVER
    ready: float = FOREVER
    sick: float = FOREVER
    ends: float = FOREVER
    code: int = 0
    reason: str = "Completed"
    message: str = ""
    stopping: bool = False  # SIGTERM was sent
    again: bool = False  # stopped to be started anew

    @classmethod
    def of(cls, spec: Container, number: int, now: float) -> Attempt:
        """Returns a container that was just created."""
        return cls(intern(spec.name), intern(spec.image or ""), number, now)

    def start(self, now: float, does: Behaviour) -> None:
        """Starts the container; it does as scripted."""
        self.started = now
        # What never comes is one and the same object, and costs a container nothing.
        self.ready = now if not does.ready_after else _after(now, does.ready_after)
        self.code, self.reason, self.message = does.exit_code, does.reason, does.message
        ends = _after(now, does.run_for)
        if does.outcome == "unhealthy":
            self.sick, ends = ends, FOREVER
        self.ends = ends

    def stop(self, now: float, does: Behaviour, grace: float) -> None:
        """Sends SIGTERM, and SIGKILL after `grace` seconds. A second call can only shorten that."""
        self.stopping = True
        ends = now + min(does.stop_after, grace)
        if ends >= self.ends:
            return
        self.ends, self.message = ends, ""
        if does.outcome != "unhealthy":
            self.code, self.reason = 0, "Completed"
        if does.stop_after > grace:
            self.code, self.reason = KILLED, "Error"

    def kill(self, now: float) -> None:
        """Sends SIGKILL."""
        if self.runs(now):
            self.ends, self.code, self.reason, self.message = now, KILLED, "Error", ""

    def state(self, now: float) -> RuntimeContainerState:
        """Returns the container's state."""
        if self.started > now:
            return RuntimeContainerState.CREATED
        return RuntimeContainerState.RUNNING if self.ends > now else RuntimeContainerState.EXITED

    def runs(self, now: float) -> bool:
        """Reports whether the container has started and not ended."""
        return self.started <= now < self.ends

    def is_ready(self, now: float) -> bool:
        """Reports whether the container runs and its readiness probe, if any, succeeds."""
        return self.started <= now < self.ends and self.ready <= now


def _after(now: float, wait: float) -> float:
    return FOREVER if wait == FOREVER else now + wait


def container_id(pod: Pod, name: str, number: int) -> str:
    """Returns the container's id, which is another one after each restart."""
    return hashlib.sha256(f"{pod.uid}/{name}/{number}".encode()).hexdigest()


def build_view(pod: Pod, attempt: Attempt, now: float) -> ContainerView:
    """Returns the container as the kubelet sees it, with times to the second as in statuses."""
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
    """Returns the time to the second."""
    return datetime.fromtimestamp(int(timestamp), UTC)
