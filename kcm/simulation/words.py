"""What a kubelet says: texts of Events and statuses, identifiers of containers and images.

Source: pkg/kubelet/{images,kuberuntime,prober,container}, Kubernetes 1.33.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from kcm.api.core_v1 import Container, Pod, Probe
from kcm.simulation.runs import ContainerRun, Note, Phase

NO_SUCH_IMAGE = "failed to pull and unpack image: not found (simulated)"
NOT_LOCATED = "The container could not be located when the pod was terminated"
DEADLINE_EXCEEDED = (
    "DeadlineExceeded",
    "Pod was active on the node longer than the specified deadline",
)


def note(c: ContainerRun, type_: str, reason: str, message: str) -> Note:
    """An Event about a container."""
    field = "containers" if c.sort == "main" else "initContainers"
    path = f"spec.{field}{{{c.name}}}"
    return Note("Warning" if type_ == "Warning" else "Normal", reason, message, path)


def described(pod: Pod) -> str:
    """A pod as the kubelet names it in texts."""
    return f"{pod.name}_{pod.namespace}({pod.uid})"


def started(spec: Container) -> Iterator[tuple[str, str]]:
    """Reason and message of the Events around a container's start."""
    image = spec.image or ""
    if spec.image_pull_policy == "Always":
        size = 10_000_000 + int(_digest(image)[:6], 16)
        yield "Pulling", f'Pulling image "{image}"'
        yield (
            "Pulled",
            f'Successfully pulled image "{image}" in 100ms (100ms including waiting). '
            f"Image size: {size} bytes.",
        )
    else:
        yield "Pulled", f'Container image "{image}" already present on machine'
    yield "Created", f"Created container: {spec.name}"
    yield "Started", f"Started container {spec.name}"


def probe_failed(kind: str, probe: Probe | None) -> str:
    """The message of an Unhealthy Event."""
    if probe is not None and probe.http_get is not None:
        return f"{kind} probe failed: HTTP probe failed with statuscode: 503"
    if probe is not None and probe.tcp_socket is not None:
        port = probe.tcp_socket.port
        return f"{kind} probe failed: dial tcp :{port}: connect: connection refused"
    return f"{kind} probe failed: (simulated)"


def is_started(spec: Container, c: ContainerRun, now: float) -> bool:
    """Whether the container runs, and its startup probe, if any, has succeeded."""
    return c.phase is Phase.RUNNING and (spec.startup_probe is None or now >= c.ready_at)


def container_id(pod: Pod, c: ContainerRun) -> str:
    """The present container's; another after each restart."""
    return f"simulated://{_digest(f'{pod.uid}/{c.name}/{c.restarts}')}"


def image_id(image: str) -> str:
    """The same for equal images."""
    return f"{image.partition('@')[0]}@sha256:{_digest(image)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def go_list(names: list[str]) -> str:
    """Names as Go prints a slice."""
    return f"[{' '.join(names)}]"
