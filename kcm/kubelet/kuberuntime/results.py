"""How a sync ended for each container, and why containers wait, by pod.

Source: pkg/kubelet/container/sync_result.go and pkg/kubelet/reason_cache.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from kcm.api.core_v1 import Pod
from kcm.apimachinery.durations import print_seconds
from kcm.kubelet.types import format_pod

CRASH_LOOP = "CrashLoopBackOff"
CONFIG_ERROR = "CreateContainerConfigError"
CREATE_ERROR = "CreateContainerError"
RUN_ERROR = "RunContainerError"
HOOK_ERROR = "PostStartHookError"
IMAGE_NEVER_PULL = "ErrImageNeverPull"
IMAGE_PULL_ERROR = "ErrImagePull"
IMAGE_PULL_BACKOFF = "ImagePullBackOff"


@dataclass(frozen=True)
class StartResult:
    """A container that was to be started. A reason means that it was not."""

    container: str
    reason: str = ""
    message: str = ""


@dataclass
class PodSyncResult:
    """All that a sync of the runtime did; `error` is what failed for the pod as a whole."""

    starts: list[StartResult] = field(default_factory=list)
    error: str = ""

    @property
    def failure(self) -> str:
        """Words for a person, "" when nothing failed."""
        failed = [
            f'failed to "StartContainer" for "{one.container}" with {one.reason}: "{one.message}"'
            for one in self.starts
            if one.reason
        ]
        return ", ".join([*failed, *([self.error] if self.error else [])])

    @property
    def only_waits(self) -> bool:
        """Whether nothing failed but that crashed containers still wait."""
        return not self.error and all(one.reason in ("", CRASH_LOOP) for one in self.starts)


def build_crash_loop_result(pod: Pod, container: str, delay: float) -> StartResult:
    """Returns the result of a crashed container that waits `delay` seconds from its end on."""
    wait = print_seconds(delay)
    text = f"back-off {wait} restarting failed container={container} pod={format_pod(pod)}"
    return StartResult(container, CRASH_LOOP, text)


def build_pull_backoff_result(container: str, image: str, why: str) -> StartResult:
    """A container whose image could not be pulled, until that is tried again."""
    text = f'Back-off pulling image "{image}": {IMAGE_PULL_ERROR}: {why}'
    return StartResult(container, IMAGE_PULL_BACKOFF, text)


class ReasonCache:
    """Why containers could not be started; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reasons: dict[tuple[str, str], tuple[str, str]] = {}

    def update(self, uid: str, result: PodSyncResult) -> None:
        with self._lock:
            for one in result.starts:
                if one.reason:
                    self._reasons[uid, one.container] = (one.reason, one.message)
                else:
                    self._reasons.pop((uid, one.container), None)

    def get(self, uid: str, container: str) -> tuple[str, str] | None:
        """Reason and message."""
        with self._lock:
            return self._reasons.get((uid, container))

    def keep_only(self, uids: Iterable[str]) -> None:
        """Forget all pods but these."""
        kept = set(uids)
        with self._lock:
            self._reasons = {of: why for of, why in self._reasons.items() if of[0] in kept}
