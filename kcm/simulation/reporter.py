"""Events of simulated kubelets, on their way to the recorder."""

from __future__ import annotations

from typing import Literal, Protocol

from kcm.api.core_v1 import Pod
from kcm.api.meta_v1 import KubeObject, ObjectMeta
from kcm.reconcile.plan import Event
from kcm.simulation.runs import Note


class Recorder(Protocol):
    """Takes Events; kcm.reconcile.events.EventRecorder is one."""

    def record(self, event: Event, component: str, host: str = "") -> None: ...


class Reporter:
    """Tells what simulated kubelets do. Without a recorder, nothing."""

    def __init__(self, recorder: Recorder | None) -> None:
        self._recorder = recorder

    def of_pod(self, pod: Pod, note: Note, node: str) -> None:
        """Something happened to a pod on a node."""
        if self._recorder is not None:
            event = Event(pod, note.type, note.reason, note.message, note.field_path)
            self._recorder.record(event, "kubelet", node)

    def of_node(
        self, node: str, reason: str, message: str, kind: Literal["Normal", "Warning"] = "Normal"
    ) -> None:
        """Something happened to a node. Its Events carry its name as uid, as a kubelet's do."""
        if self._recorder is not None:
            about = KubeObject(
                api_version="v1", kind="Node", metadata=ObjectMeta(name=node, uid=node)
            )
            self._recorder.record(Event(about, kind, reason, message), "kubelet", node)
