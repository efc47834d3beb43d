"""Generates pod statuses from runs, with the kubelet's own functions."""

from __future__ import annotations

from kcm.api.core_v1 import Pod, PodStatus
from kcm.kubelet.admission import Rejection, build_rejected_status
from kcm.kubelet.resizing import build_conditions
from kcm.kubelet.status.generate import StatusContext, conclude_status, generate_status
from kcm.kubelet.status.merging import merge_status, set_transition_times
from kcm.kubelet.status.phase import TERMINAL
from kcm.simulation.runs import PodRun
from kcm.simulation.runtime.containers import NAME, moment
from kcm.simulation.runtime.probes import build_apply_probes


def status_of(pod: Pod, run: PodRun, now: float, host_ip: str) -> PodStatus:
    """Returns the pod status at `now` (seconds since 1970), on a node with this address."""
    old, started = pod.status, moment(run.seen)
    if run.rejected and run.failure:
        if old.phase in TERMINAL:
            return old
        return build_rejected_status(pod, Rejection(*run.failure)).replace(start_time=started)
    context = StatusContext(
        host_ips=(host_ip,),
        runtime_name=NAME,
        waiting_reason=run.reasons.get,
        apply_probes=build_apply_probes(run.newest, now),
        eviction=run.failure,
        resizing=build_conditions(pod, run.refusal, in_progress=False),
    )
    own = generate_status(pod, old, run.view(pod, now), context, over=run.over)
    if run.over:
        own = conclude_status(pod, own)
    own = set_transition_times(own, old, moment(now))
    status = merge_status(old, own, could_have_running_containers=not run.over)
    return status if status.start_time else status.replace(start_time=started)
