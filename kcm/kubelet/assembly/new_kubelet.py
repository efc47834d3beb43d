"""The composition root: builds every component of a kubelet, each from what was built before it.

Nothing is changed after it was built, so that the order below is the order of dependencies:
records, runtime, pod work, node, sync loop, sources, server. Components that would need each
other share a record below both: pod workers and the status manager `PodStates`, the node manager
and the eviction manager `ReportRequests`, the runtime and the node manager `CurrentNode`.

Source: NewMainKubelet in pkg/kubelet/kubelet.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from kcm.clock import Clock
from kcm.helpers.backoff import Backoff, BackoffPolicy
from kcm.kubelet.assembly.dependencies import Dependencies
from kcm.kubelet.assembly.kubelet import Kubelet, Run
from kcm.kubelet.assembly.root_dir import lock_root_dir
from kcm.kubelet.assembly.runtimes import RuntimeServices, new_runtime_services
from kcm.kubelet.channels import Channels
from kcm.kubelet.config.api import ApiSource
from kcm.kubelet.config.file import FileSource
from kcm.kubelet.config.http import HttpSource
from kcm.kubelet.config.podconfig import PodConfig, SourcesReady
from kcm.kubelet.environment.lookups import PodLocation
from kcm.kubelet.environment.store_lookups import StoreLookups
from kcm.kubelet.eviction.manager import EvictionManager
from kcm.kubelet.kuberuntime.actions import ContainerHealth
from kcm.kubelet.kuberuntime.images import ImageManager
from kcm.kubelet.kuberuntime.manager import RuntimeManager
from kcm.kubelet.kuberuntime.results import ReasonCache
from kcm.kubelet.loop import syncloop
from kcm.kubelet.loop.background import BackgroundWork
from kcm.kubelet.loop.cleanup import Cleanup
from kcm.kubelet.loop.handlers import PodHandlers
from kcm.kubelet.loop.pleg import CHANNEL_CAPACITY, GenericPLEG
from kcm.kubelet.loop.runtime_state import RuntimeState
from kcm.kubelet.metrics import KubeletMetrics
from kcm.kubelet.node.current_node import CurrentNode, ReportRequests
from kcm.kubelet.node.machine import MachineReader
from kcm.kubelet.node.manager import NodeManager
from kcm.kubelet.node.objects import build_node
from kcm.kubelet.node.reserved import sum_reserved
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.pod_workers.active_pods import ActivePods
from kcm.kubelet.pod_workers.pod_cache import PodCache
from kcm.kubelet.pod_workers.pod_states import PodStates
from kcm.kubelet.pod_workers.pod_workers import PodWorkers
from kcm.kubelet.pod_workers.syncer import Syncer
from kcm.kubelet.pod_workers.terminator import Terminator
from kcm.kubelet.pods.mirror_client import MirrorClient
from kcm.kubelet.pods.pod_manager import PodManager
from kcm.kubelet.prober.manager import ProbeManager
from kcm.kubelet.prober.metrics import ProbeMetrics
from kcm.kubelet.prober.results import ProbeResults
from kcm.kubelet.prober.state import ProbeKind
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.kubelet.server.app import KubeletServer, ServerSources
from kcm.kubelet.server.key import NodeKey
from kcm.kubelet.server.pods import NodePods
from kcm.kubelet.server.serving import NodeServer, listen_for_node
from kcm.kubelet.shutdown.manager import ShutdownManager
from kcm.kubelet.stats.provider import StatsProvider
from kcm.kubelet.stats.reporting import UsageReporter
from kcm.kubelet.stats.resource_metrics import ResourceMetrics
from kcm.kubelet.stats.summary import build_summary
from kcm.kubelet.status.manager import StatusManager
from kcm.kubelet.types import API, FILE, HTTP
from kcm.kubelet.volumes.volumes import Volumes


def new_main_kubelet(options: KubeletOptions, dependencies: Dependencies) -> Kubelet:
    """Builds a kubelet; it does nothing until it is started.

    Raises ConfigurationError if another kubelet uses the root folder, and PortTaken.
    """
    with ExitStack() as undo:
        root_lock = undo.enter_context(closing(lock_root_dir(options.root_dir)))
        listener = undo.enter_context(closing(listen_for_node(options)))
        options = replace(options, port=int(listener.getsockname()[1]))
        records = _build_records(options, dependencies)
        runtime = _build_runtime(options, records)
        work = _build_pod_work(options, dependencies, records, runtime)
        node = _build_node(options, dependencies, records, runtime=runtime, work=work)
        loop = _build_loop(options, records, runtime=runtime, work=work, node=node)
        key = NodeKey(dependencies.stores.server, options, records.clock)
        app = _build_app(options, records, runtime=runtime, loop=loop, node=node, key=key)
        kubelet = Kubelet(
            options=options,
            root_lock=root_lock,
            services=runtime.services,
            pods=records.pods,
            statuses=records.statuses,
            node_reports=records.report_requests,
            runtime_manager=runtime.manager,
            runtime_state=runtime.state,
            pleg=runtime.pleg,
            probes=runtime.probes,
            pod_cache=records.cache,
            pod_workers=work.workers,
            channels=records.channels,
            sync_loop=loop.sync_loop,
            ticker=loop.ticker,
            background=loop.background,
            shutdown=node.shutdown,
            server=NodeServer(app, listener, options.certificate),
            runs=(
                ("runtime", runtime.state.run),
                ("pleg", runtime.pleg.run),
                ("status", records.statuses.run),
                ("node", node.manager.run),
                ("workers", work.workers.threads.run_overdue),
                *_build_sources(options, dependencies, records, loop.config),
                ("ticker", loop.ticker.run),
                ("syncloop", loop.sync_loop.run),
                ("node-key", key.run),
                ("eviction", node.eviction.run),
                *_build_usage_reports(options, dependencies, node),
            ),
        )
        undo.pop_all()
    return kubelet


# --- records: what the other components share


@dataclass(frozen=True, kw_only=True)
class _Records:
    clock: Clock
    channels: Channels
    registry: CollectorRegistry
    metrics: KubeletMetrics
    recorder: KubeletEventRecorder
    pods: PodManager
    states: PodStates
    cache: PodCache
    reasons: ReasonCache
    statuses: StatusManager
    active_pods: ActivePods
    node: CurrentNode
    report_requests: ReportRequests
    lookups: StoreLookups
    volumes: Volumes


def _build_records(options: KubeletOptions, dependencies: Dependencies) -> _Records:
    clock, stores = dependencies.clock, dependencies.stores
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    pods, states = PodManager(), PodStates()
    statuses = StatusManager(
        stores.status,
        pods,
        clock,
        could_have_running_containers=states.could_have_running_containers,
    )
    node = build_node(options.node_name, options.node_labels, options.register_with_taints)
    return _Records(
        clock=clock,
        channels=Channels(clock),
        registry=registry,
        metrics=KubeletMetrics(registry),
        recorder=KubeletEventRecorder(dependencies.event_sink, options.node_name),
        pods=pods,
        states=states,
        cache=PodCache(),
        reasons=ReasonCache(),
        statuses=statuses,
        active_pods=ActivePods(pods, states, statuses),
        node=CurrentNode(node),
        report_requests=ReportRequests(),
        lookups=StoreLookups(stores.objects, clock),
        volumes=Volumes(options.pods_dir, options.allowed_host_paths),
    )


# --- the runtime: what runs containers, probes them and watches them


@dataclass(frozen=True, kw_only=True)
class _Runtime:
    services: RuntimeServices
    probes: ProbeManager
    manager: RuntimeManager
    pleg: GenericPLEG
    state: RuntimeState


def _build_runtime(options: KubeletOptions, records: _Records) -> _Runtime:
    services = new_runtime_services(
        options,
        records.clock,
        get_pod=records.pods.by_uid,
        get_pod_cidrs=lambda: records.node.pod_cidrs,
    )
    probes = _build_probes(records, services)
    manager = _build_runtime_manager(options, records, services, probes)
    pleg = GenericPLEG(
        manager,
        cache=records.cache,
        channel=records.channels.channel(syncloop.PLEG, CHANNEL_CAPACITY),
        clock=records.clock,
        metrics=records.metrics,
    )
    state = RuntimeState(services.runtime, records.clock, health_checks={"PLEG": pleg.check_health})
    return _Runtime(services=services, probes=probes, manager=manager, pleg=pleg, state=state)


def _build_probes(records: _Records, services: RuntimeServices) -> ProbeManager:
    """The results of each kind of probe go into the sync loop's channel with the kind's name."""
    channels = {kind: records.channels.channel(kind.value.lower()) for kind in ProbeKind}
    return ProbeManager(
        services.probe_runner,
        records.statuses.get,
        {kind: ProbeResults(channel.offer) for kind, channel in channels.items()},
        clock=records.clock,
        recorder=records.recorder,
        metrics=ProbeMetrics(records.registry),
    )


def _build_runtime_manager(
    options: KubeletOptions, records: _Records, services: RuntimeServices, probes: ProbeManager
) -> RuntimeManager:
    images = None
    if services.image_service is not None:
        images = ImageManager(services.image_service, records.recorder, records.clock)
    policy = BackoffPolicy(options.crash_loop_initial, options.crash_loop_longest)
    return RuntimeManager(
        services.runtime,
        recorder=records.recorder,
        volumes=records.volumes,
        lookups=records.lookups,
        logs_dir=options.logs_dir,
        clock=records.clock,
        locate=_locator(options, records),
        health=ContainerHealth(probes.liveness, probes.startup),
        backoff=Backoff(records.clock, policy),
        images=images,
    )


def _locator(
    options: KubeletOptions, records: _Records
) -> Callable[[tuple[str, ...]], PodLocation]:
    """Returns a function from a pod's IPs to its location on this node."""
    return lambda pod_ips: PodLocation(pod_ips, (options.node_ip,), records.node.allocatable)


# --- pod work: the workers, and what they do


@dataclass(frozen=True, kw_only=True)
class _PodWork:
    mirrors: MirrorClient
    workers: PodWorkers
    terminator: Terminator


def _build_pod_work(
    options: KubeletOptions, dependencies: Dependencies, records: _Records, runtime: _Runtime
) -> _PodWork:
    mirrors = MirrorClient(dependencies.stores.objects, records.node.get_registered)
    syncer = Syncer(
        runtime_manager=runtime.manager,
        statuses=records.statuses,
        volumes=records.volumes,
        lookups=records.lookups,
        mirrors=mirrors,
        prober=runtime.probes,
        reasons=records.reasons,
        recorder=records.recorder,
        clock=records.clock,
        locate=_locator(options, records),
        host_ips=(options.node_ip,),
        request_relist=runtime.pleg.request_relist,
    )
    workers = PodWorkers(
        syncer,
        states=records.states,
        cache=records.cache,
        recorder=records.recorder,
        clock=records.clock,
        metrics=records.metrics,
        notify_work=dependencies.notify_work,
        resync_interval=options.sync_frequency,
        back_off_period=options.back_off_period,
    )
    terminator = Terminator(workers.update_pod, records.recorder, records.clock)
    return _PodWork(mirrors=mirrors, workers=workers, terminator=terminator)


# --- the node: what protects it, ends it and reports it


@dataclass(frozen=True, kw_only=True)
class _Node:
    stats: StatsProvider
    eviction: EvictionManager
    shutdown: ShutdownManager
    manager: NodeManager


def _build_node(
    options: KubeletOptions,
    dependencies: Dependencies,
    records: _Records,
    *,
    runtime: _Runtime,
    work: _PodWork,
) -> _Node:
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
        options, dependencies, records, runtime=runtime, eviction=eviction, shutdown=shutdown
    )
    return _Node(stats=stats, eviction=eviction, shutdown=shutdown, manager=manager)


def _build_node_manager(
    options: KubeletOptions,
    dependencies: Dependencies,
    records: _Records,
    *,
    runtime: _Runtime,
    eviction: EvictionManager,
    shutdown: ShutdownManager,
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
        readiness_errors=lambda: [*runtime.state.errors(), *shutdown.readiness_errors()],
        build_conditions=eviction.build_conditions,
        recorder=records.recorder,
        clock=records.clock,
    )


# --- the sync loop


@dataclass(frozen=True, kw_only=True)
class _Loop:
    background: BackgroundWork
    config: PodConfig
    sync_loop: syncloop.SyncLoop
    ticker: syncloop.Ticker


def _build_loop(
    options: KubeletOptions, records: _Records, *, runtime: _Runtime, work: _PodWork, node: _Node
) -> _Loop:
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
    return _Loop(background=background, config=config, sync_loop=sync_loop, ticker=ticker)


def _build_handlers(
    records: _Records, *, runtime: _Runtime, work: _PodWork, node: _Node, cleanup: Cleanup
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
        lookups=records.lookups,
        admit_handlers=(node.eviction.admit, node.shutdown.admit),
    )


# --- sources of pods


def _source_names(options: KubeletOptions) -> set[str]:
    names = {API}
    if options.pod_manifest_path is not None:
        names.add(FILE)
    if options.manifest_url:
        names.add(HTTP)
    return names


def _build_sources(
    options: KubeletOptions, dependencies: Dependencies, records: _Records, config: PodConfig
) -> list[tuple[str, Run]]:
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
    api = ApiSource(dependencies.stores.watch, node_name, config.update, clock)
    return [*runs, (API, api.run)]


# --- the node's HTTP API


def _build_app(
    options: KubeletOptions,
    records: _Records,
    *,
    runtime: _Runtime,
    loop: _Loop,
    node: _Node,
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


def _build_usage_reports(
    options: KubeletOptions, dependencies: Dependencies, node: _Node
) -> list[tuple[str, Run]]:
    if dependencies.write_usage is None:
        return []
    reporter = UsageReporter(
        options.node_name, node.stats, dependencies.write_usage, dependencies.clock
    )
    return [("usage", reporter.run)]
