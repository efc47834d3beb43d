"""A pod's whole status, from its spec, its last status and what the runtime says: pure.

Source: generateAPIPodStatus and convertStatusToAPIStatus in pkg/kubelet/kubelet_pods.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kcm.api.core_v1 import Pod, PodStatus
from kcm.api.core_v1.pods import HostIP, PodIP
from kcm.helpers.podresources import qos_class
from kcm.kubelet.kuberuntime.view import PodView
from kcm.kubelet.status.conditions import OWNED, conditions_of
from kcm.kubelet.status.containers import Converter, Reasons, terminated_statuses
from kcm.kubelet.status.phase import FAILED, TERMINAL, phase_of
from kcm.kubelet.types import is_static_pod

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
    phase, reason, message = _phase(pod, old, status, over=over)
    if around.evicted is not None:
        phase, (reason, message) = FAILED, around.evicted
    others = [c for c in old.conditions or () if c.type not in OWNED]
    return status.replace(
        phase=phase,
        reason=reason,
        message=message,
        conditions=[*others, *conditions_of(pod, status, phase, others, view)],
        **_addresses(pod, old, view, around.host_ips),
    )


def concluded(pod: Pod, status: PodStatus) -> PodStatus:
    """The status of a pod of which nothing is left: all its containers have an end, and so has
    its phase."""
    mains, inits = terminated_statuses(
        pod, status.container_statuses or (), status.init_container_statuses or ()
    )
    over = is_static_pod(pod) or status.phase in TERMINAL
    return status.replace(
        container_statuses=mains,
        init_container_statuses=inits,
        phase=status.phase if over else FAILED,
    )


def _phase(
    pod: Pod, old: PodStatus, status: PodStatus, *, over: bool
) -> tuple[str, str | None, str | None]:
    """The phase, its reason and message."""
    statuses = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    phase = phase_of(pod.spec, statuses, over=over)
    for before in (old.phase, pod.status.phase):
        if before in TERMINAL:
            # The end of a pod is for good, also when the containers of an evicted one end well.
            phase = before or phase
            break
    if phase != old.phase:
        return phase, None, None
    return phase, old.reason or pod.status.reason, old.message or pod.status.message


def _addresses(
    pod: Pod, old: PodStatus, view: PodView, host_ips: Sequence[str]
) -> dict[str, object]:
    """The pod keeps the address it had when its sandbox has ended."""
    ips = list(view.ips)
    if pod.spec.host_network:
        ips = list(host_ips)
    elif not ips and old.pod_ip:
        ips = [found.ip for found in old.pod_ips or ()] or [old.pod_ip]
    return {
        "host_ip": host_ips[0] if host_ips else None,
        "host_ips": [HostIP(ip=ip) for ip in host_ips] or None,
        "pod_ip": ips[0] if ips else None,
        "pod_ips": [PodIP(ip=ip) for ip in ips] or None,
    }
