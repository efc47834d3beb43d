"""Kills everything that runs on a node, as if the machine were switched off.

The pods and the records of containers stay. Departure from Kubernetes, where containers always
outlive their kubelet.
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

GRACE = 1.5  # seconds; `kcm up` promises to stop everything within 5
AT_ONCE = 64  # containers that are killed at a time


def kill_containers(runtime: Runtime, grace: float = GRACE) -> int:
    """Kills all running containers in parallel, then stops the sandboxes.

    Returns the number of containers. `grace` is in seconds. The containers' records are kept, so
    that the next kubelet restarts them according to their restart policies.
    """
    running = [c.id for c in runtime.list_containers() if c.state is RuntimeContainerState.RUNNING]
    ready = [s.id for s in runtime.list_pod_sandboxes() if s.state is SandboxState.READY]
    with ThreadPoolExecutor(AT_ONCE, "kcm-ending") as pool:
        list(pool.map(_log_failure(lambda each: runtime.stop_container(each, grace)), running))
        list(pool.map(_log_failure(runtime.stop_pod_sandbox), ready))
    return len(running)


def end_node(root_dir: Path) -> int:
    """Kills all containers of a node whose kubelet is gone, without a grace period.

    Returns their number. Raises OSError.
    """
    root = root_dir / "runtime"
    if not root.is_dir():
        return 0
    return kill_containers(ProcessRuntime(ProcessOptions(root=root)), grace=0)


def _log_failure(kill: Callable[[str], None]) -> Callable[[str], None]:
    def kill_and_log(container_id: str) -> None:
        try:
            kill(container_id)
        except ContainerRuntimeError as error:
            log.warning("a container was not killed", id=container_id, error=str(error))

    return kill_and_log
