"""The pod manager: keeps the desired pods of this node, and their mirrors.

Source: pkg/kubelet/pod/pod_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from kcm.api.core_v1 import Pod
from kcm.kubelet.types import (
    HASH_ANNOTATION,
    MIRROR_ANNOTATION,
    full_name,
    is_mirror_pod,
    is_static_pod,
)


class PodManager:
    """The pods that this node should run, whether or not they run. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._pods: dict[str, Pod] = {}  # by uid
        self._by_name: dict[str, Pod] = {}  # by full name
        self._mirrors: dict[str, Pod] = {}
        self._mirrors_by_name: dict[str, Pod] = {}

    def set(self, pod: Pod) -> None:
        """Adds or replaces a pod or a mirror."""
        with self._lock:
            mirror = is_mirror_pod(pod)
            by_uid = self._mirrors if mirror else self._pods
            by_name = self._mirrors_by_name if mirror else self._by_name
            by_uid[pod.uid or ""] = pod
            by_name[full_name(pod)] = pod

    add = update = set

    def remove(self, pod: Pod) -> None:
        """Removes a pod or a mirror."""
        with self._lock:
            mirror = is_mirror_pod(pod)
            by_uid = self._mirrors if mirror else self._pods
            by_name = self._mirrors_by_name if mirror else self._by_name
            by_uid.pop(pod.uid or "", None)
            if (present := by_name.get(full_name(pod))) is not None and present.uid == pod.uid:
                del by_name[full_name(pod)]

    def pods(self) -> list[Pod]:
        """Returns all pods except the mirrors."""
        with self._lock:
            return list(self._pods.values())

    def by_uid(self, uid: str) -> Pod | None:
        """Returns the pod with a uid, or None."""
        with self._lock:
            return self._pods.get(uid)

    def mirrors(self) -> list[Pod]:
        """Returns all mirrors."""
        with self._lock:
            return list(self._mirrors.values())

    def mirror_of(self, pod: Pod) -> Pod | None:
        """Returns the mirror of a static pod, or None."""
        with self._lock:
            return self._mirrors_by_name.get(full_name(pod)) if is_static_pod(pod) else None

    def pod_and_mirror(self, pod: Pod) -> tuple[Pod | None, Pod | None, bool]:
        """Returns the pod, its mirror, and whether the argument was the mirror."""
        with self._lock:
            if is_mirror_pod(pod):
                return self._by_name.get(full_name(pod)), pod, True
            return pod, self._mirrors_by_name.get(full_name(pod)), False

    def list_orphaned_mirrors(self) -> list[Pod]:
        """Returns the mirrors whose static pod is gone."""
        with self._lock:
            return [m for name, m in self._mirrors_by_name.items() if name not in self._by_name]

    def translate(self, uid: str) -> str:
        """Returns the uid of the static pod if `uid` is that of its mirror, else `uid`."""
        with self._lock:
            mirror = self._mirrors.get(uid)
            static = self._by_name.get(full_name(mirror)) if mirror else None
            return (static.uid or uid) if static else uid

    def api_uid(self, uid: str) -> str | None:
        """Returns the uid of a pod in the API, or None for a static pod without a mirror."""
        with self._lock:
            pod = self._pods.get(uid)
            if pod is None or not is_static_pod(pod):
                return uid
            mirror = self._mirrors_by_name.get(full_name(pod))
            return mirror.uid if mirror else None


def is_mirror_of(mirror: Pod, pod: Pod) -> bool:
    """Reports whether the mirror was made from this version of the static pod."""
    same = (mirror.name, mirror.namespace) == (pod.name, pod.namespace)
    return same and mirror.annotations.get(MIRROR_ANNOTATION) == pod.annotations.get(
        HASH_ANNOTATION
    )


def uids_of(pods: Iterable[Pod]) -> set[str]:
    """Returns the uids of the pods."""
    return {pod.uid or "" for pod in pods}
