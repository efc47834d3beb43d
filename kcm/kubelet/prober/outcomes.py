"""What makes a probe, and its result: the outcome and the output."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from kcm import errors
from kcm.api.core_v1 import PodStatus
from kcm.kubelet.prober.state import ProbedContainer

USER_AGENT = "kube-probe/1.33"


class ProbeOutcome(StrEnum):
    """How a probe ended. A warning counts as success and is recorded as an Event."""

    SUCCESS = "success"
    WARNING = "warning"
    FAILURE = "failure"


class ProbeError(errors.KcmError):
    """the probe could not be made"""


@dataclass(frozen=True)
class ProbeResult:
    """The outcome of one probe, and what the container answered."""

    outcome: ProbeOutcome
    output: str = ""


class ProbeRunner(Protocol):
    """Makes single probes. Thread-safe."""

    def probe(self, probed: ProbedContainer, status: PodStatus, container_id: str) -> ProbeResult:
        """Returns a probe's result. Raises ProbeError if it cannot be made.

        `container_id` is the runtime's own id of the container.
        """
        ...

    def close(self) -> None:
        """Frees what probes share."""
        ...
