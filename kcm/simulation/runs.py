"""The run of a pod: what the kubelet of a simulated node remembers.

Times are seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import intern
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from kcm.api.core_v1 import Container, Pod
from kcm.helpers.backoff import BackoffEntry
from kcm.helpers.pods import is_sidecar, list_containers
from kcm.kubelet.cri import Sandbox, SandboxConfig, SandboxState
from kcm.kubelet.kuberuntime.view import PodView
from kcm.kubelet.resizing import Allocation, Refusal
from kcm.simulation.programs.process import PodPrograms
from kcm.simulation.runtime.containers import Attempt, build_view, moment

# The empty mapping that most runs share for most of their fields, which saves memory.
NOTHING: Mapping[str, Any] = MappingProxyType({})


def _empty() -> Mapping[str, Any]:
    return NOTHING


_CONFIGS = {net: SandboxConfig("", "", "", host_network=net) for net in (False, True)}


@dataclass(slots=True)
class PodRun:
    """The state of one pod on its node, by container name where it is a mapping.

    Mappings are replaced instead of changed.
    """

    seen: float  # when the kubelet first saw the pod (status.startTime)
    members: int  # how many containers run at the same time
    inits: tuple[str, ...] = ()  # names of init containers, sidecars among them
    ips: tuple[str, ...] = ()
    sandbox: bool = False
    attempts: tuple[Attempt, ...] = ()  # the newest first
    making: Mapping[str, float] = field(
        default_factory=_empty
    )  # until when the container is being pulled and created
    crashes: Mapping[str, BackoffEntry] = field(default_factory=_empty)
    pulls: Mapping[str, BackoffEntry] = field(default_factory=_empty)  # failed pulls
    reasons: Mapping[str, tuple[str, str]] = field(
        default_factory=_empty
    )  # why the container waits, as reason and message
    looked: float = 0.0  # when the run was last advanced
    terminating_at: float | None = None  # when the pod's termination began
    failure: tuple[str, str] | None = None  # reason and message, if the pod as a whole has failed
    rejected: bool = False  # the node did not admit the pod
    over: bool = False  # no container runs or will run
    refusal: Refusal | None = None  # why a resize waits
    held: Allocation = field(default_factory=_empty)  # what the containers have meanwhile
    programs: PodPrograms | None = None  # of nodes whose containers run programs

    def newest(self, name: str) -> Attempt | None:
        """Returns the newest attempt of the container with that name, None if there is none."""
        return next((attempt for attempt in self.attempts if attempt.name == name), None)

    def before(self, name: str) -> Attempt | None:
        """Returns the attempt before the newest one of the container with that name, or None."""
        same_name = [attempt for attempt in self.attempts if attempt.name == name]
        return same_name[1] if len(same_name) > 1 else None

    def add(self, attempt: Attempt) -> None:
        """Adds an attempt. Of the earlier ones with its name, only the newest is kept."""
        before = self.newest(attempt.name)
        kept = (a for a in self.attempts if a.name != attempt.name or a is before)
        self.attempts = (attempt, *kept)

    def list_running(self, now: float) -> list[Attempt]:
        """Returns the running attempts."""
        return [attempt for attempt in self.attempts if attempt.runs(now)]

    def is_ready(self, now: float) -> bool:
        """Reports whether all main containers and sidecars are ready."""
        return sum(attempt.is_ready(now) for attempt in self.attempts) >= self.members

    def view(self, pod: Pod, now: float) -> PodView:
        """Returns the view of the pod that a container runtime would give."""
        ready = self.sandbox and not self.over
        state = SandboxState.READY if ready else SandboxState.NOT_READY
        host = bool(pod.spec.host_network)
        address = self.ips[0] if self.ips else "host" if host else ""
        box = Sandbox("", _CONFIGS[host], state, moment(self.seen), address if ready else "")
        return PodView(
            pod.uid or "",
            ips=self.ips if ready else (),
            containers=[build_view(pod, attempt, now) for attempt in self.attempts],
            sandboxes=[box] if self.sandbox else [],
        )


class PodEvent(NamedTuple):
    """An Event to record about a pod, or about its container called `container`."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    container: str = ""


def begin(pod: Pod, now: float, ips: tuple[str, ...] = ()) -> PodRun:
    """Returns the run of a pod that the node sees for the first time."""
    inits = pod.spec.init_containers or []
    members = len(pod.spec.containers) + sum(is_sidecar(container) for container in inits)
    return PodRun(now, members, tuple(intern(container.name) for container in inits), ips)


def spec_of(pod: Pod, name: str) -> Container:
    """Returns the container's spec in the pod. Raises KeyError."""
    for container in list_containers(pod.spec):
        if container.name == name:
            return container
    raise KeyError(name)
