"""The manager: dispatch, pump, reaper, ingester, in one process (seed 1's Run).

Any number of managers may run: leases decide who dispatches which kind and who
ingests; pumps and reapers are harmless side by side.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

from kcm.api import scheme
from kcm.api.scheme import Resource
from kcm.coordination import LeaseKeeper
from kcm.manager.context import ControllerContext
from kcm.manager.dispatch import Dispatcher, KindDispatcher, Route
from kcm.manager.ingest import Ingester
from kcm.manager.recovery import recover
from kcm.reconcile.contract import Controller, View
from kcm.redisio import Fence, RedisIO
from kcm.store.eventbus import EventBus
from kcm.workqueue import Pump, QueueConfig, Reaper

log = structlog.get_logger("kcm.manager")


class Manager:
    """Runs everything that is not a sync or a tick."""

    def __init__(self, context: ControllerContext) -> None:
        self.context = context
        self.handler_panics: dict[str, int] = {}
        self._keeper = LeaseKeeper(RedisIO(context.settings), context.identity, clock=context.clock)
        self._wake: Callable[[], None] = lambda: None
        context.caches.ensure(list(context.controllers))
        self._kinds = [self._kind(r, routes) for r, routes in self._routes().items()]
        self.dispatcher = Dispatcher(context.io, self._kinds, context.clock)
        self._ingest_lease = self._keeper.add("ingest", _started, _stopped)
        self._threads: list[threading.Thread] = []

    def _routes(self) -> dict[Resource, list[Route]]:
        routes: dict[Resource, list[Route]] = {}
        for controller in self.context.controllers:
            for watch in controller.watches():
                route = Route(controller, watch, self._view_of(controller))
                for resource in _watched(watch.model):
                    routes.setdefault(resource, []).append(route)
        return routes

    def _view_of(self, controller: Controller) -> Callable[[], View]:
        return lambda: self.context.caches.view(controller, self.context.clock.now())

    def _kind(self, resource: Resource, routes: list[Route]) -> KindDispatcher:
        lease = self._keeper.add(f"dispatch:{resource.name}", self._took_over, _stopped)
        return KindDispatcher(resource, routes, lease, self._woken, self._crashed)

    def _took_over(self, fence: Fence) -> None:
        self._woken()

    def _woken(self) -> None:
        self.dispatcher.wake()

    def _crashed(self, controller: str, error: Exception) -> None:
        self.handler_panics[controller] = self.handler_panics.get(controller, 0) + 1
        log.error("a watch handler crashed", controller=controller, exc_info=error)

    def configure_queues(self) -> None:
        """Tell the store how each controller's queue works."""
        from_context = self.context
        for controller in from_context.controllers:
            if controller.watches():
                from_context.queue(controller).configure(queue_config(controller))

    def start(self) -> None:
        """Start every loop; returns once the caches have synced.

        Raises: StoreUnavailable, ConfigurationError.
        """
        context = self.context
        context.io.attach()
        self.configure_queues()
        for kind in self._kinds:
            informer = context.caches.informer(kind.resource.model)
            informer.add_event_handler_with_resync_period(kind, context.options.resync_period())
        self._spawn(self._keeper.run, "kcm-leases")
        self._spawn(Pump(RedisIO(context.settings), clock=context.clock).run, "kcm-pump")
        self._spawn(Reaper(context.io, clock=context.clock).run, "kcm-reaper")
        ingester = Ingester(EventBus(RedisIO(context.settings)), self._ingest_lease, context.clock)
        self._spawn(ingester.run, "kcm-ingest")
        context.start()
        for kind in self._kinds:
            recover(context, kind)
        self._spawn(self.dispatcher.run, "kcm-dispatch")

    def _spawn(self, run: Callable[[threading.Event], None], name: str) -> None:
        thread = threading.Thread(target=run, args=(self.context.stop,), name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def stop(self) -> None:
        """Stop every loop and give up the leases."""
        self.context.stop.set()
        self.dispatcher.wake()
        for thread in self._threads:
            thread.join(2.0)
        self.context.shutdown()


def queue_config(controller: Controller) -> QueueConfig:
    """How a controller's queue works."""
    return QueueConfig(
        task=f"kcm.{controller.short_name}.sync",
        broker_queue=controller.group,
        cap=controller.concurrent_syncs(),
        renew_limit=controller.sync_timeout,
    )


def _watched(model: type | None) -> list[Resource]:
    if model is not None:
        return [scheme.resource_of(model)]
    return [resource for resource in scheme.resources() if resource.name != "events"]


def _started(fence: Fence) -> None:
    """Nothing to do: whoever acts looks at the lease."""


def _stopped() -> None:
    """Nothing to do: whoever acts looks at the lease."""
