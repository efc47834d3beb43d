"""What PLEG last saw of each pod, for pod workers that wait for something newer.

Source: pkg/kubelet/container/cache.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from kcm import errors
from kcm.kubelet.kuberuntime.view import PodView


@dataclass(frozen=True)
class _Entry:
    view: PodView
    error: Exception | None
    modified: float


class PodCache:
    """The newest view of each pod. Thread-safe. Times are of the clock's `monotonic`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._entries: dict[str, _Entry] = {}
        self._all_newer_than = 0.0  # every pod was looked at after this time
        self._stopped = False

    def get(self, uid: str) -> PodView:
        """Returns the pod as last seen, or an empty view of a pod that was never seen.

        Raises the error with which the last look at the pod failed.
        """
        with self._changed:
            return _view_of(self._entries.get(uid), uid)

    def get_newer_than(self, uid: str, at: float, timeout: float = 300.0) -> PodView:
        """Waits until the pod was looked at after `at`, and returns it as then seen.

        Raises the error with which that look failed, and ContainerRuntimeError after `timeout`
        seconds or when the kubelet stops.
        """
        with self._changed:
            if not self._changed.wait_for(
                lambda: self._stopped or self._is_newer(uid, at), timeout
            ):
                raise errors.ContainerRuntimeError(
                    f"the runtime was not looked at for {timeout:g} seconds"
                )
            if self._stopped:
                raise errors.ContainerRuntimeError("the kubelet is stopping")
            return _view_of(self._entries.get(uid), uid)

    def _is_newer(self, uid: str, at: float) -> bool:
        entry = self._entries.get(uid)
        return self._all_newer_than > at or (entry is not None and entry.modified > at)

    def set(self, uid: str, view: PodView, error: Exception | None, at: float) -> None:
        """Records what a look at the pod has seen, or how it failed."""
        with self._changed:
            self._entries[uid] = _Entry(view, error, at)
            self._changed.notify_all()

    def delete(self, uid: str) -> None:
        """Forgets the pod."""
        with self._changed:
            self._entries.pop(uid, None)

    def update_time(self, at: float) -> None:
        """Records that pods which were not set since `at` have not changed since then."""
        with self._changed:
            self._all_newer_than = at
            self._changed.notify_all()

    def stop(self) -> None:
        """Ends all waits with an error."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


def _view_of(entry: _Entry | None, uid: str) -> PodView:
    if entry is None:
        return PodView(uid)
    if entry.error is not None:
        raise entry.error
    return entry.view
