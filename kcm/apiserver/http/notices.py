"""Log lines and Events about what hostile clients cause, so that they cannot fill the log."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

import structlog

from kcm import errors
from kcm.api.core_v1 import Service
from kcm.reconcile.events import EventRecorder
from kcm.reconcile.plan import Event
from kcm.store import Store

log = structlog.get_logger("kcm.apiserver")

EVERY = 60.0  # seconds between two lines about the same
_MOST = 1000  # names that are remembered
_ABOUT = "default/kubernetes"  # the Service by which clients know this server
_COMPONENT = "kube-apiserver"
Tell = Callable[[str, str], None]  # makes an Event of a reason and a message


def tell_nobody(reason: str, message: str) -> None:
    """Makes no Event."""


class Notices:
    """Says when to log something about a name: at once, and then once a minute at most."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._since: OrderedDict[str, tuple[float, int]] = OrderedDict()  # the last line, and more

    def count(self, name: str) -> int | None:
        """Counts once more. Returns how often since the last line if one is due, otherwise None."""
        now = self._now()
        last, more = self._since.get(name, (now - EVERY, 0))
        if now - last < EVERY:
            self._since[name] = last, more + 1
            return None
        self._since[name] = now, 0
        self._since.move_to_end(name)
        if len(self._since) > _MOST:
            self._since.popitem(last=False)
        return more + 1


class RefusalEvents:
    """Makes Events of what is refused. They are about the Service `kubernetes`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._recorder = EventRecorder(store, store.clock)

    def tell(self, reason: str, message: str) -> None:
        """Makes an Event, in a thread. It is for the event loop's thread."""
        asyncio.get_running_loop().run_in_executor(None, self._write, reason, message)

    def _write(self, reason: str, message: str) -> None:
        try:
            about = self._store.get(Service.resource, _ABOUT)
            self._recorder.record(Event(about, "Warning", reason, message), _COMPONENT)
            self._recorder.turn(0.0)
        except errors.KcmError as error:
            log.warning("An Event was not written", reason=reason, error=error.message)
