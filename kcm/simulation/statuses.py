"""From a run to the status that the kubelet reports of it: by the kubelet's own functions."""

from __future__ import annotations

from kcm.api.core_v1 import Pod, PodStatus
from kcm.kubelet.admission import Refusal, rejected
from kcm.kubelet.runtime.simulated.containers import NAME, moment
from kcm.kubelet.runtime.simulated.probes import probed
from kcm.kubelet.status.generate import Surroundings, concluded, generate
from kcm.kubelet.status.merging import merged, with_transition_times
from kcm.kubelet.status.phase import TERMINAL
from kcm.simulation.runs import PodRun


def status_of(pod: Pod, run: PodRun, now: float, host_ip: str) -> PodStatus:
    """The pod's status at `now` (seconds since 1970), on a node with this address."""
    old, started = pod.status, moment(run.seen)
    if run.rejected and run.failure:
        if old.phase in TERMINAL:
            return old
        return rejected(pod, Refusal(*run.failure)).replace(start_time=started)
    around = Surroundings(
        host_ips=(host_ip,),
        runtime=NAME,
        reasons=run.reasons.get,
        probed=probed(run.newest, now),
        evicted=run.failure,
    )
    own = generate(pod, old, run.view(pod, now), around, over=run.over)
    if run.over:
        own = concluded(pod, own)
    own = with_transition_times(own, old, moment(now))
    status = merged(old, own, containers_may_run=not run.over)
    return status if status.start_time else status.replace(start_time=started)
