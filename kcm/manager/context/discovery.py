"""Keeps the set of served kinds, which is refreshed every 30 s.

Upstream asks the API server (GetAvailableResources, and a RESTMapper that is reset every 30 s), and
so does kcm where the objects are behind one. Otherwise the kinds are those of the store's scheme.
As upstream, a controller whose kind appears later is not started late.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from kcm.api.scheme import Resource, Scheme
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.loops import Loop, Turn
from kcm.reconcile.caches import list_declared_models
from kcm.reconcile.contract import Controller

log = structlog.get_logger("kcm.manager")

REDISCOVER_EVERY = 30.0  # seconds


class Discovery(Loop):
    """The kinds that were served at the last refresh."""

    def __init__(self, scheme: Scheme, ask: Callable[[], None] = lambda: None) -> None:
        """`ask` brings the scheme up to date with another API server."""
        super().__init__("kcm-discovery")
        self._scheme = scheme
        self._ask = ask
        self.available = self._list_served()

    def _list_served(self) -> frozenset[str]:
        return frozenset(resource.name for resource in self._scheme.resources())

    def list_missing(self, controller: Controller) -> list[str]:
        """Returns the kinds that the controller needs and that are not served."""
        names = [_name(model) for model in list_declared_models(controller, self._scheme)]
        return sorted(name for name in names if name not in self.available)

    def refresh(self) -> None:
        """Updates the served kinds, and logs the changes. Raises what `ask` raises."""
        self._ask()
        before, self.available = self.available, self._list_served()
        if before != self.available:
            log.info(
                "served kinds changed",
                added=sorted(self.available - before),
                removed=sorted(before - self.available),
            )

    def turn(self, patience: float) -> Turn:
        self.refresh()
        return Turn(upkeep_in=REDISCOVER_EVERY)


def _name(model: type[KubeObject]) -> str:
    resource: Resource | None = getattr(model, "resource", None)
    return resource.name if resource else model.__name__
