"""All the work of a control plane other than requests, as functions that one thread calls.

Nothing of a controller knows the difference: it has the same caches, queues, leases and fences as
in `kcm up`. Here changes are read, handed out, synced and written in one thread, so that their
order is always the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import structlog

from kcm import errors
from kcm.api import scheme
from kcm.component.context import ControllerContext
from kcm.manager.manager import Manager
from kcm.simulation.simulator import KINDS, Simulator
from kcm.store.watch import WatchEntry
from kcm.testing.control_plane.clock import PlaneClock
from kcm.testing.control_plane.outside import HEARTBEATS
from kcm.testing.control_plane.passes import Passes
from kcm.testing.control_plane.wakeups import WakeupRunner
from kcm.testing.faults.agenda import NEVER, Agenda

log = structlog.get_logger("kcm.testing")

METRICS_EVERY = 1.0  # seconds of the machine between writes of the metrics
INGEST_EVERY = 0.1  # seconds of the machine between looks for injected events
_OF_API = frozenset(
    {"customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io"}
)
_OF_NODES = frozenset(kind.name for kind in KINDS)
_BY_NODES = frozenset({"nodes", "pods"}) | HEARTBEATS  # what heartbeats and reports write


class Work:
    """The parts of one control plane. Times are seconds since 1970."""

    def __init__(
        self,
        context: ControllerContext,
        manager: Manager,
        nodes: Simulator | None,
        clock: PlaneClock,
        agenda: Agenda,
    ) -> None:
        self._context = context
        self._manager = manager
        self._nodes = nodes
        self._clock = clock
        self._wakeups = WakeupRunner(context)
        self._passes = Passes(context, clock.moment(), self._is_alive)
        self._agenda = agenda
        self._changes = 0  # of all objects, without heartbeats
        self._api_changes = 0  # of the kinds for which the API server has loops of its own
        # Whether it is known if an object changed that nodes must see, and whether one did.
        self._sees_all = all(context.caches.knows(kind.name) for kind in KINDS)
        self._news_for_nodes = True
        self._to_dispatch = True  # whether changes were handed out since keys were sent
        self._keys_wait = True  # whether there may be wake-ups
        self._beating = False  # while nodes send what they send all the time
        self._next_key = 0.0  # when the first delayed key is due
        self._generation = scheme.generation()
        self._looked = {"metrics": 0.0, "events": 0.0}  # monotonic seconds
        self.changed: Counter[str] = Counter()  # by object
        self.changed_kinds: Counter[str] = Counter()  # by kind, without heartbeats
        context.caches.factory.on_read(self._count_changes)

    @property
    def synced(self) -> Counter[str]:
        """How often each key was to be synced."""
        return self._wakeups.counts

    @property
    def api_changes(self) -> int:
        """How many changes there were for which the API server has loops of its own."""
        return self._api_changes

    def prepare(self) -> None:
        """Does what has to be done once before the first turn. Raises StoreUnavailable."""
        self._manager.leases.once()
        if self._manager.ingester is not None:
            self._manager.ingester.prepare()

    def turn(self, *, final: bool = False) -> bool:
        """Does once whatever there is to do now, and reports whether there was anything.

        With `final`, passes run that could find nothing. Raises StoreUnavailable.
        """
        now = self._clock.moment()
        worked = self._read()
        worked |= self._simulate()
        worked |= self._sync(worked)
        worked |= self._move_delayed(now, after_work=worked)
        every = final or not self._clock.frozen
        worked |= self._passes.run_due(now, self._changes, all_of_them=every) > 0
        worked |= self._agenda.run_due(now) > 0
        worked |= self._context.recorder.flush_waiting()
        return worked

    def arrive(self) -> None:
        """Has nodes send the heartbeats that are due at a new time, before anybody misses them."""
        if self._nodes is None:
            return
        self._beating = True
        try:
            self._simulate()
            self._read()
        finally:
            self._beating = False

    def _simulate(self) -> bool:
        """Lets nodes do what is due, or what follows from changes."""
        nodes = self._nodes
        if nodes is None or (self._sees_all and not self._news_for_nodes and nodes.is_level()):
            return False
        self._news_for_nodes = False
        return nodes.turn(patience=0.0)

    def _sync(self, worked: bool) -> bool:
        """Runs the syncs whose keys wait, if there may be any."""
        if not worked and not self._keys_wait:
            return False
        self._keys_wait = self._wakeups.run_waiting() > 0
        return self._keys_wait

    def _read(self) -> bool:
        """Reads all changes, and adds the keys that they touch to the queues."""
        if self._generation != scheme.generation():
            self._generation = scheme.generation()
            self._manager.kind_follower.once()
            self._manager.leases.once()
        count = self._context.caches.factory.read_now()
        dispatcher = self._manager.dispatcher
        if self._to_dispatch or dispatcher.is_woken:
            self._to_dispatch = False
            dispatcher.catch_up()
        return count > 0

    def _count_changes(self, entries: Sequence[WatchEntry]) -> None:
        self._to_dispatch = True
        heartbeats = _BY_NODES if self._beating else HEARTBEATS
        for entry in entries:
            if entry.type != "BOOKMARK":
                self.changed[f"{entry.resource.name} {entry.key}"] += 1
                counts = entry.resource.name not in heartbeats
                self._changes += counts
                self.changed_kinds[entry.resource.name] += counts
                self._api_changes += entry.resource.name in _OF_API
                self._news_for_nodes |= entry.resource.name in _OF_NODES

    def _move_delayed(self, now: float, *, after_work: bool) -> bool:
        """Lets the keys wait for workers whose delay is over."""
        if not after_work and now < self._next_key:
            return False
        wait = self._manager.pump.once()
        self._next_key = NEVER if wait is None else now + wait
        self._keys_wait |= self._manager.pump.moved > 0
        return self._manager.pump.moved > 0

    def do_chores(self) -> bool:
        """Reads injected events and writes metrics, now and then, and reports whether objects may
        have changed. Raises StoreUnavailable.
        """
        if self._is_time("metrics", METRICS_EVERY):
            self._context.metrics.flush()
        ingester = self._manager.ingester
        if ingester is None or not self._is_time("events", INGEST_EVERY):
            return False
        return ingester.once(block_ms=None) > 0

    def _is_time(self, chore: str, every: float) -> bool:
        now = self._clock.monotonic()
        if now - self._looked[chore] < every:
            return False
        self._looked[chore] = now
        return True

    def next_due(self) -> float:
        """Returns when something is due, infinity if nothing is unless an object changes.

        While the time goes on, heartbeats and all passes count, too.
        """
        every, nodes = not self._clock.frozen, NEVER
        if self._nodes is not None:
            nodes = self._nodes.next_due(upkeep=every)
        passes = self._passes.next_due(self._changes, all_of_them=every)
        keys = self._next_key if every else self._next_needed_key()
        return min(nodes, passes, keys, self._agenda.next_due())

    def _next_needed_key(self) -> float:
        """Returns when the first delayed key is due, without those that only poll."""
        if self._next_key == NEVER:
            return NEVER
        return min(self._list_delayed().values(), default=NEVER)

    def list_due(self) -> dict[str, float]:
        """Returns what is pending, each with the time when it is due. Raises StoreUnavailable."""
        due = {f"pass of {name}": when for name, when in self._passes.list_due(self._changes)}
        due |= self._list_delayed()
        due["what the test has on its agenda"] = self._agenda.next_due()
        if self._nodes is not None and (when := self._nodes.next_due(upkeep=False)) < NEVER:
            due["simulated containers and nodes"] = when
        return due

    def _list_delayed(self) -> dict[str, float]:
        """Returns when the first delayed key of each controller is due, but for those that poll."""
        io = self._context.io
        controllers = [one for one in self._context.controllers if not one.polls]
        reads = [
            ("ZRANGE", io.keys.queue(one.short_name, "delayed"), 0, 0, "WITHSCORES")
            for one in controllers
        ]
        first = zip(controllers, io.pipeline(reads), strict=True)
        return {
            f"sync of {controller.name} {entries[0].decode()}": float(entries[1]) / 1000
            for controller, entries in first
            if entries
        }

    def _is_alive(self, node: str) -> bool:
        return self._nodes is not None and self._nodes.is_alive(node)

    def close(self) -> None:
        """Stops the manager and closes the connections."""
        try:
            self._manager.stop()
        except errors.Temporary as error:
            log.debug("the store is gone already", error=str(error))
