"""The interface of probe runners, and the result of a probe."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from kcm import errors
from kcm.api.core_v1 import PodStatus
from kcm.kubelet.prober.state import ProbedContainer

USER_AGENT = "kube-probe/1.33"


class ProbeOutcome(StrEnum):
    """The outcome of one probe. A warning counts as success and is recorded as an Event."""

    SUCCESS = "success"
    WARNING = "warning"
    FAILURE = "failure"


class ProbeError(errors.KcmError):
    """the probe could not be run"""


@dataclass(frozen=True)
class ProbeResult:
    """The outcome of one probe, and its output or the response."""

    outcome: ProbeOutcome
    output: str = ""


class ProbeRunner(Protocol):
    """Runs single probes. Thread-safe."""

    def probe(self, probed: ProbedContainer, status: PodStatus, container_id: str) -> ProbeResult:
        """Runs a probe and returns its result. Raises ProbeError if it cannot be run.

        `container_id` is the runtime's own id of the container.
        """
        ...

    def close(self) -> None:
        """Frees the connections and other resources that probes share."""
        ...
