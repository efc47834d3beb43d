"""Starts and stops the dispatch of custom kinds when these are added and removed.

Guarantees: about a second after a kind is added, its events are dispatched to the controllers that
watch every kind. The periodic passes of these controllers find what happened before.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from kcm.api.scheme import Resource
from kcm.loops import Loop, Turn
from kcm.manager.context.context import ControllerContext
from kcm.manager.dispatch import KindDispatcher

log = structlog.get_logger("kcm.manager")

FOLLOW_EVERY = 1.0  # seconds


class KindFollower(Loop):
    """Adds and removes the dispatchers of one manager. `make` and `leave` start and stop the
    dispatch.
    """

    def __init__(
        self,
        context: ControllerContext,
        kinds: list[KindDispatcher],
        make: Callable[[Resource], KindDispatcher],
        leave: Callable[[KindDispatcher], None],
    ) -> None:
        super().__init__("kcm-kinds")
        self._context = context
        self._kinds = kinds
        self._make = make
        self._leave = leave

    def turn(self, patience: float) -> Turn:
        """Adds and removes dispatchers. Raises StoreUnavailable."""
        context = self._context
        context.caches.follow()
        followers = [c for c in context.controllers if any(w.model is None for w in c.watches())]
        wanted = {r.name: r for c in followers for r in context.caches.resources(c)}
        present = {kind.resource.name: kind for kind in self._kinds}
        for name in wanted.keys() - present.keys():
            log.info("A custom kind is dispatched", kind=name)
            self._kinds.append(self._make(wanted[name]))
        for name, kind in present.items():
            if name not in wanted and not context.caches.knows(name):
                log.info("A custom kind is gone", kind=name)
                self._kinds.remove(kind)
                self._leave(kind)
        return Turn(upkeep_in=FOLLOW_EVERY)
