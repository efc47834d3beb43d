"""Ends everything that runs on a node, as the machine's own end would; the pods themselves stay.

Departure from Kubernetes, where containers always outlive their kubelet.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import structlog

from kcm.errors import ContainerRuntimeError
from kcm.kubelet.cri import Runtime, RuntimeContainerState, SandboxState
from kcm.kubelet.runtime.process.options import ProcessOptions
from kcm.kubelet.runtime.process.runtime import ProcessRuntime

log = structlog.get_logger("kcm.kubelet")

GRACE = 1.5  # seconds: `kcm up` promises that all has ended within 5
AT_ONCE = 64  # containers


def end_containers(runtime: Runtime, grace: float = GRACE) -> int:
    """Ends all running containers in parallel, then the sandboxes; returns the number of
    containers.

    `grace` is in seconds. The containers' records are kept, so that the next kubelet starts them
    anew as their restart policies say.
    """
    running = [c.id for c in runtime.list_containers() if c.state is RuntimeContainerState.RUNNING]
    ready = [s.id for s in runtime.list_pod_sandboxes() if s.state is SandboxState.READY]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(_log_failure(lambda each: runtime.stop_container(each, grace)), running))
        list(pool.map(_log_failure(runtime.stop_pod_sandbox), ready))
    return len(running)


def end_node(root_dir: Path) -> int:
    """Ends everything of a node whose kubelet is gone, at once. Raises OSError."""
    root = root_dir / "runtime"
    if not root.is_dir():
        return 0
    return end_containers(ProcessRuntime(ProcessOptions(root=root)), grace=0)


def _log_failure(end: Callable[[str], None]) -> Callable[[str], None]:
    def end_and_log(container_id: str) -> None:
        try:
            end(container_id)
        except ContainerRuntimeError as error:
            log.warning("a container was not ended", id=container_id, error=str(error))

    return end_and_log
