"""Builds the sync loop of a kubelet, and the sources of its pods."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import structlog

from kcm import errors
from kcm.kubelet.assembly.records import Dependencies, KubeletRecords, Run
from kcm.kubelet.assembly.runtime import PodWorkComponents, RuntimeComponents
from kcm.kubelet.config.file import FileSource, HttpSource
from kcm.kubelet.config.podconfig import PodConfig, SourcesReady
from kcm.kubelet.eviction.manager import EvictionManager
from kcm.kubelet.loop import syncloop
from kcm.kubelet.loop.cleanup import Cleanup
from kcm.kubelet.loop.handlers import PodHandlers
from kcm.kubelet.node.machine import MachineReader
from kcm.kubelet.node.manager import NodeManager
from kcm.kubelet.node.reserved import sum_reserved
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.shutdown.manager import ShutdownManager
from kcm.kubelet.stats.provider import StatsProvider
from kcm.kubelet.stats.reporting import UsageReporter
from kcm.kubelet.types import API, FILE, HTTP


@dataclass(frozen=True, kw_only=True)
class LoopComponents:
    """The sync loop, and what feeds it or works for it in the background."""

    background: BackgroundWork
    config: PodConfig
    sync_loop: syncloop.SyncLoop
    ticker: syncloop.Ticker


def build_loop(
    options: KubeletOptions,
    records: KubeletRecords,
    *,
    runtime: RuntimeComponents,
    work: PodWorkComponents,
    node: NodeComponents,
) -> LoopComponents:
    """Builds the sync loop, its handlers, and the configuration that the sources feed."""
    background = BackgroundWork()
    cleanup = Cleanup(
        pods=records.pods,
        states=records.states,
        workers=work.workers,
        statuses=records.statuses,
        runtime_manager=runtime.manager,
        prober=runtime.probes,
        volumes=records.volumes,
        mirrors=work.mirrors,
        reasons=records.reasons,
        clock=records.clock,
        run_in_background=background.submit,
    )
    config = PodConfig(
        records.channels.channel(syncloop.CONFIG), records.clock, _source_names(options)
    )
    sync_loop = syncloop.SyncLoop(
        records.channels,
        _build_handlers(records, runtime=runtime, work=work, node=node, cleanup=cleanup),
        pods=records.pods,
        statuses=records.statuses,
        sources=SourcesReady(config),
        runtime_state=runtime.state,
        clock=records.clock,
    )
    ticker = syncloop.Ticker(records.channels, records.clock)
    return LoopComponents(background=background, config=config, sync_loop=sync_loop, ticker=ticker)


def _build_handlers(
    records: KubeletRecords,
    *,
    runtime: RuntimeComponents,
    work: PodWorkComponents,
    node: NodeComponents,
    cleanup: Cleanup,
) -> PodHandlers:
    return PodHandlers(
        pods=records.pods,
        states=records.states,
        active_pods=records.active_pods,
        workers=work.workers,
        statuses=records.statuses,
        cache=records.cache,
        runtime_manager=runtime.manager,
        cleanup=cleanup,
        recorder=records.recorder,
        metrics=records.metrics,
        clock=records.clock,
        node=records.node,
        allocations=records.allocations,
        lookups=records.lookups,
        admit_handlers=(node.eviction.admit, node.shutdown.admit),
    )


def _source_names(options: KubeletOptions) -> set[str]:
    """Returns the names of the enabled sources."""
    names = {API}
    if options.pod_manifest_path is not None:
        names.add(FILE)
    if options.manifest_url:
        names.add(HTTP)
    return names


def build_sources(
    options: KubeletOptions, records: KubeletRecords, config: PodConfig
) -> list[tuple[str, Run]]:
    """Builds the enabled sources of pods other than the API, as thread names and functions."""
    clock, node_name = records.clock, options.node_name
    runs: list[tuple[str, Run]] = []

    def record_invalid_manifest(file: str, problem: str) -> None:
        records.recorder.record_node_event("Warning", "InvalidManifest", f"{file}: {problem}")

    if options.pod_manifest_path is not None:
        files = FileSource(
            options.pod_manifest_path,
            node_name,
            config.update,
            clock,
            frequency=options.file_check_frequency,
            report_invalid=record_invalid_manifest,
        )
        runs.append((FILE, files.run))
    if options.manifest_url:
        url = HttpSource(
            options.manifest_url,
            node_name,
            config.update,
            clock,
            frequency=options.http_check_frequency,
            headers=options.manifest_url_headers,
        )
        runs.append((HTTP, url.run))
    return runs


# --- Runs the sync loop's work that waits for the store or the runtime in other threads.


log = structlog.get_logger("kcm.kubelet")

_THREADS = 2


class BackgroundWork:
    """Runs functions in a few threads. A failure is logged, and the function is not run again."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="kcm-background")
        self._stopped = threading.Event()

    def submit(self, work: Callable[[], None]) -> None:
        """Runs the function in another thread, unless the background work was stopped."""
        if not self._stopped.is_set():
            self._pool.submit(_run_and_log, work)

    def stop(self) -> None:
        """Drops the functions that have not started, and does not wait for the others."""
        self._stopped.set()
        self._pool.shutdown(wait=False, cancel_futures=True)


def _run_and_log(work: Callable[[], None]) -> None:
    try:
        work()
    except errors.KcmError as error:
        log.warning("background work failed, the next clean-up tries again", error=str(error))


# --- Builds the components of a kubelet that protect, shut down and report its node.


@dataclass(frozen=True, kw_only=True)
class NodeComponents:
    """The provider of stats, and the managers of evictions, shutdown and the Node object."""

    stats: StatsProvider
    eviction: EvictionManager
    shutdown: ShutdownManager
    manager: NodeManager


def build_node_components(
    options: KubeletOptions,
    dependencies: Dependencies,
    records: KubeletRecords,
    *,
    runtime: RuntimeComponents,
    work: PodWorkComponents,
    prove_address: Callable[[], str],
) -> NodeComponents:
    """Builds the components that protect, shut down and report the node.

    `prove_address` is as for NodeManager.
    """
    stats = StatsProvider(
        runtime.services.runtime,
        records.pods.pods,
        root_dir=options.root_dir,
        pods_dir=options.pods_dir,
        clock=records.clock,
    )
    eviction = EvictionManager(
        options.eviction,
        stats=stats,
        active_pods=records.active_pods.get_all,
        terminator=work.terminator,
        recorder=records.recorder,
        clock=records.clock,
        request_node_report=records.report_requests.request,
        count_eviction=records.metrics.count_eviction,
    )
    shutdown = ShutdownManager(
        options.shutdown_grace_periods,
        records.active_pods.get_all,
        work.terminator,
        recorder=records.recorder,
        clock=records.clock,
        request_node_report=records.report_requests.request,
    )
    manager = _build_node_manager(
        options,
        dependencies,
        records,
        runtime=runtime,
        eviction=eviction,
        shutdown=shutdown,
        prove_address=prove_address,
    )
    return NodeComponents(stats=stats, eviction=eviction, shutdown=shutdown, manager=manager)


def _build_node_manager(
    options: KubeletOptions,
    dependencies: Dependencies,
    records: KubeletRecords,
    *,
    runtime: RuntimeComponents,
    eviction: EvictionManager,
    shutdown: ShutdownManager,
    prove_address: Callable[[], str],
) -> NodeManager:
    version = runtime.services.runtime.version()
    machine = MachineReader(options.root_dir, f"{version.name}://{version.version}", records.clock)
    return NodeManager(
        dependencies.stores.node,
        options,
        current=records.node,
        requests=records.report_requests,
        read_machine=machine.read,
        reserved=sum_reserved(
            machine.read().capacity(options.max_pods),
            (options.system_reserved, options.kube_reserved),
            options.eviction.thresholds,
        ),
        prove_address=prove_address,
        readiness_errors=lambda: [*runtime.state.errors(), *shutdown.readiness_errors()],
        build_conditions=eviction.build_conditions,
        recorder=records.recorder,
        clock=records.clock,
        images=runtime.services.image_store,
    )


def build_usage_reports(
    options: KubeletOptions, dependencies: Dependencies, node: NodeComponents
) -> list[tuple[str, Run]]:
    """Builds the reporter of usage for the metrics API. Returns [] if no usage is reported."""
    if dependencies.write_usage is None:
        return []
    reporter = UsageReporter(
        options.node_name, node.stats, dependencies.write_usage, dependencies.clock
    )
    return [("usage", reporter.run)]
