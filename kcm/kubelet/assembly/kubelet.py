"""A kubelet: the components that `new_main_kubelet` has put together, and their life.

    config sources ─┐
    PLEG ───────────┤                      ┌─ pod workers ── syncer ── runtime
    probes ─────────┼─ sync loop ─ handlers┤
    tickers ────────┘                      └─ clean-up
    status manager, node manager, Events: each in a thread of its own, towards the store

Guarantees: nothing but those last three waits for the store; stopping the kubelet stops no
container, unless the options say otherwise; the node's API listens before the node says where.

Source: Kubelet and Run in pkg/kubelet/kubelet.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO

import structlog

from kcm.api.core_v1 import Pod
from kcm.kubelet.assembly.runtimes import RuntimeServices
from kcm.kubelet.channels import Channels
from kcm.kubelet.cri import Runtime
from kcm.kubelet.kuberuntime.manager import RuntimeManager
from kcm.kubelet.loop.background import BackgroundWork
from kcm.kubelet.loop.pleg import GenericPLEG
from kcm.kubelet.loop.runtime_state import RuntimeState
from kcm.kubelet.loop.syncloop import SyncLoop, Ticker
from kcm.kubelet.node.current_node import ReportRequests
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.pod_workers.pod_cache import PodCache
from kcm.kubelet.pod_workers.pod_workers import PodWorkers
from kcm.kubelet.pods.pod_manager import PodManager
from kcm.kubelet.prober.manager import ProbeManager
from kcm.kubelet.runtime.ending import end_containers
from kcm.kubelet.server.serving import NodeServer
from kcm.kubelet.shutdown.manager import ShutdownManager
from kcm.kubelet.status.manager import StatusManager

log = structlog.get_logger("kcm.kubelet")

STOP_TIMEOUT = 5.0  # seconds for all threads to end
FINAL_REPORT_TIMEOUT = 2.0  # seconds to write the last statuses of a node that shuts down

Run = Callable[[threading.Event], None]
"""Runs a component in its thread until the event is set."""


@dataclass(frozen=True, kw_only=True)
class Kubelet:
    """Runs the components in threads, from `start` until `stop`."""

    options: KubeletOptions
    root_lock: IO[str]
    services: RuntimeServices
    pods: PodManager
    statuses: StatusManager
    node_reports: ReportRequests
    runtime_manager: RuntimeManager
    runtime_state: RuntimeState
    pleg: GenericPLEG
    probes: ProbeManager
    pod_cache: PodCache
    pod_workers: PodWorkers
    channels: Channels
    sync_loop: SyncLoop
    ticker: Ticker
    background: BackgroundWork
    shutdown: ShutdownManager
    server: NodeServer
    runs: Sequence[tuple[str, Run]]  # by thread name, in the order of their start
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    @property
    def runtime(self) -> Runtime:
        return self.services.runtime

    def start(self) -> None:
        """Starts all threads."""
        self.probes.start()
        self.server.start()
        self.runtime_state.update()
        for name, run in self.runs:
            thread = threading.Thread(
                target=run, args=(self._stop,), name=f"kcm-{name}", daemon=True
            )
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Stops all threads; before that, shuts the node down if a grace period is configured."""
        if self.shutdown.shut_down():
            self._wait_for_final_reports()
        self._stop.set()
        self.channels.close()
        self.pod_cache.stop()
        self.statuses.wake()
        self.node_reports.request()
        self.pleg.request_relist()
        deadline = time.monotonic() + STOP_TIMEOUT
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0.0))
        self.background.stop()
        if self.options.end_containers:
            end_containers(self.runtime)
        self.server.stop()
        self.probes.stop()
        self.services.close()
        self.root_lock.close()

    def _wait_for_final_reports(self) -> None:
        """Waits until the store knows what became of the pods and that the node is not ready."""
        deadline = time.monotonic() + FINAL_REPORT_TIMEOUT
        written = self.statuses.wait_until_written(FINAL_REPORT_TIMEOUT)
        reported = self.node_reports.wait_until_fulfilled(max(deadline - time.monotonic(), 0.0))
        if not (written and reported):
            log.warning("the node stops before the store has its last statuses")

    def sync_waiting_pod(self, uid: str) -> bool:
        """Does a waiting pod's work in this thread; see WorkThreads.run."""
        return self.pod_workers.threads.run(uid)

    def request_housekeeping(self) -> None:
        """Makes the sync loop clean up."""
        self.ticker.request_housekeeping()

    def get_pod(self, uid: str) -> Pod | None:
        """Returns the pod that the node shall run with this uid."""
        return self.pods.by_uid(uid)
