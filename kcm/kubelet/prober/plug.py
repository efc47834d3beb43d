"""How probes come into an agent: results go into the sync loop's channels."""

from __future__ import annotations

from collections.abc import Callable

from kcm.kubelet.assembly.agent import Agent
from kcm.kubelet.prober import interface
from kcm.kubelet.prober.manager import ProbeManager
from kcm.kubelet.prober.metrics import ProbeMetrics
from kcm.kubelet.prober.probes import Prober
from kcm.kubelet.prober.results import Result, Results, Update
from kcm.kubelet.prober.state import Kind


def probe_manager(
    agent: Agent, metrics: ProbeMetrics | None = None, prober: Prober | None = None
) -> ProbeManager:
    """The probes of an agent: its plug `prober`. They have to be started. `prober` makes each of
    them; by default, with requests and commands."""
    runtime = agent.runtime.version().name

    def into(kind: Kind) -> Callable[[Update], object]:
        channel = agent.channel(kind.value.lower())

        def put(update: Update) -> None:
            success = update.result is Result.SUCCESS
            told = f"{runtime}://{update.container_id}"
            channel.offer(interface.Update(update.pod_uid, told, success))

        return put

    return ProbeManager(
        prober or Prober(agent.runtime),
        agent.statuses.get,
        {kind: Results(into(kind)) for kind in Kind},
        agent.clock,
        lambda pod, reason, text, name: agent.recorder.of_pod(pod, "Warning", reason, text, name),
        metrics=metrics,
    )
