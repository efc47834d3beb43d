"""`cp.pods`: what a test has happen to containers of simulated pods.

It annotates pods, as `kubectl annotate` could, with what happens to them at this moment of the
clock (docs/nodes.md). The annotations stay; they are no longer about anything
once the container has started anew.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping

from kcm import errors
from kcm.api.core_v1 import ContainerStatus, Node, Pod
from kcm.api.simulated import SIMULATOR_LABEL
from kcm.clock import Clock
from kcm.simulation.scripting.incidents import OOM_KILLED, format_exit
from kcm.simulation.scripting.script_lines import add_line
from kcm.simulation.scripting.scripts import PREFIX
from kcm.store import Store

_PODS = Pod.resource
_KILLED = 137  # 128 + SIGKILL


class NotRunning(errors.KcmError):
    """The container does not run, so nothing can happen to it."""

    @classmethod
    def of(cls, pod: str, container: str, why: str) -> NotRunning:
        """Returns the error about a container, with what its status says."""
        return cls(
            f"container {container} of pod {pod} does not run ({why}): wait for it, for example "
            f'with cp.wait_for("pod/{pod.partition("/")[2]}", condition="Ready")'
        )


class FaultyPod:
    """One pod on a simulated node. Its methods return at once; the pod follows within a second.

    `container` is by default the first one, and for readiness all that are neither init containers
    nor sidecars.
    """

    def __init__(
        self, key: str, store: Callable[[], Store], clock: Clock, lock: threading.Lock
    ) -> None:
        self.key = key  # namespace/name
        self._store = store
        self._clock = clock
        self._lock = lock  # while an annotation is read and written

    def crash(self, exit_code: int = 1, container: str | None = None) -> None:
        """Ends a container now, with this exit code. The restart policy decides what follows.

        Raises NotRunning, NotFound and ValueError.
        """
        if not 0 <= exit_code <= 255:
            raise ValueError(f"exit_code={exit_code} is out of range: use 0 to 255")
        self._exit(exit_code, "", container)

    def oom(self, container: str | None = None) -> None:
        """Ends a container now with OOMKilled. Raises NotRunning and NotFound."""
        self._exit(_KILLED, OOM_KILLED, container)

    def not_ready(self, container: str | None = None) -> None:
        """Makes the readiness probe fail from now on. Raises NotFound."""
        self._annotate("ready", container, "false")

    def ready(self, container: str | None = None) -> None:
        """Makes the readiness probe succeed from now on. Raises NotFound."""
        self._annotate("ready", container, "true")

    def log(self, text: str, container: str | None = None) -> None:
        """Writes a line into a container's log now. Raises NotRunning and ValueError.

        The newest hundred lines are kept.
        """
        name = self._require_running(container)
        with self._lock:
            annotations = self._get().annotations
            own = f"{PREFIX}log.{name}"
            log = annotations.get(own, annotations.get(f"{PREFIX}log", ""))
            self._write({own: add_line(log, text, self._clock.now())})

    def heal(self) -> None:
        """Lets readiness follow the pod's script again. Raises NotFound."""
        of_readiness = PREFIX + "ready"
        with self._lock:
            names = [
                name
                for name in self._get().annotations
                if name == of_readiness or name.startswith(f"{of_readiness}.")
            ]
            if names:
                self._write(dict.fromkeys(names))

    def __repr__(self) -> str:
        return f"<Pod {self.key}>"

    def _exit(self, code: int, reason: str, container: str | None) -> None:
        name = self._require_running(container)
        self._annotate("exit", name, format_exit(self._clock.now(), code, reason))

    def _annotate(self, what: str, container: str | None, text: str) -> None:
        suffix = f".{container}" if container else ""
        if container:
            _status_of(self._get(), container)
        self._write({f"{PREFIX}{what}{suffix}": text})

    def _write(self, annotations: Mapping[str, str | None]) -> None:
        patch = {"metadata": {"annotations": dict(annotations)}}
        self._store().patch(_PODS, self.key, patch)

    def _get(self) -> Pod:
        return self._store().get(Pod.resource, self.key)

    def _require_running(self, container: str | None) -> str:
        """Returns the name of the container. Raises NotRunning and NotFound."""
        pod = self._get()
        name = container or pod.spec.containers[0].name
        status = _status_of(pod, name)
        if not is_running(status):
            raise NotRunning.of(self.key, name, _why_not(pod, status))
        return name


def _status_of(pod: Pod, container: str) -> ContainerStatus | None:
    """Returns the status of a container, None if it has none. Raises NotFound."""
    every = [*pod.spec.containers, *(pod.spec.init_containers or ())]
    names = [one.name for one in every]
    if container not in names:
        raise errors.NotFound(
            f'pod {pod.key} has no container "{container}"; there are {", ".join(names)}'
        )
    status = pod.status
    statuses = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    return next((one for one in statuses if one.name == container), None)


def is_running(status: ContainerStatus | None) -> bool:
    """Reports whether a container runs, by its status."""
    return status is not None and status.state is not None and status.state.running is not None


def _why_not(pod: Pod, status: ContainerStatus | None) -> str:
    if not pod.spec.node_name:
        return "the pod has no node"
    state = status.state if status is not None else None
    if state is not None and state.waiting is not None:
        return state.waiting.reason or "waiting"
    if state is not None and state.terminated is not None:
        return state.terminated.reason or "terminated"
    return "it was not started yet"


class Pods:
    """The pods on simulated nodes of one control plane, by `namespace/name` or, in the namespace
    default, by name.
    """

    def __init__(self, store: Callable[[], Store], clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> FaultyPod:
        """Returns the pod with this name. Raises NotFound, and ValueError for a real node's pod."""
        key = name if "/" in name else f"default/{name}"
        pod = self._store().get(Pod.resource, key)
        node = pod.spec.node_name
        if node and SIMULATOR_LABEL not in self._store().get(Node.resource, node).labels:
            raise ValueError(f"pod {key} is on {node}, which is no simulated node")
        return FaultyPod(key, self._store, self._clock, self._lock)

    def __iter__(self) -> Iterator[FaultyPod]:
        """Yields the running pods, sorted by namespace and name."""
        keys = []
        for pod in self._store().list_all(_PODS).objects:
            statuses = pod.status.container_statuses or ()
            if statuses and all(map(is_running, statuses)) and not pod.deleting:
                keys.append(pod.key)
        for key in sorted(keys):
            yield FaultyPod(key, self._store, self._clock, self._lock)

    def __repr__(self) -> str:
        return f"<Pods {[pod.key for pod in self]}>"
