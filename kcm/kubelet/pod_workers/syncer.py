"""Syncs, terminates and cleans up a pod: the work of each phase of a pod worker.

Source: SyncPod, SyncTerminatingPod, SyncTerminatingRuntimePod, SyncTerminatedPod and killPod in
pkg/kubelet/kubelet.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from kcm import errors
from kcm.api.core_v1 import Pod, PodStatus
from kcm.clock import Clock
from kcm.kubelet import resizing
from kcm.kubelet.environment.variables import Lookups, PodLocation
from kcm.kubelet.kuberuntime.actions import is_resizing
from kcm.kubelet.kuberuntime.manager import RuntimeManager
from kcm.kubelet.kuberuntime.results import ReasonCache
from kcm.kubelet.kuberuntime.view import PodView, RuntimePod
from kcm.kubelet.pod_workers import active_deadline
from kcm.kubelet.pod_workers.allocations import Allocations
from kcm.kubelet.pods.mirror_client import MirrorClient
from kcm.kubelet.pods.pod_manager import is_mirror_of
from kcm.kubelet.prober.interface import PodProber
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.kubelet.status import restarting
from kcm.kubelet.status.generate import StatusContext, generate_status
from kcm.kubelet.status.manager import StatusManager
from kcm.kubelet.status.phase import TERMINAL
from kcm.kubelet.sync_context import SyncContext
from kcm.kubelet.types import SyncPodType, is_static_pod
from kcm.kubelet.volumes.volumes import PodVolumes, Volumes

log = structlog.get_logger("kcm.kubelet")

_ORPHAN_GRACE = 1  # the grace period in seconds of pods that only the runtime knows


class PodSyncFailed(errors.KcmError):
    """a sync of the pod's containers failed"""

    retry_after: float | None = None  # seconds, None for the back-off period


class MountRetries:
    """Says when volumes that could not be mounted are tried again: soon at first.

    What a volume is made of is often created a moment after its pod. Source:
    pkg/util/goroutinemap/exponentialbackoff, Kubernetes 1.33. Thread-safe for different pods.
    """

    FIRST = 0.5  # seconds, as upstream's initialDurationBeforeRetry

    def __init__(self) -> None:
        self._delays: dict[str, float] = {}  # by the pod's uid

    def delay(self, uid: str) -> float:
        """Returns the seconds until the next attempt, each time twice as many."""
        delay = self._delays.get(uid, self.FIRST)
        self._delays[uid] = min(delay * 2, 3600.0)
        return delay

    def forget(self, uid: str) -> None:
        """Begins anew for a pod whose volumes are mounted, or that is gone."""
        self._delays.pop(uid, None)


class Syncer:
    """Implements pod_syncer.PodSyncer. Thread-safe for different pods."""

    def __init__(
        self,
        *,
        runtime_manager: RuntimeManager,
        statuses: StatusManager,
        volumes: Volumes,
        lookups: Lookups,
        mirrors: MirrorClient,
        prober: PodProber,
        reasons: ReasonCache,
        recorder: KubeletEventRecorder,
        clock: Clock,
        allocations: Allocations,
        locate: Callable[[tuple[str, ...]], PodLocation],
        host_ips: Sequence[str],
        request_relist: Callable[..., None],
    ) -> None:
        """`locate` returns the location of a pod with the given IPs.

        `request_relist` makes PLEG list the runtime's pods at once, and inspect the pod whose uid
        it is given.
        """
        self._runtime_manager = runtime_manager
        self._runtime_name = runtime_manager.runtime.version().name
        self._statuses = statuses
        self._volumes = volumes
        self._lookups = lookups
        self._mirrors = mirrors
        self._prober = prober
        self._reasons = reasons
        self._recorder = recorder
        self._clock = clock
        self._allocations = allocations
        self._locate = locate
        self._host_ips = host_ips
        self._request_relist = request_relist
        self._mount_retries = MountRetries()

    # --- sync

    def sync_pod(
        self,
        context: SyncContext,
        update_type: SyncPodType,
        pod: Pod,
        mirror: Pod | None,
        view: PodView,
    ) -> bool:
        """Makes the pod run. Returns True if the pod has ended by itself.

        Raises PodSyncFailed, SyncCancelled and Temporary.
        """
        pod = self._allocations.resize(pod)
        in_progress = is_resizing(pod, view)
        status = self._generate_status(pod, view, over=False)
        self._statuses.set(pod, status)
        if status.phase in TERMINAL:
            return True
        context.check()
        if restarting.has_begun(status):
            view = self._restart_all(context, pod, view)
        if is_static_pod(pod):
            self._sync_mirror(pod, mirror)
        volumes = self._mount_volumes(pod)
        self._prober.add_pod(pod)
        try:
            result = self._runtime_manager.sync_pod(pod, view, volumes, context)
        finally:
            # Resources that have changed are no event, and still the next sync must see them.
            self._request_relist(pod.uid or "" if in_progress else "")
        self._reasons.update(pod.uid or "", result)
        if result.failure:
            if not result.only_waits:
                text = f"error syncing pod: {result.failure}"
                self._recorder.record_pod_event(pod, "Warning", "FailedSync", text)
            raise PodSyncFailed(result.failure)
        if in_progress:  # nothing else would report that it is done
            fresh = self._runtime_manager.look_at(pod.uid or "")
            self._statuses.set(pod, self._generate_status(pod, fresh, over=False))
        return False

    def _restart_all(self, context: SyncContext, pod: Pod, view: PodView) -> PodView:
        """Removes all containers of a pod, and returns the view without them."""
        try:
            self._runtime_manager.remove_all_containers(pod, view, context)
        except errors.ContainerRuntimeError as error:
            raise PodSyncFailed(f"containers were not removed: {error}") from error
        fresh = self._runtime_manager.look_at(pod.uid or "")
        self._statuses.set(pod, self._generate_status(pod, fresh, over=False))
        return fresh

    def _generate_status(self, pod: Pod, view: PodView, *, over: bool) -> PodStatus:
        """Returns the pod status to report. `over` says that no container will be started again."""
        uid = pod.uid or ""
        old = self._statuses.last(pod)
        # A pod that has ended before its deadline keeps its reason.
        too_long = old.phase not in TERMINAL and active_deadline.is_past(
            pod, old.start_time, self._clock.now()
        )
        if too_long:
            self._recorder.record_pod_event(
                pod, "Normal", active_deadline.REASON, active_deadline.MESSAGE
            )
        context = StatusContext(
            host_ips=self._host_ips,
            runtime_name=self._runtime_name,
            waiting_reason=lambda container: self._reasons.get(uid, container),
            apply_probes=self._prober.update_pod_status,
            eviction=(active_deadline.REASON, active_deadline.MESSAGE) if too_long else None,
            resizing=resizing.build_conditions(
                pod, self._allocations.refusal(uid), in_progress=is_resizing(pod, view)
            ),
            restarts_all=True,
        )
        return generate_status(pod, old, view, context, over=over)

    def _sync_mirror(self, pod: Pod, mirror: Pod | None) -> None:
        """Creates the mirror pod, and replaces one of another version of the static pod.

        The static pod runs with or without its mirror, so a failure is only logged.
        """
        try:
            if mirror is not None and (mirror.deleting or not is_mirror_of(mirror, pod)):
                log.info("Trying to delete pod", pod=pod.key, mirror=mirror.uid)
                if not self._mirrors.delete(mirror):
                    return
                mirror = None
            if mirror is None:
                self._mirrors.create(pod)
        except errors.Temporary as error:
            log.info("The mirror pod was not written", pod=pod.key, error=str(error))

    def _mount_volumes(self, pod: Pod) -> PodVolumes:
        try:
            volumes = self._volumes.set_up(pod, self._lookups, self._locate(()))
        except (errors.Temporary, OSError) as error:
            self._recorder.record_pod_event(pod, "Warning", "FailedMount", str(error))
            failure = PodSyncFailed(f"Unable to attach or mount volumes: {error}")
            failure.retry_after = self._mount_retries.delay(pod.uid)
            raise failure from error
        self._mount_retries.forget(pod.uid)
        for message in volumes.messages:
            log.info(message, pod=pod.key)
        return volumes

    # --- terminating

    def sync_terminating_pod(
        self,
        context: SyncContext,
        pod: Pod,
        view: PodView,
        grace: int | None,
        update_status: Callable[[PodStatus], PodStatus] | None,
    ) -> None:
        """Kills all containers. Raises ContainerRuntimeError if some still run."""
        pod = self._allocations.apply(pod)
        status = self._generate_status(pod, view, over=False)
        self._statuses.set(pod, update_status(status) if update_status else status)
        self._prober.stop_liveness_and_startup(pod)
        try:
            self._runtime_manager.kill_pod(pod, view, grace, context)
        except errors.ContainerRuntimeError as error:
            text = f"error killing pod: {error}"
            self._recorder.record_pod_event(pod, "Warning", "FailedKillPod", text)
            raise
        self._prober.remove_pod(pod)
        stopped = self._runtime_manager.look_at(pod.uid or "")
        if stopped.list_running():
            names = ", ".join(container.name for container in stopped.list_running())
            raise errors.ContainerRuntimeError(f"containers still run after the pod's end: {names}")
        self._statuses.set(pod, self._generate_status(pod, stopped, over=True))
        self._request_relist()

    def sync_terminating_runtime_pod(self, context: SyncContext, pod: RuntimePod) -> None:
        """Kills all containers of a pod that only the runtime knows."""
        manager = self._runtime_manager
        manager.kill_pod(None, manager.view(pod), _ORPHAN_GRACE, context)
        self._request_relist()

    # --- terminated

    def sync_terminated_pod(self, context: SyncContext, pod: Pod, view: PodView) -> None:
        """Removes the pod's volumes and reports the final pod status. Raises PodSyncFailed."""
        self._statuses.set(pod, self._generate_status(pod, view, over=True))
        self._allocations.forget(pod.uid)
        self._mount_retries.forget(pod.uid)
        try:
            self._volumes.tear_down(pod.uid or "")
        except OSError as error:
            raise PodSyncFailed(f"volumes were not removed: {error}") from error
        self._statuses.terminate(pod)
