"""The metrics of the controller.

Source: pkg/controller/volume/attachdetach/metrics/metrics.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Literal

from kcm.sdk import Counter

FORCED = Counter(
    "attach_detach_controller_attachdetach_controller_forced_detaches",
    "Number of times the A/D Controller performed a forced detach",
    ("reason",),
)
ForceReason = Literal["", "timeout", "out-of-service"]
TIMEOUT: ForceReason = "timeout"
OUT_OF_SERVICE: ForceReason = "out-of-service"
