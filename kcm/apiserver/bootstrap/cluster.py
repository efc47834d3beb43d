"""What every cluster has before anybody creates anything: namespaces, classes and roles.

They are created at the start, and again when the store was emptied. What somebody deletes meanwhile
stays away until the next start, as upstream.
"""

from __future__ import annotations

import threading

import structlog

from kcm import errors
from kcm.apiserver.auth import bootstrap
from kcm.clock import Clock, RealClock
from kcm.store import Store, node_token
from kcm.store.admission import namespaces
from kcm.store.admission.chain import ensure_system_classes

log = structlog.get_logger("kcm.apiserver")

LOOK_EVERY = 1.0  # seconds between looks at whether the store was emptied


class ClusterBootstrap:
    """Creates them, and looks in a thread whether the store was emptied."""

    def __init__(self, store: Store, *, roles: bool = True, clock: Clock | None = None) -> None:
        self._store = store
        self._roles = roles
        self._clock = clock or RealClock()
        self._data_id = ""  # of the data that has them
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def ensure(self) -> None:
        """Creates what is missing, unless that was done for this data. Raises StoreUnavailable."""
        data_id = self._store.data_id  # first, so that an emptying meanwhile is seen next time
        if data_id == self._data_id:
            return
        namespaces.ensure(self._store)
        ensure_system_classes(self._store)
        self._ensure_key()
        if self._roles:
            bootstrap.ensure(self._store)
        self._data_id = data_id

    def _ensure_key(self) -> None:
        try:
            node_token.ensure_key(self._store)
        except errors.Forbidden as error:  # whatever needs no kubelet works without it
            log.error("Kubelets cannot be asked for logs", error=error.message)

    def start(self) -> None:
        """Starts the thread."""
        self._thread = threading.Thread(target=self._run, name="kcm-bootstrap", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(LOOK_EVERY + 1)

    def _run(self) -> None:
        while not self._clock.wait(self._stop, LOOK_EVERY):
            try:
                self.ensure()
            except errors.KcmError as error:
                log.warning("What every cluster has cannot be made", error=error.message)
            except Exception:  # if the thread ended, it would never try again
                log.exception("What every cluster has cannot be made")
