"""What a container runtime comes with: its prober, its image service, its view of security.

A kubelet brings the process runtime. Another one, such as the simulated one, is given to it by the
process that runs it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kcm.api.core_v1 import Pod
from kcm.clock import Clock
from kcm.kubelet.cri import Runtime
from kcm.kubelet.images.store import ImageStore
from kcm.kubelet.kuberuntime.images import ImageService
from kcm.kubelet.kuberuntime.security_context import NOTHING_CHECKED, RuntimeSecurity
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.prober.state import ProbeRunner


class RuntimeEvents(Protocol):
    """Follows what a runtime says about changes of its containers."""

    def run(self, stop: threading.Event, report: Callable[[], None]) -> None:
        """Calls `report` when something has changed, until `stop` is set."""

    def close(self) -> None:
        """Ends a wait of `run`."""


@dataclass(frozen=True)
class RuntimeServices:
    """A container runtime, what runs the probes of its containers, and what it makes of security
    settings.

    `image_service` is None for a runtime that pulls nothing, or has an `image_store`. `close` wakes
    the threads that wait in the runtime. `is_prepared` says that the kubelet prepares files and
    name resolution of its containers, as CRI has it. `reopen_log` makes it open the log of a
    container anew; None if it rotates logs itself. `events` is None for a runtime without them.
    `runs` has what else runs in threads of its own, with their names.
    """

    runtime: Runtime
    probe_runner: ProbeRunner
    image_service: ImageService | None = None
    image_store: ImageStore | None = None
    close: Callable[[], None] = lambda: None
    security: RuntimeSecurity = NOTHING_CHECKED
    is_prepared: bool = False
    reopen_log: Callable[[str], None] | None = None
    events: RuntimeEvents | None = None
    runs: Sequence[tuple[str, Callable[[threading.Event], None]]] = ()


class NewRuntimeServices(Protocol):
    """Builds a container runtime. Raises ConfigurationError."""

    def __call__(
        self,
        options: KubeletOptions,
        clock: Clock,
        *,
        get_pod: Callable[[str], Pod | None],
        get_pod_cidrs: Callable[[], Sequence[str]],
    ) -> RuntimeServices:
        """`get_pod` returns a pod by its uid, `get_pod_cidrs` the address ranges of its node."""
