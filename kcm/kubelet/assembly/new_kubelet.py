"""The composition root: builds every component of a kubelet, each from what was built before it.

Nothing is changed after it was built: `new_main_kubelet` calls the builders of this package in the
order of dependencies. Components that would need each other share a record below both: pod workers
and the status manager `PodStates`, the node manager and the eviction manager `ReportRequests`, the
runtime and the node manager `CurrentNode`.

Source: NewMainKubelet in pkg/kubelet/kubelet.go, Kubernetes 1.33.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import replace

from prometheus_client import generate_latest

from kcm.kubelet.assembly.dependencies import Dependencies, Run
from kcm.kubelet.assembly.kubelet import Kubelet
from kcm.kubelet.assembly.loop import LoopComponents, build_loop, build_sources
from kcm.kubelet.assembly.node import NodeComponents, build_node_components, build_usage_reports
from kcm.kubelet.assembly.pod_work import PodWorkComponents, build_pod_work
from kcm.kubelet.assembly.records import KubeletRecords, build_records
from kcm.kubelet.assembly.root_dir import lock_root_dir
from kcm.kubelet.assembly.runtime import RuntimeComponents, build_runtime
from kcm.kubelet.config.api import ApiSource
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.server.app import KubeletServer, ServerSources
from kcm.kubelet.server.key import NodeKey
from kcm.kubelet.server.pods import NodePods
from kcm.kubelet.server.serving import NodeServer, listen_for_node
from kcm.kubelet.stats.resource_metrics import ResourceMetrics
from kcm.kubelet.stats.summary import build_summary


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
