"""The API as a source: the pods that are bound to this node.

Guarantees: while the store is away the last known pods stay; when it is back, all
that happened meanwhile is seen. Source: pkg/kubelet/config/apiserver.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

import structlog

from kcm import errors
from kcm.api import scheme
from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.clock import Clock
from kcm.informers.source import ListerWatcher
from kcm.kubelet.config.podconfig import Say
from kcm.kubelet.types import API, Operation, PodUpdate
from kcm.store import Change, Changes, Store, damage

log = structlog.get_logger("kcm.kubelet")

PODS = scheme.by_name("pods")
BLOCK_MS = 1000  # of one read; also how long a stop may go unnoticed
RETRY = 0.5  # seconds


class ApiSource:
    """Watches pods and keeps those of one node."""

    def __init__(self, store: ListerWatcher, node: str, say: Say, clock: Clock) -> None:
        self._store = store
        self._node = node
        self._say = say
        self._clock = clock
        # In every pod that is bound here; a value's quotes are escaped.
        self._mark = f'"nodeName":"{node}"'.encode()
        self._pods: dict[str, Pod] = {}
        self._position: int | None = None

    def run(self, stop: threading.Event) -> None:
        """List and watch until `stop`."""
        away = False
        while not stop.is_set():
            try:
                self.turn(BLOCK_MS)
                away = False
            except errors.KcmError as error:
                if not away:
                    log.warning("pods cannot be watched, trying again", error=str(error))
                away = True
                if isinstance(error, errors.EpochChanged):
                    self._position = None
                self._clock.wait(stop, RETRY)

    def turn(self, block_ms: int) -> None:
        """One list or one read of changes. Raises: Temporary."""
        if self._position is None:
            self._list()
            return
        changes: Changes = self._store.read_changes({PODS: self._position}, block_ms)
        if changes.gone:
            self._position = None
            return
        self._position = changes.positions.get(PODS, self._position)
        ours = [change for change in changes.entries if self._take(change)]
        if ours:
            self._tell()

    def _list(self) -> None:
        store = self._store
        if isinstance(store, Store):
            position = store.resource_version()
            keys = [(PODS, key) for _, key in store.by_index(f"node:{self._node}", PODS)]
            found: Iterable[KubeObject | None] = store.get_all(keys)
        else:
            scan = store.scan(PODS)
            position, found = scan.resource_version, scan.objects
        pods = [p for p in found if isinstance(p, Pod) and p.spec.node_name == self._node]
        self._pods = {pod.key: pod for pod in pods}
        self._position = position
        self._tell()

    def _take(self, change: Change) -> bool:
        """Whether it concerns this node."""
        if change.type == "BOOKMARK":
            return False
        if change.type == "DELETED":
            return self._pods.pop(change.key, None) is not None
        if self._mark not in change.raw and change.key not in self._pods:
            return False
        pod = damage.changed(change)
        if pod is None:
            return False
        if not isinstance(pod, Pod) or pod.spec.node_name != self._node:
            return self._pods.pop(change.key, None) is not None
        self._pods[change.key] = pod
        return True

    def _tell(self) -> None:
        self._say(PodUpdate(Operation.SET, API, list(self._pods.values())))
