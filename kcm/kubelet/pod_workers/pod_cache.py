"""The pod cache: what PLEG last saw of each pod. Pod workers wait in it for newer views.

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
    """The newest view of each pod. Thread-safe. Times are those of the clock's `monotonic`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._entries: dict[str, _Entry] = {}
        self._all_newer_than = 0.0  # all views are at least as new as this time
        self._stopped = False

    def get(self, uid: str) -> PodView:
        """Returns the pod's last view, or an empty view of a pod that was never seen.

        Raises the error with which the last inspection of the pod failed.
        """
        with self._changed:
            return _view_of(self._entries.get(uid), uid)

    def get_newer_than(self, uid: str, at: float, timeout: float = 300.0) -> PodView:
        """Waits until the pod was inspected after `at`, and returns its view.

        Raises the error with which that inspection failed, and ContainerRuntimeError after
        `timeout` seconds or when the kubelet stops.
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
        """Records the pod's view, or the error with which its inspection at that time failed."""
        with self._changed:
            self._entries[uid] = _Entry(view, error, at)
            self._changed.notify_all()

    def delete(self, uid: str) -> None:
        """Removes the pod's view."""
        with self._changed:
            self._entries.pop(uid, None)

    def update_time(self, at: float) -> None:
        """Records that a relist has seen all pods at that time: all views are at least that new."""
        with self._changed:
            self._all_newer_than = at
            self._changed.notify_all()

    def stop(self) -> None:
        """Makes all waiting calls raise an error."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


def _view_of(entry: _Entry | None, uid: str) -> PodView:
    if entry is None:
        return PodView(uid)
    if entry.error is not None:
        raise entry.error
    return entry.view
