"""Events of the kubelet, on their way to the store. None is ever waited for."""

from __future__ import annotations

from typing import Literal, Protocol

from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.reconcile.plan import Event

Kind = Literal["Normal", "Warning"]


class Sink(Protocol):
    """Takes Events; kcm.reconcile.events.EventRecorder is one."""

    def record(self, event: Event, component: str, host: str = "") -> None: ...


class Recorder:
    """Tells what this node's kubelet does. Without a sink, nothing."""

    def __init__(self, sink: Sink | None, node: str) -> None:
        self._sink = sink
        self._node = node

    def of_pod(
        self, pod: Pod | None, kind: Kind, reason: str, message: str, container: str = ""
    ) -> None:
        """Something happened to a pod, or to one of its containers."""
        if self._sink is None or pod is None:
            return
        path = _path(pod, container) if container else ""
        self._sink.record(Event(pod, kind, reason, message, path), "kubelet", self._node)

    def of_node(self, kind: Kind, reason: str, message: str) -> None:
        """Something happened to the node. Its Events carry its name as uid, as upstream's."""
        if self._sink is not None:
            meta = ObjectMeta(name=self._node, uid=self._node)
            about = KubeObject(api_version="v1", kind="Node", metadata=meta)
            self._sink.record(Event(about, kind, reason, message), "kubelet", self._node)


def _path(pod: Pod, container: str) -> str:
    ordinary = any(found.name == container for found in pod.spec.containers)
    return f"spec.{'containers' if ordinary else 'initContainers'}{{{container}}}"
