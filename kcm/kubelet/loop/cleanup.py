"""HandlePodCleanups: finds and removes what pods have left over, in upstream's order.

Source: HandlePodCleanups and cleanupOrphanedPodDirs in pkg/kubelet/kubelet_pods.go and
kubelet_volumes.go, Kubernetes 1.33. Control groups belong to the runtime, which removes them with a
pod's last sandbox.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import structlog

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.clock import Clock
from kcm.kubelet.cri import RuntimeContainerState, SandboxState
from kcm.kubelet.kuberuntime.manager import RuntimeManager
from kcm.kubelet.kuberuntime.results import ReasonCache
from kcm.kubelet.kuberuntime.view import RuntimePod
from kcm.kubelet.pod_workers.pod_states import PodStates
from kcm.kubelet.pod_workers.pod_sync_status import (
    KillPodOptions,
    PodWorkerState,
    UpdatePodOptions,
    WorkType,
)
from kcm.kubelet.pod_workers.pod_workers import PodWorkers
from kcm.kubelet.pods.mirror_client import MirrorClient
from kcm.kubelet.pods.pod_manager import PodManager, uids_of
from kcm.kubelet.prober.interface import PodProber
from kcm.kubelet.status.manager import StatusManager
from kcm.kubelet.status.phase import TERMINAL
from kcm.kubelet.types import SyncPodType, full_name
from kcm.kubelet.volumes.volumes import Volumes

log = structlog.get_logger("kcm.kubelet")

GC_PERIOD = 60.0  # seconds between garbage collections while no pod disappears
_ORPHAN_GRACE = 1  # the grace period in seconds of pods that only the runtime knows


class Cleanup:
    """Removes what pods have left over. It is used by the sync loop's thread only."""

    def __init__(
        self,
        *,
        pods: PodManager,
        states: PodStates,
        workers: PodWorkers,
        statuses: StatusManager,
        runtime_manager: RuntimeManager,
        prober: PodProber,
        volumes: Volumes,
        mirrors: MirrorClient,
        reasons: ReasonCache,
        clock: Clock,
        run_in_background: Callable[[Callable[[], None]], None],
    ) -> None:
        """`run_in_background` runs what waits for the store outside the sync loop."""
        self._pods = pods
        self._states = states
        self._workers = workers
        self._statuses = statuses
        self._runtime_manager = runtime_manager
        self._prober = prober
        self._volumes = volumes
        self._mirrors = mirrors
        self._reasons = reasons
        self._clock = clock
        self._run_in_background = run_in_background
        self._next_gc = 0.0

    def run(self) -> None:
        """Cleans up once. Raises ContainerRuntimeError if the runtime cannot be listed."""
        desired = self._pods.pods()
        states = self._states.sync_known_pods(desired)
        running = {uid for uid, worker in states.items() if worker.state is not WorkType.TERMINATED}
        runtime_pods = self._runtime_manager.pods()
        self._prober.cleanup(running)
        kept = uids_of(desired) | uids_of(self._pods.mirrors()) | set(states)
        self._statuses.remove_orphans(kept)
        self._reasons.keep_only(kept)
        for uid in self._states.take_restarting():
            self._statuses.forget(uid)  # it is that of the pod's earlier run
        self._remove_orphaned_folders(desired, runtime_pods)
        self._run_in_background(self._delete_orphaned_mirrors)
        self._start_unknown_pods(desired, states)
        self._kill_unknown_pods(runtime_pods, states)
        self._kill_orphaned_workers(states)
        self._collect_garbage(pods_gone=any(uid not in states for uid in runtime_pods))
        self._runtime_manager.backoff.gc()

    def _remove_orphaned_folders(
        self, desired: Iterable[Pod], runtime_pods: Mapping[str, RuntimePod]
    ) -> None:
        """Removes the volumes of pods that are not desired and have nothing running."""
        desired_uids = uids_of(desired)
        for uid in self._volumes.pods():
            if uid in desired_uids or self._states.could_have_running_containers(uid):
                continue
            if uid in runtime_pods and _is_running(runtime_pods[uid]):
                continue
            try:
                self._volumes.tear_down(uid)
            except (OSError, errors.KcmError) as error:
                log.warning("orphaned pod folder was not removed", uid=uid, error=str(error))

    def _delete_orphaned_mirrors(self) -> None:
        for mirror in self._pods.list_orphaned_mirrors():
            if self._states.is_static_pod_terminating(full_name(mirror)):
                continue
            try:
                self._mirrors.delete(mirror)
            except errors.Temporary as error:
                log.info("orphaned mirror pod stays for now", pod=mirror.key, error=str(error))

    def _start_unknown_pods(
        self, desired: Iterable[Pod], states: dict[str, PodWorkerState]
    ) -> None:
        """Starts desired pods that have no worker because housekeeping has just forgotten them."""
        for pod in desired:
            uid = pod.uid or ""
            # This leaves out pods that were rejected.
            if uid in states or self._statuses.last(pod).phase in TERMINAL:
                continue
            self._workers.update_pod(
                UpdatePodOptions(
                    SyncPodType.CREATE,
                    pod=pod,
                    mirror_pod=self._pods.mirror_of(pod),
                    start_time=self._clock.monotonic(),
                )
            )
            states[uid] = PodWorkerState(WorkType.SYNC, has_config=True)

    def _kill_unknown_pods(
        self, runtime_pods: Mapping[str, RuntimePod], states: Mapping[str, PodWorkerState]
    ) -> None:
        """Kills pods that run without a worker."""
        for uid, pod in runtime_pods.items():
            if uid in states or not _is_running(pod):
                continue
            log.info("Clean up containers for orphaned pod we had not seen before", uid=uid)
            self._workers.update_pod(
                UpdatePodOptions(
                    SyncPodType.KILL,
                    running_pod=pod,
                    kill=KillPodOptions(grace_seconds=_ORPHAN_GRACE),
                )
            )

    def _kill_orphaned_workers(self, states: Mapping[str, PodWorkerState]) -> None:
        """Kills pods that their source no longer has and whose workers still sync them."""
        for uid, worker in states.items():
            if worker.orphan and worker.state is WorkType.SYNC:
                pod = self._states.pod_of(uid)
                if pod is not None:
                    self._workers.update_pod(UpdatePodOptions(SyncPodType.KILL, pod=pod))

    def _collect_garbage(self, *, pods_gone: bool) -> None:
        """Removes dead containers and sandboxes every GC_PERIOD seconds, and when pods are gone."""
        now = self._clock.monotonic()
        if now < self._next_gc and not pods_gone:
            return
        self._next_gc = now + GC_PERIOD
        self._run_in_background(lambda: self._runtime_manager.collect_garbage(self._states))


def _is_running(pod: RuntimePod) -> bool:
    return any(
        container.state is RuntimeContainerState.RUNNING for container in pod.containers
    ) or any(sandbox.state is SandboxState.READY for sandbox in pod.sandboxes)
