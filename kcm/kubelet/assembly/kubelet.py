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
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import IO

import structlog
from prometheus_client import generate_latest

from kcm.api.core_v1 import Pod
from kcm.kubelet.assembly.loop import (
    LoopComponents,
    NodeComponents,
    build_loop,
    build_node_components,
    build_sources,
    build_usage_reports,
)
from kcm.kubelet.assembly.records import Dependencies, KubeletRecords, Run, build_records
from kcm.kubelet.assembly.root_dir import lock_root_dir
from kcm.kubelet.assembly.runtime import (
    PodWorkComponents,
    RuntimeComponents,
    build_container_upkeep,
    build_pod_work,
    build_runtime,
)
from kcm.kubelet.config.api import ApiSource
from kcm.kubelet.cri import Runtime
from kcm.kubelet.kuberuntime.manager import RuntimeManager
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.runtime.ending import kill_containers
from kcm.kubelet.server.app import KubeletServer, ServerSources
from kcm.kubelet.server.key import NodeKey
from kcm.kubelet.server.pods import NodePods
from kcm.kubelet.server.serving import NodeServer, listen_for_node
from kcm.kubelet.stats.resource_metrics import ResourceMetrics
from kcm.kubelet.stats.summary import build_summary
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
        if self.runtime_components.services.events is not None:
            self.runtime_components.services.events.close()
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


# --- The composition root: builds every component of a kubelet, each from what was built before it.
#
# Nothing is changed after it was built: `new_main_kubelet` calls the builders of this package in
# the order of dependencies. Components that would need each other share a record below both: pod
# workers and the status manager `PodStates`, the node manager and the eviction manager
# `ReportRequests`, the runtime and the node manager `CurrentNode`.
#
# Source: NewMainKubelet in pkg/kubelet/kubelet.go, Kubernetes 1.33.


def new_main_kubelet(options: KubeletOptions, dependencies: Dependencies) -> Kubelet:
    """Builds a kubelet, which does nothing until it is started.

    Raises ConfigurationError if another kubelet uses the root folder, and PortTaken.
    """
    with ExitStack() as undo:
        root_lock = undo.enter_context(closing(lock_root_dir(options.root_dir)))
        listener = undo.enter_context(closing(listen_for_node(options)))
        options = replace(options, port=int(listener.getsockname()[1]))
        records = build_records(options, dependencies)
        runtime = build_runtime(options, dependencies, records)
        work = build_pod_work(options, dependencies, records, runtime)
        key = NodeKey(dependencies.stores.server, options, records.clock)
        node = build_node_components(
            options,
            dependencies,
            records,
            runtime=runtime,
            work=work,
            prove_address=key.prove_address,
        )
        loop = build_loop(options, records, runtime=runtime, work=work, node=node)
        app = _build_app(options, records, runtime=runtime, loop=loop, node=node, key=key)
        kubelet = Kubelet(
            options=options,
            root_lock=root_lock,
            records=records,
            runtime_components=runtime,
            work=work,
            node=node,
            loop=loop,
            server=NodeServer(app, listener, options.certificate, options.client_ca_file),
            runs=(
                *_list_runs(records, runtime, work, node, loop),
                *build_container_upkeep(options, records, runtime),
                *build_sources(options, records, loop.config),
                *build_usage_reports(options, dependencies, node),
                ("node-key", key.run),
            ),
            loops=[ApiSource(dependencies.stores.watch, options.node_name, loop.config.update)],
        )
        undo.pop_all()
    return kubelet


def _list_runs(
    records: KubeletRecords,
    runtime: RuntimeComponents,
    work: PodWorkComponents,
    node: NodeComponents,
    loop: LoopComponents,
) -> list[tuple[str, Run]]:
    """Returns the components that run in threads of their own, in the order of their start."""
    return [
        ("runtime", runtime.state.run),
        ("pleg", runtime.pleg.run),
        ("status", records.statuses.run),
        ("node", node.manager.run),
        ("workers", work.workers.threads.run_overdue),
        ("ticker", loop.ticker.run),
        ("syncloop", loop.sync_loop.run),
        ("eviction", node.eviction.run),
        ("local-volumes", records.local_volumes.run),
    ]


def _build_app(
    options: KubeletOptions,
    records: KubeletRecords,
    *,
    runtime: RuntimeComponents,
    loop: LoopComponents,
    node: NodeComponents,
    key: NodeKey,
) -> KubeletServer:
    summary = node.stats.summary
    sources = ServerSources(
        pods=NodePods(records.pods.pods, records.statuses.get, runtime.services.runtime),
        check_health=loop.sync_loop.check_health,
        metrics=lambda: generate_latest(records.registry),
        resource_metrics=ResourceMetrics(summary).page,
        stats_summary=lambda: build_summary(options.node_name, summary()),
    )
    return KubeletServer(sources, lambda: key.token, records.clock)
