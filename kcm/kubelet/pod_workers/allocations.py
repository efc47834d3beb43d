"""What the node has allocated to each pod, and which resizes wait.

Allocations are remembered while the kubelet runs. After its restart they are what the pods'
statuses report.

Source: pkg/kubelet/allocation and handlePodResourcesResize in pkg/kubelet/kubelet.go, Kubernetes
1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from kcm.api.core_v1 import Node, Pod
from kcm.kubelet import resizing
from kcm.kubelet.admission import NodeUsage, find_resize_refusal
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.kubelet.resizing import Allocation, Refusal


class Allocations:
    """The allocations of the node's pods. Thread-safe."""

    def __init__(
        self,
        active_pods: Callable[[], Iterable[Pod]],
        node: Callable[[], Node],
        recorder: KubeletEventRecorder,
    ) -> None:
        self._active_pods = active_pods
        self._node = node
        self._recorder = recorder
        self._lock = threading.Lock()
        self._allocated: dict[str, Allocation] = {}  # by the pod's uid
        self._refusals: dict[str, Refusal] = {}  # of pods whose resize waits

    def apply(self, pod: Pod) -> Pod:
        """Returns the pod with its allocated resources in its spec."""
        with self._lock:
            return self._apply(pod)

    def resize(self, pod: Pod) -> Pod:
        """Allocates what the pod asks for if the node has room for it.

        Returns the pod with its allocated resources in its spec.
        """
        wanted, uid = resizing.wanted_by(pod), pod.uid or ""
        with self._lock:
            allocated = self._find(pod)
            if resizing.is_same(wanted, allocated):
                self._allocated[uid] = wanted
                self._refusals.pop(uid, None)
                return pod
            others = [self._apply(other) for other in self._active_pods() if other.uid != pod.uid]
            refusal = find_resize_refusal(pod, NodeUsage.of(others), self._node())
            before = self._refusals.pop(uid, None)
            if refusal is None:
                self._allocated[uid] = wanted
                return pod
            self._refusals[uid] = refusal
        if refusal != before:
            event = resizing.EVENTS[refusal.reason]
            self._recorder.record_pod_event(pod, "Warning", event, refusal.message)
        return resizing.with_allocation(pod, allocated)

    def refusal(self, uid: str) -> Refusal | None:
        """Returns why the pod's resize waits, None if none does."""
        with self._lock:
            return self._refusals.get(uid)

    def forget(self, uid: str) -> None:
        """Forgets a pod that has ended."""
        with self._lock:
            self._allocated.pop(uid, None)
            self._refusals.pop(uid, None)

    def _find(self, pod: Pod) -> Allocation:
        return self._allocated.get(pod.uid or "") or resizing.reported_by(pod)

    def _apply(self, pod: Pod) -> Pod:
        allocated = self._find(pod)
        if resizing.is_same(allocated, resizing.wanted_by(pod)):
            return pod
        return resizing.with_allocation(pod, allocated)
