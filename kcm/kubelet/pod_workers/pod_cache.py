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
    """Thread-safe. Times are of the clock's `monotonic`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._entries: dict[str, _Entry] = {}
        self._seen_all = 0.0  # all pods were at least as new as this
        self._stopped = False

    def get(self, uid: str) -> PodView:
        """The pod as last seen; an empty view for one that never was. Raises its error."""
        with self._changed:
            return _result(self._entries.get(uid), uid)

    def get_newer_than(self, uid: str, at: float, timeout: float = 300.0) -> PodView:
        """The pod as seen after `at`, once it has been. Raises what the look raised.

        Raises ContainerRuntimeError after `timeout` seconds, and when the kubelet ends.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._stopped or self._newer(uid, at), timeout):
                raise errors.ContainerRuntimeError("the runtime was not looked at for too long")
            if self._stopped:
                raise errors.ContainerRuntimeError("the kubelet ends")
            return _result(self._entries.get(uid), uid)

    def _newer(self, uid: str, at: float) -> bool:
        entry = self._entries.get(uid)
        return self._seen_all > at or (entry is not None and entry.modified > at)

    def set(self, uid: str, view: PodView, error: Exception | None, at: float) -> None:
        """What a look at `at` found."""
        with self._changed:
            self._entries[uid] = _Entry(view, error, at)
            self._changed.notify_all()

    def delete(self, uid: str) -> None:
        with self._changed:
            self._entries.pop(uid, None)

    def update_time(self, at: float) -> None:
        """All that was not set since `at` has not changed since."""
        with self._changed:
            self._seen_all = at
            self._changed.notify_all()

    def stop(self) -> None:
        """Let nobody wait any longer."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


def _result(entry: _Entry | None, uid: str) -> PodView:
    if entry is None:
        return PodView(uid)
    if entry.error is not None:
        raise entry.error
    return entry.view
