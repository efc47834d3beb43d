"""The manager: starts the controllers, and dispatches, pumps, reaps and ingests for them.

Any number of managers may run. Leases decide which of them dispatches a kind and which one ingests;
several pumps and reapers may run at the same time.

Source: StartControllers in cmd/kube-controller-manager/app/controllermanager.go, Kubernetes 1.33.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial

import structlog

from kcm import errors
from kcm.api.scheme import Resource, Scheme
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.coordination import FencedLease, LeaseKeeper
from kcm.coordination.workqueue import Pump, Reaper
from kcm.loops import Loop, Turn
from kcm.manager.context.context import ControllerContext
from kcm.manager.dispatch import Dispatcher, KindDispatcher, WatchRoute
from kcm.manager.queues import QueueKeeper, queue_config
from kcm.manager.recovery import recover
from kcm.reconcile.caches import list_every_kind
from kcm.reconcile.contract import Controller, View
from kcm.redisio import Fence
from kcm.store.eventbus import EventBus

log = structlog.get_logger("kcm.manager")

START_JITTER = 1.0  # upstream's ControllerStartJitter: a wait lasts 1 to 2 intervals
RETRY_EVERY = 0.5  # seconds between attempts while the store is unavailable


class Manager:
    """Runs all loops of kcm other than syncs and ticks."""

    def __init__(self, context: ControllerContext) -> None:
        self.context = context
        self.handler_panics: dict[str, int] = {}
        self.started: list[str] = []  # names of the controllers that run
        self.leases = LeaseKeeper(
            context.clients.client("leases").io,
            context.identity,
            duration=context.lease_duration,
            clock=context.clock,
        )
        context.caches.ensure(list(context.controllers))
        self.kinds = [self._kind(r, routes) for r, routes in self._routes().items()]
        self.dispatcher = Dispatcher(context.io, self.kinds, context.clock, context.standby)
        context.caches.factory.on_turn(self._after_turn)
        self.queues = QueueKeeper(context.clients.client("queues").io, context.clock)
        self._ingest_lease = self.leases.add("ingest", _ignore_start, _ignore_stop)
        self.pump = Pump(
            context.clients.client("pump").io,
            polling=[each.short_name for each in context.controllers if each.polls],
            clock=context.clock,
        )
        self.kind_follower = KindFollower(
            context, self.kinds, self._join, self._leave, self.recover_listed
        )
        self.ingester = self._ingester()  # None for the objects of another API server

    def _routes(self) -> dict[Resource, list[WatchRoute]]:
        routes: dict[Resource, list[WatchRoute]] = {}
        for controller in self.context.controllers:
            for watch in controller.watches():
                route = WatchRoute(controller, watch, partial(self.view_of, controller))
                for resource in _list_watched_resources(watch.model, self.context.store.scheme):
                    routes.setdefault(resource, []).append(route)
        return routes

    def view_of(self, controller: Controller) -> View:
        """Returns what a controller may read now, from the caches of this process."""
        return self.context.caches.view(controller, self.context.clock.now())

    def _kind(self, resource: Resource, routes: list[WatchRoute]) -> KindDispatcher:
        # A manager without caches does not ask for kinds that others dispatch.
        lease = self.leases.add(
            f"dispatch:{resource.name}",
            self._took_over,
            _ignore_stop,
            shares=lambda: self._is_recovered(resource),
        )
        return KindDispatcher(
            resource,
            routes,
            lease,
            self._wake_dispatcher,
            self._count_crash,
            observer=self.context.store.observer,
        )

    def _ingester(self) -> Ingester | None:
        clients = self.context.clients
        if clients.remote is not None:
            return None  # the event bus is for the objects in Redis only
        bus = EventBus(clients.client("ingest").store)
        return Ingester(bus, self._ingest_lease)

    def _listen(self, kind: KindDispatcher) -> None:
        informer = self.context.caches.informer(kind.resource)
        period = self.context.options.resync_period()
        informer.add_event_handler_with_resync_period(kind, period, direct=True)
        informer.add_relist_handler(partial(self.dispatcher.on_relist, kind))

    def _join(self, resource: Resource) -> KindDispatcher:
        """Starts to dispatch a kind that was added after the start."""
        routes = [
            WatchRoute(controller, watch, partial(self.view_of, controller))
            for controller in self.context.controllers
            for watch in controller.watches()
            if watch.model is None
        ]
        kind = self._kind(resource, routes)
        self._listen(kind)
        return kind

    def _leave(self, kind: KindDispatcher) -> None:
        """Stops dispatching a kind."""
        self.leases.remove(kind.lease)

    def recover_listed(self) -> None:
        """Recovers the deletions of kinds that were listed since the last call."""
        if recover(self.context, self.kinds):
            self._wake_dispatcher()

    def _is_recovered(self, resource: Resource) -> bool:
        """Reports whether the kind was listed, and the deletions before its list recovered."""
        return any(kind.is_recovered for kind in self.kinds if kind.resource == resource)

    def _after_turn(self) -> None:
        """Dispatches what the informers have just read. Kinds that they have just listed are left
        to the follower of kinds, which recovers what happened before.
        """
        self.dispatcher.send()
        unrecovered = (kind.resource for kind in self.kinds if not kind.is_recovered)
        if any(map(self.context.caches.factory.has_listed, unrecovered)):
            self.kind_follower.wake()

    def _took_over(self, fence: Fence) -> None:
        self._wake_dispatcher()

    def _wake_dispatcher(self) -> None:
        self.dispatcher.wake()

    def _count_crash(self, controller: str, error: Exception) -> None:
        self.handler_panics[controller] = self.handler_panics.get(controller, 0) + 1
        log.error("a watch handler crashed", controller=controller, exc_info=error)

    def start(self) -> None:
        """Starts every controller, then the informers, and returns once the caches have synced,
        those of another API server excepted.

        While the store is unavailable, it tries again. Raises ConfigurationError.
        """
        self.start_controllers()
        if not self.context.informers_started.is_set():  # else by the worker that this is part of
            self._retry_while_away(self.context.start)
        self._retry_while_away(self.recover_listed)
        self.context.host.run(self.kind_follower, self.dispatcher)

    def start_controllers(self) -> None:
        """Starts the controllers, first those that others need (StartControllers)."""
        for name, reason in (self.context.selection.skipped or {}).items():
            log.info("Warning: skipping controller", controller=name, reason=reason)
        self._start_loops()
        for together in self._list_starts():
            if self._wait_start_interval():
                return
            for controller in together:
                log.debug("Starting controller", controller=controller.name)
            configs = {c.short_name: queue_config(c) for c in together if c.watches()}
            self._retry_while_away(partial(self.queues.add, configs))
            for controller in together:
                self.started.append(controller.name)
                log.debug("Started controller", controller=controller.name)
        disabled = ", ".join(self.context.selection.disabled)
        log.info("Started controllers", count=len(self.started), disabled=disabled)

    def _list_starts(self) -> Sequence[Sequence[Controller]]:
        """Returns the controllers in the order of their start: one by one if there is an interval
        between them, else all together.
        """
        controllers = self.context.controllers
        if self.context.options.generic.controller_start_interval:
            return [[controller] for controller in controllers]
        return [controllers]

    def _wait_start_interval(self) -> bool:
        interval = self.context.options.generic.controller_start_interval.total_seconds()
        wait = interval * (1 + random.random() * START_JITTER)
        if not interval:
            return self.context.stop.is_set()
        return self.context.clock.wait(self.context.stop, wait)

    def _start_loops(self) -> None:
        context = self.context
        for kind in self.kinds:
            self._listen(kind)
        context.host.run(self.leases, Reaper(context.io), self.queues)
        if self.ingester is not None:
            context.host.run(self.ingester)
        context.host.run(self.pump)

    def _retry_while_away(self, step: Callable[[], None]) -> None:
        """Calls `step`, again and again while the store is unavailable."""
        while not self.context.stop.is_set():
            try:
                step()
                return
            except errors.Temporary as error:
                log.warning("the store is unavailable, trying again", error=str(error))
                self.context.clock.wait(self.context.stop, RETRY_EVERY)

    def stop_loops(self) -> None:
        """Stops every loop and releases the leases, within about a second."""
        self.context.stop_loops()

    def stop(self) -> None:
        """Stops every loop, then the context, and closes the connections."""
        self.stop_loops()
        self.context.shutdown()


def _list_watched_resources(model: type[KubeObject] | None, scheme: Scheme) -> list[Resource]:
    if model is not None:
        return [model.resource]
    return list_every_kind(scheme)


def _ignore_start(fence: Fence) -> None:
    """Does nothing: the code that needs the lease checks whether it is held."""


def _ignore_stop() -> None:
    """Does nothing: the code that needs the lease checks whether it is held."""


# --- The ingester, one of which at a time processes injected events (design 0021).


class Ingester(Loop):
    """Processes the entries of the event bus while it holds the lease `ingest`.

    Refused events become dead letters.
    """

    reads = True

    def __init__(self, bus: EventBus, lease: FencedLease) -> None:
        super().__init__("kcm-ingest", lease)
        self._bus = bus
        self._held = lease

    def begin(self) -> None:
        """Creates the stream if it is missing, with its consumer group. Raises StoreUnavailable."""
        self._bus.ensure_group()

    def turn(self, patience: float) -> Turn:
        """Processes the entries that wait, or waits for the first of them."""
        entries = self._bus.read(self._held.holder, round(patience * 1000) or None)
        for entry_id, fields in entries:
            result = self._bus.process(entry_id, fields, self._held.fence)
            if result != "applied":
                log.warning("an injected event was refused", entry=entry_id, reason=result)
        return Turn(bool(entries))


# --- Starts and stops the dispatch of custom kinds when these are added and removed.
#
# Guarantees: about a second after a kind is added, its events are dispatched to the controllers
# that watch every kind. The periodic passes of these controllers find what happened before.


FOLLOW_EVERY = 1.0  # seconds


class KindFollower(Loop):
    """Adds and removes the dispatchers of one manager. `make` and `leave` start and stop the
    dispatch, `recover_listed` recovers the deletions of kinds that were listed late.
    """

    def __init__(
        self,
        context: ControllerContext,
        kinds: list[KindDispatcher],
        make: Callable[[Resource], KindDispatcher],
        leave: Callable[[KindDispatcher], None],
        recover_listed: Callable[[], None],
    ) -> None:
        super().__init__("kcm-kinds")
        self._context = context
        self._kinds = kinds
        self._make = make
        self._leave = leave
        self._recover_listed = recover_listed

    def turn(self, patience: float) -> Turn:
        """Adds and removes dispatchers. Raises StoreUnavailable."""
        context = self._context
        self._recover_listed()
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
