"""Builds the pod workers of a kubelet, and what they use."""

from __future__ import annotations

from dataclasses import dataclass

from kcm.kubelet.assembly.dependencies import Dependencies
from kcm.kubelet.assembly.records import KubeletRecords, build_locator
from kcm.kubelet.assembly.runtime import RuntimeComponents
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.pod_workers.pod_workers import PodWorkers
from kcm.kubelet.pod_workers.syncer import Syncer
from kcm.kubelet.pod_workers.terminator import Terminator
from kcm.kubelet.pods.mirror_client import MirrorClient


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
