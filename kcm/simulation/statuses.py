"""From a run to the status that a kubelet reports of it.

Conditions that others own (readiness gates, DisruptionTarget) are kept as they are.
Source: pkg/kubelet/kubelet_pods.go (generateAPIPodStatus, getPhase,
convertToAPIContainerStatuses) and pkg/kubelet/status/generate.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.core_v1 import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodStatus,
    ResourceRequirements,
)
from kcm.api.core_v1.pods import HostIP, PodIP
from kcm.reconcile.podresources import qos_class
from kcm.simulation import conditions, words
from kcm.simulation.lifecycle import spec_of
from kcm.simulation.runs import ContainerRun, Ended, Phase, PodRun
from kcm.simulation.values import moment, printed

_NEVER_STARTED = 0.0


def status_of(pod: Pod, run: PodRun, now: float, host_ip: str) -> PodStatus:
    """The pod's status at `now`, on a node with this address."""
    old = pod.status
    phase = phase_of(pod, run)
    statuses = {c.name: _container_status(pod, run, c, now) for c in run.containers}
    init = [statuses[c.name] for c in run.of("init", "sidecar")]
    mains = [statuses[c.name] for c in run.of("main")]
    ips = ([host_ip] if pod.spec.host_network else list(run.ips)) if run.sandbox else []
    reason, message = run.failure or (None, None)
    if run.rejected:
        init, mains = [], []
    return old.replace(
        phase=phase,
        reason=reason or (old.reason if phase == "Failed" else None),
        message=message or (old.message if phase == "Failed" else None),
        conditions=conditions.of_pod(pod, run, statuses, phase, now),
        host_ip=host_ip,
        host_ips=[HostIP(ip=host_ip)],
        pod_ip=ips[0] if ips else None,
        pod_ips=[PodIP(ip=ip) for ip in ips] or None,
        start_time=moment(run.started),
        init_container_statuses=init or None,
        container_statuses=mains or None,
        qos_class=qos_class(pod),
    )


def phase_of(pod: Pod, run: PodRun) -> str:
    """Pending, Running, Succeeded or Failed; the last two are never left."""
    if pod.status.phase in ("Succeeded", "Failed"):
        return pod.status.phase
    if run.rejected or (run.failure and run.over):
        return "Failed"
    inits, mains = run.of("init"), run.of("main")
    if any(c.gone and c.ended and c.ended.exit_code for c in inits) and not pod.deleting:
        return "Failed" if run.over else "Pending"
    if any(not c.gone for c in inits):
        return "Pending"
    if any(c.phase in _UNBORN or (c.phase in _PULLING and c.ended is None) for c in mains):
        return "Pending"
    if any(c.phase is Phase.RUNNING for c in mains):
        return "Running"
    return _phase_without_running(pod, run, mains)


_UNBORN = (Phase.WAITING, Phase.CREATING)
_PULLING = (Phase.PULL_FAILED, Phase.PULL_BACKOFF)


def _phase_without_running(pod: Pod, run: PodRun, mains: Sequence[ContainerRun]) -> str:
    if not run.over or any(not c.gone for c in mains):
        return "Running"  # on its way to the next start, or sidecars have still to end
    succeeded = all(c.ended is not None and c.ended.exit_code == 0 for c in mains)
    return "Succeeded" if succeeded else "Failed"


def _container_status(pod: Pod, run: PodRun, c: ContainerRun, now: float) -> ContainerStatus:
    spec = spec_of(pod, c.name)
    image = spec.image or ""
    created = c.phase is Phase.RUNNING or (c.ended is not None and bool(c.ended.container_id))
    gone_well = c.gone and c.ended is not None and c.ended.exit_code == 0
    runs = c.phase is Phase.RUNNING
    return ContainerStatus(
        name=c.name,
        state=_state(pod, run, c, spec),
        last_state=_last_state(c),
        ready=gone_well if c.sort == "init" else c.ready(now),
        restart_count=c.restarts,
        image=image,
        image_id=words.image_id(image) if created else "",
        container_id=words.container_id(pod, c) if created else None,
        started=c.sort != "init" and words.is_started(spec, c, now),
        allocated_resources=spec.resources.requests or None if runs else None,
        resources=_resources(spec) if runs else None,
    )


def _resources(spec: Container) -> ResourceRequirements | None:
    return spec.resources if spec.resources.requests or spec.resources.limits else None


def _state(pod: Pod, run: PodRun, c: ContainerRun, spec: Container) -> ContainerState:
    if c.phase is Phase.RUNNING:
        return ContainerState(running=ContainerStateRunning(started_at=moment(c.started)))
    if c.phase is Phase.EXITED and c.ended is not None:
        return ContainerState(terminated=_terminated(c.ended))
    reason, message = _waiting(pod, run, c, spec)
    return ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))


def _waiting(pod: Pod, run: PodRun, c: ContainerRun, spec: Container) -> tuple[str, str | None]:
    if c.phase is Phase.PULL_FAILED:
        return "ErrImagePull", words.NO_SUCH_IMAGE
    if c.phase is Phase.PULL_BACKOFF:
        text = f'Back-off pulling image "{spec.image}": ErrImagePull: {words.NO_SUCH_IMAGE}'
        return "ImagePullBackOff", text
    if c.phase is Phase.BACKOFF:
        text = f"back-off {printed(c.delay)} restarting failed container={c.name}"
        return "CrashLoopBackOff", f"{text} pod={words.described(pod)}"
    return ("PodInitializing" if run.of("init", "sidecar") else "ContainerCreating"), None


def _last_state(c: ContainerRun) -> ContainerState:
    if c.ended is None or c.phase is Phase.EXITED:
        return ContainerState()
    return ContainerState(terminated=_terminated(c.ended))


def _terminated(ended: Ended) -> ContainerStateTerminated:
    ran = ended.started != _NEVER_STARTED
    return ContainerStateTerminated(
        exit_code=ended.exit_code,
        reason=ended.reason,
        message=ended.message or None,
        started_at=moment(ended.started) if ran else None,
        finished_at=moment(ended.finished) if ran else None,
        container_id=ended.container_id or None,
    )
