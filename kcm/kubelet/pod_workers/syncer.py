"""What is done to a pod in each phase of its life: the kubelet's own part.

Source: SyncPod, SyncTerminatingPod, SyncTerminatingRuntimePod, SyncTerminatedPod and killPod
in pkg/kubelet/kubelet.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from kcm import errors
from kcm.api.core_v1 import Pod, PodStatus
from kcm.clock import Clock
from kcm.kubelet.environment.lookups import Lookups, Place
from kcm.kubelet.kuberuntime.manager import RuntimeManager
from kcm.kubelet.kuberuntime.results import ReasonCache
from kcm.kubelet.kuberuntime.view import PodView, RuntimePod
from kcm.kubelet.pod_workers import active_deadline
from kcm.kubelet.pods.mirror_client import MirrorClient
from kcm.kubelet.pods.pod_manager import is_mirror_of
from kcm.kubelet.prober.interface import Prober
from kcm.kubelet.recorder import Recorder
from kcm.kubelet.status.generate import Surroundings, generate
from kcm.kubelet.status.manager import StatusManager
from kcm.kubelet.status.phase import TERMINAL
from kcm.kubelet.sync_context import SyncContext
from kcm.kubelet.types import SyncPodType, is_static_pod
from kcm.kubelet.volumes.volumes import PodVolumes, Volumes

log = structlog.get_logger("kcm.kubelet")


class SyncFailed(errors.KcmError):
    """a sync of the pod's containers failed"""


@dataclass(frozen=True)
class Means:
    """What pods are synced with."""

    manager: RuntimeManager
    statuses: StatusManager
    volumes: Volumes
    lookups: Lookups
    mirrors: MirrorClient
    prober: Prober
    recorder: Recorder
    clock: Clock
    place: Callable[[tuple[str, ...]], Place]
    host_ips: Callable[[], Sequence[str]]
    relist: Callable[[], None] = lambda: None  # look at the runtime soon


class Syncer:
    """See `pod_workers.PodSyncer`. Thread-safe for different pods."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._runtime = means.manager.runtime.version().name
        self.reasons = ReasonCache()

    # --- sync

    def sync_pod(
        self,
        context: SyncContext,
        update_type: SyncPodType,
        pod: Pod,
        mirror: Pod | None,
        view: PodView,
    ) -> bool:
        """Bring the pod to run; True when it has come to its end. Raises what went wrong."""
        means = self._means
        status = self.status_of(pod, view, over=False)
        means.statuses.set(pod, status)
        if status.phase in TERMINAL:
            return True
        context.check()
        if is_static_pod(pod):
            self._mirror(pod, mirror)
        volumes = self._volumes(pod)
        means.prober.add_pod(pod)
        try:
            result = means.manager.sync_pod(pod, view, volumes, context)
        finally:
            means.relist()
        self.reasons.update(pod.uid or "", result)
        if result.failure:
            if not result.only_waits:
                self._say_failed(pod, result.failure)
            raise SyncFailed(result.failure)
        return False

    def status_of(self, pod: Pod, view: PodView, *, over: bool) -> PodStatus:
        """What is to be reported of a pod."""
        means, uid = self._means, pod.uid or ""
        old = means.statuses.last(pod)
        past = active_deadline.is_past(pod, old.start_time, means.clock.now())
        if past and old.phase not in TERMINAL:
            means.recorder.of_pod(pod, "Normal", active_deadline.REASON, active_deadline.MESSAGE)
        around = Surroundings(
            host_ips=means.host_ips(),
            runtime=self._runtime,
            reasons=lambda name: self.reasons.get(uid, name),
            probed=means.prober.update_pod_status,
            evicted=(active_deadline.REASON, active_deadline.MESSAGE)
            if past and old.phase not in TERMINAL
            else None,  # what has ended keeps its reason
        )
        return generate(pod, old, view, around, over=over)

    def _mirror(self, pod: Pod, mirror: Pod | None) -> None:
        """Make the mirror, anew where it shows another version. Never stops the pod itself."""
        mirrors = self._means.mirrors
        try:
            if mirror is not None and (mirror.deleting or not is_mirror_of(mirror, pod)):
                log.info("Trying to delete pod", pod=pod.key, mirror=mirror.uid)
                if not mirrors.delete(mirror):
                    return
                mirror = None
            if mirror is None:
                mirrors.create(pod)
        except errors.Temporary as error:
            log.info("No mirror pod now", pod=pod.key, error=str(error))

    def _volumes(self, pod: Pod) -> PodVolumes:
        means = self._means
        try:
            volumes = means.volumes.set_up(pod, means.lookups, means.place(()))
        except (errors.Temporary, OSError) as error:
            means.recorder.of_pod(pod, "Warning", "FailedMount", str(error))
            raise SyncFailed(f"Unable to attach or mount volumes: {error}") from error
        for note in volumes.notes:
            log.info(note, pod=pod.key)
        return volumes

    def _say_failed(self, pod: Pod, words: str) -> None:
        self._means.recorder.of_pod(pod, "Warning", "FailedSync", f"error syncing pod: {words}")

    # --- terminating

    def sync_terminating_pod(
        self,
        context: SyncContext,
        pod: Pod,
        view: PodView,
        grace: int | None,
        status: Callable[[PodStatus], PodStatus] | None,
    ) -> None:
        """End all containers. Raises ContainerRuntimeError when some have not ended."""
        means = self._means
        found = self.status_of(pod, view, over=False)
        means.statuses.set(pod, status(found) if status else found)
        means.prober.stop_liveness_and_startup(pod)
        try:
            means.manager.kill_pod(pod, view, grace, context)
        except errors.ContainerRuntimeError as error:
            means.recorder.of_pod(pod, "Warning", "FailedKillPod", f"error killing pod: {error}")
            raise
        means.prober.remove_pod(pod)
        stopped = means.manager.now(pod.uid or "")
        if stopped.running():
            names = ", ".join(one.name for one in stopped.running())
            raise errors.ContainerRuntimeError(f"containers still run after the pod's end: {names}")
        means.statuses.set(pod, self.status_of(pod, stopped, over=True))
        means.relist()

    def sync_terminating_runtime_pod(self, context: SyncContext, pod: RuntimePod) -> None:
        """End a pod of which nothing is known but what runs."""
        means = self._means
        means.manager.kill_pod(None, means.manager.view(pod), 1, context)
        means.relist()

    # --- terminated

    def sync_terminated_pod(self, context: SyncContext, pod: Pod, view: PodView) -> None:
        """Clear away what the pod had, and say that it is over."""
        means = self._means
        means.statuses.set(pod, self.status_of(pod, means.manager.now(pod.uid or ""), over=True))
        try:
            means.volumes.tear_down(pod.uid or "")
        except OSError as error:
            raise SyncFailed(f"volumes were not removed: {error}") from error
        means.statuses.terminate(pod)
