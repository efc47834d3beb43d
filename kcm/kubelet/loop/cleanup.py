"""HandlePodCleanups: what is left over is found and ended, in upstream's order.

Source: HandlePodCleanups and cleanupOrphanedPodDirs in pkg/kubelet/kubelet_pods.go and
kubelet_volumes.go, Kubernetes 1.33. Control groups are the runtime's: they go with a
pod's last sandbox.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import structlog

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.clock import Clock
from kcm.kubelet.cri import ContainerState, SandboxState
from kcm.kubelet.kuberuntime.gc import Known
from kcm.kubelet.kuberuntime.manager import RuntimeManager
from kcm.kubelet.kuberuntime.results import ReasonCache
from kcm.kubelet.kuberuntime.view import RuntimePod
from kcm.kubelet.pod_workers.pod_sync_status import (
    KillPodOptions,
    UpdatePodOptions,
    WorkerState,
    WorkType,
)
from kcm.kubelet.pod_workers.pod_workers import PodWorkers
from kcm.kubelet.pods.mirror_client import MirrorClient
from kcm.kubelet.pods.pod_manager import PodManager, uids
from kcm.kubelet.prober.interface import Prober
from kcm.kubelet.status.manager import StatusManager
from kcm.kubelet.types import SyncPodType, full_name
from kcm.kubelet.volumes.volumes import Volumes

log = structlog.get_logger("kcm.kubelet")

GC_PERIOD = 60.0  # seconds between rounds over all dead containers
_ORPHAN_GRACE = 1  # seconds for what runs and nobody wants


class Cleanup:
    """One pass after the other, by the sync loop's thread."""

    def __init__(
        self,
        *,
        pods: PodManager,
        workers: PodWorkers,
        statuses: StatusManager,
        manager: RuntimeManager,
        prober: Prober,
        volumes: Volumes,
        mirrors: MirrorClient,
        reasons: ReasonCache,
        clock: Clock,
        later: Callable[[Callable[[], None]], None] = lambda work: work(),
    ) -> None:
        """`later` runs what asks the store, so that the loop does not wait for it."""
        self._pods = pods
        self._workers = workers
        self._statuses = statuses
        self._manager = manager
        self._prober = prober
        self._volumes = volumes
        self._mirrors = mirrors
        self._reasons = reasons
        self._clock = clock
        self._later = later
        self._next_gc = 0.0

    def run(self) -> None:
        """One pass. Raises ContainerRuntimeError when the runtime cannot be listed."""
        desired = self._pods.pods()
        known = self._workers.sync_known_pods(desired)
        running = {uid for uid, worker in known.items() if worker.state is not WorkType.TERMINATED}
        found = self._manager.pods()
        self._prober.cleanup(running)
        everybody = uids(desired) | uids(self._pods.mirrors())
        self._statuses.remove_orphans(everybody | set(known))
        self._reasons.keep(everybody | set(known))
        for uid in self._workers.take_restarting():
            self._statuses.forget(uid)  # the end was that of the run before
        self._folders(desired, found)
        self._later(self._orphaned_mirrors)
        self._start_unknown(desired, known)
        self._end_unwanted(found, known)
        self._end_orphans(known)
        self._garbage(gone=any(uid not in known for uid in found))
        self._manager.backoff.gc()

    def _folders(self, desired: Iterable[Pod], found: Mapping[str, RuntimePod]) -> None:
        """Remove volumes of pods of which nothing else is left."""
        wanted = uids(desired)
        for uid in self._volumes.pods():
            if uid in wanted or self._workers.could_have_running_containers(uid):
                continue
            if uid in found and _runs(found[uid]):
                continue
            try:
                self._volumes.tear_down(uid)
            except (OSError, errors.KcmError) as error:
                log.warning("orphaned pod folder was not removed", uid=uid, error=str(error))

    def _orphaned_mirrors(self) -> None:
        for mirror in self._pods.orphaned_mirrors():
            if self._workers.is_mirror_terminating(full_name(mirror)):
                continue
            try:
                self._mirrors.delete(mirror)
            except errors.Temporary as error:
                log.info("orphaned mirror pod stays for now", pod=mirror.key, error=str(error))

    def _start_unknown(self, desired: Iterable[Pod], known: dict[str, WorkerState]) -> None:
        """Pods whose uid was used before, and has just been forgotten."""
        for pod in desired:
            uid = pod.uid or ""
            # Those that were refused at their admission are not started here, either.
            if uid in known or self._statuses.last(pod).phase in ("Failed", "Succeeded"):
                continue
            self._workers.update_pod(
                UpdatePodOptions(
                    SyncPodType.CREATE,
                    pod=pod,
                    mirror_pod=self._pods.mirror_of(pod),
                    start_time=self._clock.monotonic(),
                )
            )
            known[uid] = WorkerState(WorkType.SYNC, has_config=True)

    def _end_unwanted(
        self, found: Mapping[str, RuntimePod], known: Mapping[str, WorkerState]
    ) -> None:
        """What runs without anybody knowing of it ends at once."""
        for uid, pod in found.items():
            if uid in known or not _runs(pod):
                continue
            log.info("Clean up containers for orphaned pod we had not seen before", uid=uid)
            self._workers.update_pod(
                UpdatePodOptions(
                    SyncPodType.KILL,
                    running_pod=pod,
                    kill=KillPodOptions(grace_seconds=_ORPHAN_GRACE),
                )
            )

    def _end_orphans(self, known: Mapping[str, WorkerState]) -> None:
        """Workers of pods that are gone from their source and were not told."""
        for uid, worker in known.items():
            if worker.orphan and worker.state is WorkType.SYNC:
                pod = self._workers.pod_of(uid)
                if pod is not None:
                    self._workers.update_pod(UpdatePodOptions(SyncPodType.KILL, pod=pod))

    def _garbage(self, *, gone: bool) -> None:
        """Dead containers and sandboxes that nobody needs: each minute, and when pods are gone."""
        now = self._clock.monotonic()
        if now < self._next_gc and not gone:
            return
        self._next_gc = now + GC_PERIOD
        workers = self._workers
        known = Known(workers.should_content_be_removed, workers.should_runtime_be_removed)
        self._later(lambda: self._manager.collect_garbage(known))


def _runs(pod: RuntimePod) -> bool:
    return any(one.state is ContainerState.RUNNING for one in pod.containers) or any(
        one.state is SandboxState.READY for one in pod.sandboxes
    )
