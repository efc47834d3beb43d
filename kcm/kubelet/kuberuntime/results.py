"""The results of syncs of pods, and the reasons why containers wait.

Source: pkg/kubelet/container/sync_result.go and pkg/kubelet/reason_cache.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from kcm.api.core_v1 import Pod
from kcm.apimachinery.durations import format_seconds
from kcm.kubelet.types import format_pod

CRASH_LOOP = "CrashLoopBackOff"
CONFIG_ERROR = "CreateContainerConfigError"
CREATE_ERROR = "CreateContainerError"
RESIZE_ERROR = "ResizeContainerError"
RUN_ERROR = "RunContainerError"
HOOK_ERROR = "PostStartHookError"
IMAGE_INSPECT_ERROR = "ImageInspectError"
IMAGE_NEVER_PULL = "ErrImageNeverPull"
IMAGE_PULL_ERROR = "ErrImagePull"
IMAGE_PULL_BACKOFF = "ImagePullBackOff"


@dataclass(frozen=True)
class StartResult:
    """The result of starting a container. If it has a reason, the container was not started."""

    container: str
    reason: str = ""
    message: str = ""


@dataclass
class PodSyncResult:
    """The result of a sync of a pod.

    `error` is a failure that concerns the pod as a whole, or "".
    """

    starts: list[StartResult] = field(default_factory=list)
    error: str = ""

    @property
    def failure(self) -> str:
        """The message of all failures, or "" if there are none."""
        failed = [
            f'failed to "StartContainer" for "{start.container}" '
            f'with {start.reason}: "{start.message}"'
            for start in self.starts
            if start.reason
        ]
        return ", ".join([*failed, *([self.error] if self.error else [])])

    @property
    def only_waits(self) -> bool:
        """Whether nothing failed except that containers wait in crash-loop back-off."""
        return not self.error and all(start.reason in ("", CRASH_LOOP) for start in self.starts)


def build_crash_loop_result(pod: Pod, container: str, delay: float) -> StartResult:
    """Returns the result of a container that waits `delay` seconds after its exit."""
    wait = format_seconds(delay)
    text = f"back-off {wait} restarting failed container={container} pod={format_pod(pod)}"
    return StartResult(container, CRASH_LOOP, text)


def build_pull_backoff_result(container: str, image: str, why: str) -> StartResult:
    """Returns the result of a container whose image pull waits after a failure.

    `why` is that failure.
    """
    text = f'Back-off pulling image "{image}": {IMAGE_PULL_ERROR}: {why}'
    return StartResult(container, IMAGE_PULL_BACKOFF, text)


class ReasonCache:
    """The reasons why containers were not started. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reasons: dict[tuple[str, str], tuple[str, str]] = {}

    def update(self, uid: str, result: PodSyncResult) -> None:
        """Replaces the reasons of the containers that the result of a sync contains."""
        with self._lock:
            for start in result.starts:
                if start.reason:
                    self._reasons[uid, start.container] = (start.reason, start.message)
                else:
                    self._reasons.pop((uid, start.container), None)

    def get(self, uid: str, container: str) -> tuple[str, str] | None:
        """Returns the reason and message why the container was not started, or None if it was."""
        with self._lock:
            return self._reasons.get((uid, container))

    def keep_only(self, uids: Iterable[str]) -> None:
        """Forgets all pods except those with the given uids."""
        kept = set(uids)
        with self._lock:
            self._reasons = {of: why for of, why in self._reasons.items() if of[0] in kept}
