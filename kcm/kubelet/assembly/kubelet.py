"""A kubelet: the components that `new_main_kubelet` has built, their start and their stop.

    config sources ─┐
    PLEG ───────────┤                      ┌─ pod workers ── syncer ── runtime
    probes ─────────┼─ sync loop ─ handlers┤
    tickers ────────┘                      └─ clean-up

    status manager, node manager, Events: each writes to the store in a thread of its own

Guarantees: the sync loop never waits for the store. Stopping the kubelet kills no container, unless
the options say so. The node's HTTP API listens before the node status names its port.

Source: Kubelet and Run in pkg/kubelet/kubelet.go, Kubernetes 1.33.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO

import structlog

from kcm.api.core_v1 import Pod
from kcm.kubelet.assembly.dependencies import Run
from kcm.kubelet.assembly.loop import LoopComponents
from kcm.kubelet.assembly.node import NodeComponents
from kcm.kubelet.assembly.pod_work import PodWorkComponents
from kcm.kubelet.assembly.records import KubeletRecords
from kcm.kubelet.assembly.runtime import RuntimeComponents
from kcm.kubelet.cri import Runtime
from kcm.kubelet.kuberuntime.manager import RuntimeManager
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.runtime.ending import kill_containers
from kcm.kubelet.server.serving import NodeServer
from kcm.loops import Loop, ThreadHost

log = structlog.get_logger("kcm.kubelet")

STOP_TIMEOUT = 5.0  # seconds to wait for all threads
FINAL_REPORT_TIMEOUT = 2.0  # seconds to write the last statuses of a node that shuts down


@dataclass(frozen=True, kw_only=True)
class Kubelet:
    """Runs the components in threads, from `start` until `stop`."""

    options: KubeletOptions
    root_lock: IO[str]
    records: KubeletRecords
    runtime_components: RuntimeComponents
    work: PodWorkComponents
    node: NodeComponents
    loop: LoopComponents
    server: NodeServer
    runs: Sequence[tuple[str, Run]]  # thread names and functions, in the order of their start
    loops: Sequence[Loop]
    _host: ThreadHost = field(default_factory=ThreadHost)

    @property
    def runtime(self) -> Runtime:
        return self.runtime_components.services.runtime

    @property
    def runtime_manager(self) -> RuntimeManager:
        return self.runtime_components.manager

    def start(self) -> None:
        """Starts all threads and the node's HTTP API."""
        self.runtime_components.probes.start()
        self.server.start()
        self.runtime_components.state.update()
        for name, run in self.runs:
            self._host.keep(f"kcm-{name}", run)
        self._host.run(*self.loops)

    def stop(self) -> None:
        """Stops all threads. With shutdown grace periods, shuts the node down before that."""
        if self.node.shutdown.shut_down():
            self._wait_for_final_reports()
        self._host.ask_to_stop()
        self.records.channels.close()
        self.records.cache.stop()
        self.records.statuses.wake()
        self.records.report_requests.request()
        self.runtime_components.pleg.request_relist()
        self._host.stop()
        self.loop.background.stop()
        if self.options.end_containers:
            kill_containers(self.runtime)
        self.server.stop()
        self.runtime_components.probes.stop()
        self.runtime_components.services.close()
        self.root_lock.close()

    def _wait_for_final_reports(self) -> None:
        """Waits until the final statuses of the pods and of the node are in the store.

        Gives up after FINAL_REPORT_TIMEOUT seconds.
        """
        deadline = time.monotonic() + FINAL_REPORT_TIMEOUT
        written = self.records.statuses.wait_until_written(FINAL_REPORT_TIMEOUT)
        left = max(deadline - time.monotonic(), 0.0)
        reported = self.records.report_requests.wait_until_fulfilled(left)
        if not (written and reported):
            log.warning("the node stops before the store has its last statuses")

    def sync_waiting_pod(self, uid: str) -> bool:
        """Does a waiting pod's work in this thread; see `WorkThreads.run`."""
        return self.work.workers.threads.run(uid)

    def request_housekeeping(self) -> None:
        """Makes the sync loop do its housekeeping."""
        self.loop.ticker.request_housekeeping()

    def get_pod(self, uid: str) -> Pod | None:
        """Returns the pod with this uid if it is desired on this node, else None."""
        return self.records.pods.by_uid(uid)
