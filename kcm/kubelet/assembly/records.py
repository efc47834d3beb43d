"""Builds what the components of a kubelet share: records, caches and other small objects."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from prometheus_client import CollectorRegistry, ProcessCollector

from kcm.api.core_v1 import Node
from kcm.clock import Clock, RealClock
from kcm.informers.source import ListerWatcher
from kcm.kubelet.channels import Channels
from kcm.kubelet.environment.store_lookups import StoreLookups
from kcm.kubelet.environment.variables import PodLocation
from kcm.kubelet.kuberuntime.results import ReasonCache
from kcm.kubelet.metrics import KubeletMetrics
from kcm.kubelet.node.current_node import CurrentNode, ReportRequests
from kcm.kubelet.node.objects import build_node
from kcm.kubelet.options import CRI, KubeletOptions
from kcm.kubelet.pod_workers.active_pods import ActivePods
from kcm.kubelet.pod_workers.allocations import Allocations
from kcm.kubelet.pod_workers.pod_cache import PodCache
from kcm.kubelet.pod_workers.pod_states import PodStates
from kcm.kubelet.pods.pod_manager import PodManager
from kcm.kubelet.recorder import EventSink, KubeletEventRecorder
from kcm.kubelet.runtime.services import NewRuntimeServices
from kcm.kubelet.stats.reporting import WriteUsage
from kcm.kubelet.status.manager import StatusManager
from kcm.kubelet.tokens.manager import TokenSource
from kcm.kubelet.volumes.local import LocalVolumes
from kcm.kubelet.volumes.mounter import VolumeMounter
from kcm.kubelet.volumes.volumes import Volumes
from kcm.store.objects import ObjectStore

# --- What a kubelet is given at its construction: stores, the clock and optional collaborators.
#
# Source: Dependencies in pkg/kubelet/kubelet.go, Kubernetes 1.33.


Run = Callable[[threading.Event], None]
"""Runs a component in its thread until the event is set."""


class KubeletStore(ObjectStore, ListerWatcher, Protocol):
    """The methods of a store that the kubelet uses; the local and the remote store have them."""


@dataclass(frozen=True, kw_only=True)
class KubeletStores:
    """One store per kind of caller, so that callers do not wait for each other's requests."""

    objects: KubeletStore  # for ConfigMaps, Secrets, Services and mirror pods
    watch: KubeletStore
    status: KubeletStore
    node: KubeletStore
    server: KubeletStore


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    """The stores of a kubelet, and its optional collaborators.

    `notify_work` is called with the uid of a pod that waits to be synced, and must make another
    process call `Kubelet.sync_waiting_pod`. Without it, the kubelet's own threads sync all pods.
    Without `write_usage`, no usage is reported. Without `tokens`, pods get no service account
    tokens. `runtimes` has the container runtimes besides the process runtime, by the values of
    `--container-runtime`. `api_server` is the host and port at which pods reach the API server,
    None for those of its Service.
    """

    stores: KubeletStores
    event_sink: EventSink | None = None
    notify_work: Callable[[str], None] | None = None
    write_usage: WriteUsage | None = None
    tokens: TokenSource | None = None
    runtimes: Mapping[str, NewRuntimeServices] = field(default_factory=dict)
    api_server: tuple[str, int] | None = None
    clock: Clock = field(default_factory=RealClock)


@dataclass(frozen=True, kw_only=True)
class KubeletRecords:
    """The components that other components depend on. Most of them only keep data."""

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
    allocations: Allocations
    node: CurrentNode
    report_requests: ReportRequests
    lookups: StoreLookups
    volumes: Volumes
    local_volumes: LocalVolumes


def build_records(options: KubeletOptions, dependencies: Dependencies) -> KubeletRecords:
    """Builds the components that others depend on."""
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
    node = CurrentNode(
        build_node(options.node_name, options.node_labels, options.register_with_taints),
        lambda: stores.objects.find(Node.resource, options.node_name),
    )
    active_pods = ActivePods(pods, states, statuses)
    recorder = KubeletEventRecorder(dependencies.event_sink, options.node_name)
    local = LocalVolumes(options.local_volumes_dir, stores.objects, clock)
    return KubeletRecords(
        clock=clock,
        channels=Channels(clock),
        registry=registry,
        metrics=KubeletMetrics(registry),
        recorder=recorder,
        pods=pods,
        states=states,
        cache=PodCache(),
        reasons=ReasonCache(),
        statuses=statuses,
        active_pods=active_pods,
        allocations=Allocations(active_pods.get_all, node.get, recorder),
        node=node,
        report_requests=ReportRequests(),
        lookups=StoreLookups(stores.objects, clock, dependencies.tokens, dependencies.api_server),
        volumes=Volumes(
            options.pods_dir,
            options.allowed_host_paths,
            local,
            lambda: node.get().labels,
            VolumeMounter() if options.container_runtime == CRI else None,
        ),
        local_volumes=local,
    )


def build_locator(
    options: KubeletOptions, records: KubeletRecords
) -> Callable[[tuple[str, ...]], PodLocation]:
    """Returns a function that maps a pod's IPs to the pod's location on this node."""
    return lambda pod_ips: PodLocation(pod_ips, (options.node_ip,), records.node.allocatable)
