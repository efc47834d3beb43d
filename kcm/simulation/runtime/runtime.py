"""The simulated runtime: implements cri.Runtime, and the image service of its images.

Guarantees: creating a container (`start-after`) and stopping one take their time by the clock, in
the caller's thread, as with any runtime. Creation fails if the pod is deleted meanwhile. Does not
guarantee that containers outlive this process: they end with it, as when a machine is rebooted.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from kcm import __version__, errors
from kcm.api.core_v1 import Container, Pod
from kcm.clock import Clock
from kcm.helpers.pods import list_containers
from kcm.kubelet.cri import (
    ContainerConfig,
    ContainerStats,
    ExecResult,
    PortConnection,
    Resources,
    RuntimeContainer,
    RuntimeContainerState,
    RuntimeContainerStatus,
    RuntimeStatus,
    RuntimeVersion,
    Sandbox,
    SandboxConfig,
    SandboxState,
    Stream,
    StreamOptions,
)
from kcm.kubelet.host_ports import find_conflict
from kcm.simulation.runtime import logs
from kcm.simulation.runtime.containers import NAME, Attempt
from kcm.simulation.scripting import images, scripts
from kcm.simulation.scripting.addresses import PodAddresses
from kcm.simulation.scripting.behaviour import Behaviour, Pace, behaviour_of
from kcm.simulation.scripting.output import Line, OutputRun, list_rest
from kcm.simulation.scripting.scripts import ContainerScript
from kcm.simulation.scripting.stages import NO_STAGES, Stages
from kcm.simulation.scripting.usage import compute_cpu_time, compute_usage

POD_CIDR = "10.64.0.0/10"  # for pods of a node without a podCIDR
STEP = 0.1  # seconds between checks whether the wait is over or cancelled
_NOTHING_RUNS = "nothing runs in a simulated container"


@dataclass
class _Held:
    """One container. `does` is known once it has started."""

    id: str
    sandbox: Sandbox
    config: ContainerConfig
    attempt: Attempt
    does: Behaviour | None = None
    run: OutputRun | None = None  # what it writes, once it has started
    written: datetime | None = None  # until when its log is written
    is_written: bool = False  # whether its log is complete

    @property
    def log(self) -> str:
        return str(Path(self.sandbox.config.log_directory) / self.config.log_path)


class SimulatedRuntime:
    """Implements cri.Runtime and images.ImageService. Thread-safe."""

    def __init__(
        self,
        get_pod: Callable[[str], Pod | None],
        clock: Clock,
        *,
        stages: Stages = NO_STAGES,
        pace: Pace | None = None,
        host_ip: str = "127.0.0.1",
        get_pod_cidrs: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """`get_pod` returns a pod by its uid, for its script.

        `get_pod_cidrs` returns the address ranges of the node's pods, () if it has none.
        """
        self._get_pod = get_pod
        self._clock = clock
        self._stages = stages
        self._pace = pace or Pace()
        self._host_ip = host_ip
        self._get_pod_cidrs = get_pod_cidrs
        self._addresses = PodAddresses(POD_CIDR)
        self._lock = threading.Lock()
        self._sandboxes: dict[str, Sandbox] = {}
        self._held: dict[str, _Held] = {}
        self._closed = threading.Event()

    def close(self) -> None:
        """Makes all calls that wait raise ContainerRuntimeError."""
        self._closed.set()

    def version(self) -> RuntimeVersion:
        return RuntimeVersion(NAME, __version__)

    def status(self) -> RuntimeStatus:
        return RuntimeStatus(ready=True, limits="none")

    def attempt(self, container_id: str) -> Attempt | None:
        """Returns the container's attempt by the runtime's id, or None if there is none."""
        held = self._held.get(container_id)
        return held.attempt if held else None

    # --- sandboxes

    def run_pod_sandbox(self, config: SandboxConfig) -> str:
        with self._lock:
            for other in self._sandboxes.values():
                conflict = find_conflict(config.port_mappings, other.config.port_mappings)
                if conflict and other.state is SandboxState.READY:
                    raise errors.HostPortTaken(f"host port {conflict.host_port} is taken")
            ips = (
                (self._host_ip,)
                if config.host_network
                else self._addresses.take(self._get_pod_cidrs())
            )
            if not ips:
                raise errors.ContainerRuntimeError("no free address in the node's pod range")
            box = Sandbox(uuid.uuid4().hex, config, SandboxState.READY, self._now(), ips[0])
            self._sandboxes[box.id] = box
        return box.id

    def stop_pod_sandbox(self, sandbox_id: str) -> None:
        now = self._time()
        with self._lock:
            box = self._sandboxes.get(sandbox_id)
            if box is None or box.state is SandboxState.NOT_READY:
                return
            for held in self._list_held(sandbox_id):
                held.attempt.kill(now)
            if not box.config.host_network:
                self._addresses.release((box.ip,))
            self._sandboxes[sandbox_id] = replace(box, state=SandboxState.NOT_READY, ip="")

    def remove_pod_sandbox(self, sandbox_id: str) -> None:
        self.stop_pod_sandbox(sandbox_id)
        for held in self._list_held(sandbox_id):
            self.remove_container(held.id)
        with self._lock:
            self._sandboxes.pop(sandbox_id, None)

    def list_pod_sandboxes(self) -> list[Sandbox]:
        with self._lock:
            return [*self._sandboxes.values()]

    def _list_held(self, sandbox_id: str) -> list[_Held]:
        return [held for held in [*self._held.values()] if held.sandbox.id == sandbox_id]

    # --- images

    def has_image(self, pod: Pod, container: Container) -> bool:
        return self._behaviour(pod, container, 0).outcome != "image-pull-error"

    def pull_image(self, pod: Pod, container: Container) -> int:
        if not self.has_image(pod, container):
            why = self._behaviour(pod, container, 0).message
            raise errors.ImagePullFailed(why or images.NOT_FOUND)
        return images.size_of(container.image or "")

    # --- containers

    def create_container(self, sandbox_id: str, config: ContainerConfig, _: SandboxConfig) -> str:
        box = self._sandboxes.get(sandbox_id)
        if box is None:
            raise errors.SandboxNotFound()
        pod, spec = self._specs(box, config.name)
        if not config.attempt:
            self._pass(box, self._time() + self._behaviour(pod, spec, 0).start_after)
        held = _Held(uuid.uuid4().hex, box, config, Attempt.of(spec, config.attempt, self._time()))
        with self._lock:
            self._held[held.id] = held
        return held.id

    def _pass(self, box: Sandbox, until: float) -> None:
        """Waits until that time.

        Raises ContainerRuntimeError if the pod is deleted or the runtime closed.
        """
        while (left := until - self._time()) > 0:
            pod = self._get_pod(box.config.uid)
            if pod is None or pod.deleting or self._clock.wait(self._closed, min(left, STEP)):
                raise errors.ContainerRuntimeError("context canceled")

    def start_container(self, container_id: str) -> None:
        held = self._find(container_id)
        pod, spec = self._specs(held.sandbox, held.config.name)
        with self._lock:
            held.does = self._behaviour(pod, spec, held.config.attempt)
            held.attempt.start(self._time(), held.does)
            held.run = OutputRun(
                spec,
                held.config.attempt,
                self._now(),
                ready_after=held.does.ready_after,
                lines=self._script(held).log,
            )
        self._write_log(held)

    def _output(self, held: _Held) -> OutputRun | None:
        """Returns what the container writes, and its end if that is past."""
        attempt, now = held.attempt, self._time()
        if held.run is None or attempt.ends > now:
            return held.run
        ended = datetime.fromtimestamp(attempt.ends, UTC)
        return replace(held.run, ended=ended, exit_code=attempt.code, reason=attempt.reason)

    def _write_log(self, held: _Held) -> None:
        """Writes the log up to now. Raises ContainerRuntimeError."""
        with self._lock:
            run, now = self._output(held), self._now()
            if run is None or held.is_written:
                return
            lines = list_rest(run, held.written, now)
            if lines or held.written is None:
                logs.append(held.log, lines)
            held.written, held.is_written = now, run.ended is not None

    def stop_container(self, container_id: str, grace_seconds: float) -> None:
        held = self._held.get(container_id)
        if held is None or held.does is None:
            return
        with self._lock:
            if held.attempt.runs(self._time()):
                held.attempt.stop(self._time(), held.does, grace_seconds)
        while (left := held.attempt.ends - self._time()) > 0:
            if self._clock.wait(self._closed, min(left, STEP)):
                raise errors.ContainerRuntimeError("the runtime is stopping")

    def remove_container(self, container_id: str) -> None:
        with self._lock:
            held = self._held.pop(container_id, None)
        if held is not None:
            logs.remove(held.log)

    def list_containers(self) -> list[RuntimeContainer]:
        now = self._time()
        with self._lock:
            return [
                RuntimeContainer(
                    held.id,
                    held.sandbox.id,
                    held.config.name,
                    held.config.attempt,
                    held.config.image,
                    held.attempt.state(now),
                    _moment(held.attempt.created),
                    held.config.labels,
                    held.config.annotations,
                )
                for held in self._held.values()
            ]

    def container_status(self, container_id: str) -> RuntimeContainerStatus:
        held, now = self._find(container_id), self._time()
        with suppress(errors.ContainerRuntimeError):  # a full disk; the container goes on
            self._write_log(held)
        attempt, state = held.attempt, held.attempt.state(now)
        ended = state is RuntimeContainerState.EXITED
        return RuntimeContainerStatus(
            id=held.id,
            config=held.config,
            state=state,
            created_at=_moment(attempt.created),
            started_at=_moment(attempt.started) if attempt.started <= now else None,
            finished_at=_moment(attempt.ends) if ended else None,
            exit_code=attempt.code if ended else 0,
            reason=attempt.reason if ended else "",
            message=attempt.message if ended else "",
            log_path=held.log,
        )

    # --- inside of containers

    def exec_sync(self, container_id: str, command: Sequence[str], timeout: float) -> ExecResult:
        """Runs a command of a hook, which succeeds at once.

        Raises ContainerRuntimeError if the container does not run.
        """
        if not self._find(container_id).attempt.runs(self._time()):
            raise errors.ContainerRuntimeError("the container does not run")
        return ExecResult(b"", b"", 0)

    def exec(self, container_id: str, command: Sequence[str], wanted: StreamOptions) -> Stream:
        raise errors.ContainerRuntimeError(_NOTHING_RUNS)

    def attach(self, container_id: str, wanted: StreamOptions) -> Stream:
        held = self._find(container_id)
        if held.run is None or not held.attempt.runs(self._time()):
            raise errors.ContainerRuntimeError("the container does not run")
        name, seen = held.config.name, [self._now()]
        said = self._script(held).attach
        said = said or f"container {name} is simulated: it reads nothing"

        def read() -> tuple[list[Line], int | None]:
            run, now = self._output(self._find(container_id)), self._now()
            if run is None:
                return [], 0
            lines = list_rest(run, seen[0], now)
            seen[0] = now
            return lines, None if run.ended is None else run.exit_code

        return logs.ScriptStream(said, read)

    def port_forward(self, sandbox_id: str, port: int) -> PortConnection:
        raise errors.ContainerRuntimeError(f"{_NOTHING_RUNS}, so nothing listens at port {port}")

    def update_container_resources(self, container_id: str, resources: Resources) -> None:
        held = self._find(container_id)
        held.config = replace(held.config, resources=resources)

    def update_pod_sandbox_resources(self, config: SandboxConfig) -> None:
        """Does nothing: whole pods are not limited."""

    def container_stats(self, container_id: str) -> ContainerStats:
        held, now = self._find(container_id), self._time()
        script = self._script(held)
        since = now - held.attempt.started if held.attempt.runs(now) else 0.0
        memory = compute_usage(script, since)["memory"].value()
        return ContainerStats(
            held.id, self._now(), compute_cpu_time(script, since), memory, memory, 1
        )

    # --- look-ups

    def _find(self, container_id: str) -> _Held:
        held = self._held.get(container_id)
        if held is None:
            raise errors.ContainerNotFound()
        return held

    def _specs(self, box: Sandbox, name: str) -> tuple[Pod, Container]:
        pod = self._get_pod(box.config.uid)
        spec = pod.spec if pod else None
        containers = list_containers(spec) if spec else []
        for container in containers:
            if pod is not None and container.name == name:
                return pod, container
        raise errors.ContainerRuntimeError(f"no pod is known that has the container {name}")

    def _behaviour(self, pod: Pod, spec: Container, number: int) -> Behaviour:
        script, _ = scripts.of_pod(pod.annotations, self._stages.for_pod(pod))
        return behaviour_of(pod, spec, number, script, self._pace)

    def _script(self, held: _Held) -> ContainerScript:
        pod = self._get_pod(held.sandbox.config.uid)
        if pod is None:
            return scripts.EMPTY
        script, _ = scripts.of_pod(pod.annotations, self._stages.for_pod(pod))
        name = held.config.name
        return script.of(
            name, ordinary=any(container.name == name for container in pod.spec.containers)
        )

    def _now(self) -> datetime:
        return self._clock.now()

    def _time(self) -> float:
        return self._clock.now().timestamp()


def _moment(time: float) -> datetime:
    return datetime.fromtimestamp(time, UTC)
