"""The API as a source of pods: those that are bound to this node.

Guarantees: while the store is unavailable the last known pods stay; once it is available again,
every change made meanwhile is seen.

Source: pkg/kubelet/config/apiserver.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import structlog

from kcm.api.core_v1 import Pod
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import Kind
from kcm.informers.follower import Follower
from kcm.informers.source import ChangeSource
from kcm.kubelet.config.podconfig import SendUpdate
from kcm.kubelet.types import API, Operation, PodUpdate
from kcm.loops import Loop, Turn
from kcm.store import WatchEntry, damage
from kcm.store.reader import FullList

log = structlog.get_logger("kcm.kubelet")

PODS = Pod.resource


class PodReader(ChangeSource, Protocol):
    """The methods of a store that the API source uses; `Store` and `RemoteStore` have them."""

    def list_indexed(self, resource: Resource[Kind], entry: str) -> FullList[Kind]:
        """Returns the objects of a kind that have this index entry."""
        ...


class ApiSource(Loop):
    """Watches all pods and sends all pods of one node whenever one of them has changed."""

    reads = True

    def __init__(self, store: PodReader, node_name: str, send: SendUpdate) -> None:
        super().__init__("kcm-api")
        self._store = store
        self._node_name = node_name
        self._send = send
        # Every pod that is bound here contains this text; quotes within a value are escaped.
        self._node_name_json = f'"nodeName":"{node_name}"'.encode()
        self._pods: dict[str, Pod] = {}
        self._follower = Follower(store, self, [PODS])

    def turn(self, patience: float) -> Turn:
        """Lists the pods if necessary, and reads changes once. Raises Temporary."""
        return Turn(self._follower.read(patience) > 0)

    def list_kinds(self, kinds: Sequence[Resource]) -> Mapping[Resource, int]:
        """Lists the pods of this node, and sends them; see `ChangeTarget`."""
        listed = self._store.list_indexed(PODS, f"node:{self._node_name}")
        pods = [p for p in listed.objects if p.spec.node_name == self._node_name]
        self._pods = {pod.key: pod for pod in pods}
        self._send_all()
        return {PODS: listed.resource_version}

    def apply_changes(
        self, kind: Resource, changes: Sequence[WatchEntry], resource_version: int
    ) -> None:
        """Sends all pods if one of this node has changed; see `ChangeTarget`."""
        if [change for change in changes if self._apply(change)]:
            self._send_all()

    def _apply(self, change: WatchEntry) -> bool:
        """Applies a change; returns whether it changed the pods of this node."""
        if change.type == "BOOKMARK":
            return False
        if change.type == "DELETED":
            return self._pods.pop(change.key, None) is not None
        if self._node_name_json not in change.raw and change.key not in self._pods:
            return False
        pod = damage.decode_change(change)
        if pod is None:
            return False
        if not isinstance(pod, Pod) or pod.spec.node_name != self._node_name:
            return self._pods.pop(change.key, None) is not None
        self._pods[change.key] = pod
        return True

    def _send_all(self) -> None:
        self._send(PodUpdate(Operation.SET, API, list(self._pods.values())))
