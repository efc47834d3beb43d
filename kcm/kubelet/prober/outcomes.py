"""The result of one probe: its outcome and its output."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kcm import errors

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
