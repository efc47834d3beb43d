"""Builds the container runtime of a kubelet, its probes, its manager and its PLEG."""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import ModuleType

from kcm.clock import Clock, RealClock
from kcm.errors import ConfigurationError
from kcm.helpers.backoff import Backoff, BackoffPolicy
from kcm.kubelet.assembly.records import Dependencies, KubeletRecords, Run, build_locator
from kcm.kubelet.containers.dns import PodDNS
from kcm.kubelet.containers.log_rotation import LogLimits, LogRotator
from kcm.kubelet.containers.user_namespaces import UserNamespaces
from kcm.kubelet.images.garbage import ImageGarbageCollector
from kcm.kubelet.images.plugins import CredentialPlugins, load_plugins
from kcm.kubelet.images.store import ImageUser
from kcm.kubelet.kuberuntime.actions import ContainerHealth
from kcm.kubelet.kuberuntime.images import ImageManager, NodeImages, StoredImages
from kcm.kubelet.kuberuntime.manager import RuntimeManager
from kcm.kubelet.kuberuntime.preparation import ContainerPreparation
from kcm.kubelet.kuberuntime.security_context import RuntimeSecurity
from kcm.kubelet.loop import syncloop
from kcm.kubelet.loop.pleg import CHANNEL_CAPACITY, GenericPLEG, RuntimeState
from kcm.kubelet.options import CRI, PROCESS, KubeletOptions
from kcm.kubelet.pod_workers.pod_workers import PodWorkers
from kcm.kubelet.pod_workers.syncer import Syncer
from kcm.kubelet.pod_workers.terminator import Terminator
from kcm.kubelet.pods.mirror_client import MirrorClient
from kcm.kubelet.prober.manager import ProbeManager
from kcm.kubelet.prober.metrics import ProbeMetrics
from kcm.kubelet.prober.probes import Prober
from kcm.kubelet.prober.state import ProbeKind, ProbeResults
from kcm.kubelet.runtime.process.options import ProcessOptions
from kcm.kubelet.runtime.process.runtime import ProcessRuntime
from kcm.kubelet.runtime.services import RuntimeServices


@dataclass(frozen=True, kw_only=True)
class RuntimeComponents:
    """The container runtime, its probes, its manager, its PLEG and its health."""

    services: RuntimeServices
    probes: ProbeManager
    manager: RuntimeManager
    pleg: GenericPLEG
    state: RuntimeState


def build_runtime(
    options: KubeletOptions, dependencies: Dependencies, records: KubeletRecords
) -> RuntimeComponents:
    """Builds the container runtime and its probes, manager and PLEG. Raises ConfigurationError."""
    runtimes = {PROCESS: new_process_services, CRI: load_cri_services, **dependencies.runtimes}
    if options.container_runtime not in runtimes:
        names = " or ".join(sorted(runtimes))
        raise ConfigurationError(
            f"--container-runtime {options.container_runtime!r}: this process has only {names}"
        )
    services = runtimes[options.container_runtime](
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
    return RuntimeComponents(
        services=services, probes=probes, manager=manager, pleg=pleg, state=state
    )


def _build_probes(records: KubeletRecords, services: RuntimeServices) -> ProbeManager:
    """Builds the probe manager. Each kind of probe sends its results to the channel of its name."""
    channels = {kind: records.channels.channel(kind.value.lower()) for kind in ProbeKind}
    return ProbeManager(
        services.probe_runner,
        records.statuses.get,
        {kind: ProbeResults(channel.offer) for kind, channel in channels.items()},
        clock=records.clock,
        recorder=records.recorder,
        metrics=ProbeMetrics(records.registry),
    )


def _load_plugins(options: KubeletOptions, clock: Clock) -> CredentialPlugins | None:
    config, folder = (
        options.image_credential_provider_config,
        options.image_credential_provider_bin_dir,
    )
    if config is None or folder is None:
        return None
    return CredentialPlugins(load_plugins(config, folder), clock)


def _build_runtime_manager(
    options: KubeletOptions,
    records: KubeletRecords,
    services: RuntimeServices,
    probes: ProbeManager,
) -> RuntimeManager:
    service, store = services.image_service, services.image_store
    if service is None and store is not None:
        service = StoredImages(
            store,
            records.lookups,
            at_once=options.max_parallel_image_pulls,
            plugins=_load_plugins(options, records.clock),
        )
    images = None
    if service is not None:
        manager = ImageManager(service, records.recorder, records.clock)
        images = NodeImages(manager, store)
    preparation = None
    if services.is_prepared:
        dns = PodDNS(options.dns, records.recorder)
        preparation = ContainerPreparation(
            records.volumes.folder,
            dns,
            records.lookups,
            users=UserNamespaces(options.pods_dir),
            get_status=services.runtime.status,
            cluster_domain=options.dns.domain,
        )
    policy = BackoffPolicy(options.crash_loop_initial, options.crash_loop_longest)
    return RuntimeManager(
        services.runtime,
        recorder=records.recorder,
        volumes=records.volumes,
        lookups=records.lookups,
        logs_dir=options.logs_dir,
        clock=records.clock,
        locate=build_locator(options, records),
        health=ContainerHealth(probes.liveness, probes.startup),
        backoff=Backoff(records.clock, policy),
        images=images,
        security=services.security,
        preparation=preparation,
        seccomp_dir=options.seccomp_dir,
    )


def check_runtime(options: KubeletOptions) -> None:
    """Raises ConfigurationError if the container runtime at an endpoint does not answer."""
    if options.container_runtime == CRI:
        _load_cri().connect(options.container_runtime_endpoint, RealClock()).close()


def load_cri_services(options: KubeletOptions, clock: Clock, **_: object) -> RuntimeServices:
    """Returns the container runtime at an endpoint. Raises ConfigurationError."""
    services: RuntimeServices = _load_cri().new_cri_services(options, clock)
    return services


def _load_cri() -> ModuleType:
    try:
        # Other kubelets need neither grpcio nor the time that it takes to import.
        from kcm.kubelet.runtime.cri import services  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "grpc":
            raise
        raise ConfigurationError(
            "--container-runtime cri needs grpcio: pip install 'kcm[cri]'"
        ) from error
    return services


def build_container_upkeep(
    options: KubeletOptions, records: KubeletRecords, runtime: RuntimeComponents
) -> list[tuple[str, Run]]:
    """Builds what a runtime leaves to the kubelet to do in the background."""
    services = runtime.services
    runs: list[tuple[str, Run]] = [*services.runs]
    if services.events is not None:
        follow, relist = services.events.run, runtime.pleg.request_relist
        runs.append(("events", lambda stop: follow(stop, relist)))
    if services.reopen_log is not None:
        limits = LogLimits(
            options.container_log_max_size,
            options.container_log_max_files,
            options.container_log_monitor_interval,
        )
        rotator = LogRotator(services.runtime, services.reopen_log, limits, records.clock)
        runs.append(("logs", rotator.run))
    if services.image_store is not None:
        collector = ImageGarbageCollector(
            services.image_store,
            options.image_limits,
            records.clock,
            report=lambda reason, text: records.recorder.record_node_event("Warning", reason, text),
        )
        runs.append(("images", collector.run))
    return runs


# --- Builds the process runtime, with its prober.


def new_process_services(options: KubeletOptions, *_: object, **__: object) -> RuntimeServices:
    """Returns the process runtime with its prober. It needs nothing but the options."""
    runtime = new_process_runtime(options)
    security = RuntimeSecurity(ImageUser(os.geteuid()), options.unenforced_security)
    return RuntimeServices(runtime, Prober(runtime), security=security)


def new_process_runtime(options: KubeletOptions) -> ProcessRuntime:
    """Returns the process runtime in the kubelet's root folder."""
    return ProcessRuntime(
        ProcessOptions(
            root=options.runtime_dir,
            host_ip=options.node_ip,
            own_addresses=options.own_pod_addresses,
            container_log_max_size=options.container_log_max_size,
            container_log_max_files=options.container_log_max_files,
            pod_max_pids=options.pod_max_pids if options.pod_max_pids > 0 else None,
            adopts_orphans=options.adopts_orphans,
            allowed_users=options.allowed_users,
            allowed_groups=options.allowed_groups,
        )
    )


# --- Builds the pod workers of a kubelet, and what they use.


@dataclass(frozen=True, kw_only=True)
class PodWorkComponents:
    """The pod workers, the client for mirror pods, and the terminator of pods."""

    mirrors: MirrorClient
    workers: PodWorkers
    terminator: Terminator


def build_pod_work(
    options: KubeletOptions,
    dependencies: Dependencies,
    records: KubeletRecords,
    runtime: RuntimeComponents,
) -> PodWorkComponents:
    """Builds the pod workers, the client for mirror pods, and the terminator."""
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
        allocations=records.allocations,
        locate=build_locator(options, records),
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
    return PodWorkComponents(mirrors=mirrors, workers=workers, terminator=terminator)
