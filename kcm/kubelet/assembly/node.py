"""Builds the components of a kubelet that protect, shut down and report its node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kcm.kubelet.assembly.records import Dependencies, KubeletRecords, Run
from kcm.kubelet.assembly.runtime import PodWorkComponents, RuntimeComponents
from kcm.kubelet.eviction.manager import EvictionManager
from kcm.kubelet.node.machine import MachineReader
from kcm.kubelet.node.manager import NodeManager
from kcm.kubelet.node.reserved import sum_reserved
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.shutdown.manager import ShutdownManager
from kcm.kubelet.stats.provider import StatsProvider
from kcm.kubelet.stats.reporting import UsageReporter


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
