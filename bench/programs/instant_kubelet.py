"""A substitute for kubelets, for measurements that leave out the time that nodes take."""

from __future__ import annotations

import threading
from types import TracebackType

from bench.harness import Bench
from bench.store import PODS
from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.redisio import RedisIO
from kcm.store import Store
from kcm.store.options import Subresource


class InstantKubelet:
    """Reports every new pod as Ready in a thread, or as Succeeded if it is not always restarted."""

    def __init__(self, bench: Bench) -> None:
        self._io = RedisIO(bench.settings)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> InstantKubelet:
        self._io.attach()
        self._store = Store(self._io)
        self._position = self._store.resource_version()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join()
        self._io.close()

    def _run(self) -> None:
        while not self._stopped.is_set():
            changes = self._store.read_changes({PODS: self._position}, 100)
            self._position = changes.positions.get(PODS, self._position)
            new = [codec.decode(c.raw, PODS) for c in changes.entries if c.type == "ADDED"]
            done = [(_finished(pod), pod) for pod in new if isinstance(pod, Pod)]
            items = [
                self._store.build_update(*pair, subresource=Subresource.STATUS) for pair in done
            ]
            self._store.write([item for item in items if item is not None])


def _finished(pod: Pod) -> Pod:
    word = "Running" if pod.spec.restart_policy == "Always" else "Succeeded"
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = pod.status.model_validate({"phase": word, "conditions": [ready]})
    return pod.with_status(status)
