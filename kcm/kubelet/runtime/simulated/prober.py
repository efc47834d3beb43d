"""Probes of simulated containers: each kind finds what the script says, whatever it asks."""

from __future__ import annotations

from collections.abc import Callable

from kcm.api.core_v1 import PodStatus
from kcm.clock import Clock
from kcm.kubelet.prober.outcomes import ProbeError, ProbeOutcome, ProbeResult
from kcm.kubelet.prober.probes import Prober
from kcm.kubelet.prober.state import Kind, Subject
from kcm.kubelet.runtime.simulated import probes
from kcm.kubelet.runtime.simulated.containers import Attempt


class SimulatedProber(Prober):
    """In place of the one that makes requests. `find` knows containers by their ids."""

    def __init__(self, find: Callable[[str], Attempt | None], clock: Clock) -> None:
        self._find = find
        self._clock = clock

    def close(self) -> None:
        """Nothing."""

    def probe(self, subject: Subject, status: PodStatus, container_id: str) -> ProbeResult:
        """Raises ProbeError."""
        now = self._clock.now().timestamp()
        found = self._find(container_id)
        if found is None or not found.runs(now):
            raise ProbeError("the container does not run")
        passes = probes.lives if subject.kind is Kind.LIVENESS else probes.has_started
        if passes(found, now):
            return ProbeResult(ProbeOutcome.SUCCESS)
        return ProbeResult(ProbeOutcome.FAILURE, probes.why(subject.spec))
