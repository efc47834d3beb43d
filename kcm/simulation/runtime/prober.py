"""Runs the probes of simulated containers: their scripts decide the results."""

from __future__ import annotations

from collections.abc import Callable

from kcm.api.core_v1 import PodStatus
from kcm.clock import Clock
from kcm.kubelet.prober.state import (
    ProbedContainer,
    ProbeError,
    ProbeKind,
    ProbeOutcome,
    ProbeResult,
)
from kcm.simulation.runtime import probes
from kcm.simulation.runtime.containers import Attempt


class SimulatedProber:
    """Computes the results of probes from the containers' scripts."""

    def __init__(self, find: Callable[[str], Attempt | None], clock: Clock) -> None:
        self._find = find
        self._clock = clock

    def close(self) -> None:
        """Does nothing."""

    def probe(self, probed: ProbedContainer, status: PodStatus, container_id: str) -> ProbeResult:
        """Returns the result by the container's script. Raises ProbeError if it does not run."""
        now = self._clock.now().timestamp()
        attempt = self._find(container_id)
        if attempt is None or not attempt.runs(now):
            raise ProbeError("the container does not run")
        passes = probes.lives if probed.kind is ProbeKind.LIVENESS else probes.has_started
        if passes(attempt, now):
            return ProbeResult(ProbeOutcome.SUCCESS)
        return ProbeResult(ProbeOutcome.FAILURE, probes.describe_failure(probed.spec))
