"""Ending what runs on a node, as the machine's own end would; the pods themselves stay.

Departs from Kubernetes, where containers always outlive their kubelet.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import structlog

from kcm.errors import ContainerRuntimeError
from kcm.kubelet.cri import ContainerState, Runtime, SandboxState
from kcm.kubelet.runtime.process.options import ProcessOptions
from kcm.kubelet.runtime.process.runtime import ProcessRuntime

log = structlog.get_logger("kcm.kubelet")

GRACE = 1.5  # seconds: `kcm up` promises that all has ended within 5
AT_ONCE = 64  # containers


def end_containers(runtime: Runtime, grace: float = GRACE) -> int:
    """End all running containers at once, then the sandboxes; how many containers there were.

    What they were is kept, so that the next kubelet starts them anew by their policy.
    """
    running = [c.id for c in runtime.list_containers() if c.state is ContainerState.RUNNING]
    ready = [s.id for s in runtime.list_pod_sandboxes() if s.state is SandboxState.READY]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(_contained(lambda each: runtime.stop_container(each, grace)), running))
        list(pool.map(_contained(runtime.stop_pod_sandbox), ready))
    return len(running)


def end_node(root_dir: Path) -> int:
    """The same at once, for the node of a kubelet that is gone. Raises OSError."""
    root = root_dir / "runtime"
    if not root.is_dir():
        return 0
    return end_containers(ProcessRuntime(ProcessOptions(root=root)), grace=0)


def _contained(end: Callable[[str], None]) -> Callable[[str], None]:
    def ending(found: str) -> None:
        try:
            end(found)
        except ContainerRuntimeError as error:
            log.warning("a container was not ended", id=found, error=str(error))

    return ending
