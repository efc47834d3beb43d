"""Generates a pod status from the spec, the last status and the runtime's view: pure functions.

Source: generateAPIPodStatus and convertStatusToAPIStatus in pkg/kubelet/kubelet_pods.go, Kubernetes
1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kcm.api.core_v1 import Pod, PodCondition, PodStatus
from kcm.api.core_v1.pods import HostIP, PodIP
from kcm.api.pods.qos import qos_class
from kcm.kubelet.kuberuntime.view import PodView
from kcm.kubelet.status.conditions import OWNED, build_conditions
from kcm.kubelet.status.containers import (
    ContainerStatusConverter,
    WaitingReason,
    terminate_statuses,
)
from kcm.kubelet.status.phase import FAILED, TERMINAL, compute_phase
from kcm.kubelet.status.restarting import build_restarting, is_restarting_all
from kcm.kubelet.types import is_static_pod

ApplyProbes = Callable[[Pod, PodStatus], PodStatus]
"""Returns the status with `started` and `ready` set for every container."""


@dataclass(frozen=True)
class StatusContext:
    """What a pod status depends on, apart from the pod and the runtime's view."""

    host_ips: Sequence[str]
    runtime_name: str
    waiting_reason: WaitingReason
    apply_probes: ApplyProbes
    eviction: tuple[str, str] | None = None  # reason and message, if the pod is to fail
    resizing: Sequence[PodCondition] = ()  # the conditions about a resize
    # whether all containers start again when a rule says so; simulated nodes do not do that
    restarts_all: bool = False


def generate_status(
    pod: Pod, old: PodStatus, view: PodView, context: StatusContext, *, over: bool
) -> PodStatus:
    """Returns the pod status to report.

    `old` is the status last reported. `over` says that no container will be started again.
    """
    restarts_all = context.restarts_all and is_restarting_all(pod, old, view)
    converter = ContainerStatusConverter(
        pod, view, context.runtime_name, context.waiting_reason, restarts_all
    )
    inits = converter.convert(
        pod.spec.init_containers or (), old.init_container_statuses or (), init=True
    )
    mains = converter.convert(pod.spec.containers, old.container_statuses or (), init=False)
    ephemeral = converter.convert(
        pod.spec.ephemeral_containers or (), old.ephemeral_container_statuses or (), init=False
    )
    status = old.replace(
        init_container_statuses=inits or None,
        container_statuses=mains or None,
        ephemeral_container_statuses=ephemeral or None,
        qos_class=qos_class(pod),
    )
    # The phase depends on which sidecars have started, and that on their startup probes.
    status = context.apply_probes(pod, status)
    phase, reason, message = _phase(pod, old, status, over=over)
    if context.eviction is not None:
        phase, (reason, message) = FAILED, context.eviction
    others = [c for c in old.conditions or () if c.type not in OWNED]
    return status.replace(
        phase=phase,
        reason=reason,
        message=message,
        observed_generation=pod.metadata.generation,
        conditions=[
            *others,
            *build_conditions(pod, status, phase, others, view),
            *(
                build_restarting(pod, view, phase, asked=restarts_all)
                if context.restarts_all
                else ()
            ),
            *(() if phase in TERMINAL else context.resizing),
        ],
        **_addresses(pod, old, view, context.host_ips),
    )


def conclude_status(pod: Pod, status: PodStatus) -> PodStatus:
    """Returns the final status of a pod of which nothing is left on the node.

    All containers that were started are terminated. The phase is Failed, unless it is final already
    or the pod is static.
    """
    mains, inits = terminate_statuses(
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
    """Returns the phase, and its reason and message."""
    statuses = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    phase = compute_phase(pod.spec, statuses, over=over)
    for before in (old.phase, pod.status.phase):
        if before in TERMINAL:
            # A final phase stays, even if the containers of an evicted pod exit with 0.
            phase = before or phase
            break
    if phase != old.phase:
        return phase, None, None
    return phase, old.reason or pod.status.reason, old.message or pod.status.message


def _addresses(
    pod: Pod, old: PodStatus, view: PodView, host_ips: Sequence[str]
) -> dict[str, object]:
    """Returns the fields with addresses. A pod keeps its address after its sandbox has stopped."""
    ips = list(view.ips)
    if pod.spec.host_network:
        ips = list(host_ips)
    elif not ips and old.pod_ip:
        ips = [pod_ip.ip for pod_ip in old.pod_ips or ()] or [old.pod_ip]
    return {
        "host_ip": host_ips[0] if host_ips else None,
        "host_ips": [HostIP(ip=ip) for ip in host_ips] or None,
        "pod_ip": ips[0] if ips else None,
        "pod_ips": [PodIP(ip=ip) for ip in ips] or None,
    }
