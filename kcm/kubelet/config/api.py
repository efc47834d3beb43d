"""The API as a source of pods: those that are bound to this node.

Guarantees: while the store is unavailable the last known pods stay; once it is available again,
every change made meanwhile is seen.

Source: pkg/kubelet/config/apiserver.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Protocol

import structlog

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.api.scheme import Resource
from kcm.clock import Clock
from kcm.kubelet.config.podconfig import SendUpdate
from kcm.kubelet.types import API, Operation, PodUpdate
from kcm.store import Changes, WatchEntry, damage
from kcm.store.reader import FullList

log = structlog.get_logger("kcm.kubelet")

PODS = Pod.resource
BLOCK_MS = 1000  # how long one read waits for changes, and so how long stopping may take
RETRY_INTERVAL = 0.5  # seconds


class PodReader(Protocol):
    """The methods of a store that the API source uses; `Store` and `RemoteStore` have them.

    Raises errors.StoreUnavailable when it cannot be reached, and errors.EpochChanged when a restart
    or failover of Redis has made earlier positions void.
    """

    def list_indexed(self, resource: Resource, entry: str) -> FullList:
        """Returns the objects of a kind that have this index entry."""
        ...

    def read_changes(self, positions: Mapping[Resource, int], block_ms: int) -> Changes:
        """Returns the changes after these positions. Waits up to `block_ms` ms for the first."""
        ...


class ApiSource:
    """Watches all pods and sends all pods of one node whenever one of them has changed."""

    def __init__(self, store: PodReader, node_name: str, send: SendUpdate, clock: Clock) -> None:
        self._store = store
        self._node_name = node_name
        self._send = send
        self._clock = clock
        # Every pod that is bound here contains this text; quotes within a value are escaped.
        self._node_name_json = f'"nodeName":"{node_name}"'.encode()
        self._pods: dict[str, Pod] = {}
        self._position: int | None = None

    def run(self, stop: threading.Event) -> None:
        """Lists and watches until `stop` is set. Errors of the store are logged and retried."""
        away = False
        while not stop.is_set():
            try:
                self.sync(BLOCK_MS)
                away = False
            except errors.KcmError as error:
                if not away:
                    log.warning("pods cannot be watched, trying again", error=str(error))
                away = True
                if isinstance(error, errors.EpochChanged):
                    self._position = None
                self._clock.wait(stop, RETRY_INTERVAL)

    def sync(self, block_ms: int) -> None:
        """Lists all pods, or reads changes once, waiting up to `block_ms` ms. Raises Temporary."""
        if self._position is None:
            self._list()
            return
        changes: Changes = self._store.read_changes({PODS: self._position}, block_ms)
        if changes.gone:
            self._position = None
            return
        self._position = changes.positions.get(PODS, self._position)
        ours = [change for change in changes.entries if self._apply(change)]
        if ours:
            self._send_all()

    def _list(self) -> None:
        listed = self._store.list_indexed(PODS, f"node:{self._node_name}")
        pods = [
            p for p in listed.objects if isinstance(p, Pod) and p.spec.node_name == self._node_name
        ]
        self._pods = {pod.key: pod for pod in pods}
        self._position = listed.resource_version
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
