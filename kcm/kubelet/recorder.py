"""Records Events about this node and its pods."""

from __future__ import annotations

from typing import Literal, Protocol

from kcm.api.core_v1 import Node, Pod
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.reconcile.plan import Event

EventType = Literal["Normal", "Warning"]

COMPONENT = "kubelet"


class EventSink(Protocol):
    """Takes Events without blocking; kcm.reconcile.events.EventRecorder is one."""

    def record(self, event: Event, component: str, host: str = "") -> None: ...


class KubeletEventRecorder:
    """Records Events with the kubelet as their source. Without a sink, none are recorded."""

    def __init__(self, sink: EventSink | None, node_name: str) -> None:
        self._sink = sink
        self._node_name = node_name

    def record_pod_event(
        self, pod: Pod | None, event_type: EventType, reason: str, message: str, container: str = ""
    ) -> None:
        """Records an Event about a pod, or about its container called `container`.

        Does nothing if `pod` is None, since an Event must refer to an object.
        """
        if self._sink is None or pod is None:
            return
        path = _field_path(pod, container) if container else ""
        event = Event(pod, event_type, reason, message, path)
        self._sink.record(event, COMPONENT, self._node_name)

    def record_node_event(self, event_type: EventType, reason: str, message: str) -> None:
        """Records an Event about the node, with the node's name as uid, as upstream does."""
        if self._sink is None:
            return
        metadata = ObjectMeta(name=self._node_name, uid=self._node_name)
        node = Node(metadata=metadata)
        self._sink.record(Event(node, event_type, reason, message), COMPONENT, self._node_name)


def _field_path(pod: Pod, container: str) -> str:
    if any(spec.name == container for spec in pod.spec.containers):
        field = "containers"
    elif any(spec.name == container for spec in pod.spec.ephemeral_containers or ()):
        field = "ephemeralContainers"
    else:
        field = "initContainers"
    return f"spec.{field}{{{container}}}"
