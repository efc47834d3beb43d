"""A pod's whole status, from its spec, its last status and what the runtime says: pure.

Source: generateAPIPodStatus and convertStatusToAPIStatus in pkg/kubelet/kubelet_pods.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kcm.api.core_v1 import Pod, PodStatus
from kcm.api.core_v1.pods import HostIP, PodIP
from kcm.kubelet.kuberuntime.view import PodView
from kcm.kubelet.status.conditions import OWNED, conditions_of
from kcm.kubelet.status.containers import Converter, Reasons
from kcm.kubelet.status.phase import FAILED, TERMINAL, phase_of
from kcm.reconcile.podresources import qos_class

ProbeView = Callable[[Pod, PodStatus], PodStatus]  # sets started and ready of each container


@dataclass(frozen=True)
class Surroundings:
    """What a status tells beside the pod's containers."""

    host_ips: Sequence[str]
    runtime: str
    reasons: Reasons
    probed: ProbeView
    evicted: tuple[str, str] | None = None  # reason and message, when the pod has to go


def generate(
    pod: Pod, old: PodStatus, view: PodView, around: Surroundings, *, over: bool
) -> PodStatus:
    """The status to report. `old` is what was reported last; `over`: nothing starts again."""
    converter = Converter(pod, view, around.runtime, around.reasons)
    inits = converter.statuses(
        pod.spec.init_containers or (), old.init_container_statuses or (), init=True
    )
    mains = converter.statuses(pod.spec.containers, old.container_statuses or (), init=False)
    status = old.replace(
        init_container_statuses=inits or None,
        container_statuses=mains or None,
        qos_class=qos_class(pod),
    )
    # Sidecars count as started only once their startup probes say so, and the phase needs that.
    status = around.probed(pod, status)
    status = _with_phase(pod, old, status, over=over)
    if around.evicted is not None:
        reason, message = around.evicted
        status = status.replace(phase=FAILED, reason=reason, message=message)
    status = around.probed(pod, status)
    others = [c for c in old.conditions or () if c.type not in OWNED]
    status = status.replace(conditions=others)
    status = status.replace(conditions=[*others, *conditions_of(pod, status, view)])
    return _with_addresses(pod, old, status, view, around.host_ips)


def _with_phase(pod: Pod, old: PodStatus, status: PodStatus, *, over: bool) -> PodStatus:
    statuses = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    phase = phase_of(pod.spec, statuses, over=over)
    for before in (old.phase, pod.status.phase):
        if before in TERMINAL:
            # The end of a pod is for good, also when the containers of an evicted one end well.
            phase = before or phase
            break
    if phase != old.phase:
        return status.replace(phase=phase, reason=None, message=None)
    return status.replace(
        phase=phase,
        reason=old.reason or pod.status.reason,
        message=old.message or pod.status.message,
    )


def _with_addresses(
    pod: Pod, old: PodStatus, status: PodStatus, view: PodView, host_ips: Sequence[str]
) -> PodStatus:
    """The pod keeps the address it had when its sandbox has ended."""
    ips = list(view.ips)
    if pod.spec.host_network:
        ips = list(host_ips)
    elif not ips and old.pod_ip:
        ips = [found.ip for found in old.pod_ips or ()] or [old.pod_ip]
    return status.replace(
        host_ip=host_ips[0] if host_ips else None,
        host_ips=[HostIP(ip=ip) for ip in host_ips] or None,
        pod_ip=ips[0] if ips else None,
        pod_ips=[PodIP(ip=ip) for ip in ips] or None,
    )
