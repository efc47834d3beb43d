"""`kcm nodes` as a process: a simulator with its lease, recorder of Events and heartbeats."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import structlog

from kcm.clock import Clock, RealClock
from kcm.coordination import FencedLease, LeaseKeeper
from kcm.coordination.failovers import failover_loops
from kcm.coordination.lease import new_holder
from kcm.coordination.presence import Member, Presence
from kcm.loops import Loop, ThreadHost, Turn
from kcm.reconcile.events import EventRecorder
from kcm.redisio import Links, RedisIO
from kcm.settings import Settings
from kcm.simulation.options import SimulatorOptions
from kcm.simulation.scripting.stages import Stages
from kcm.simulation.simulator import Simulator
from kcm.store import Store
from kcm.store.resource_metrics.usage import UsageBoard

log = structlog.get_logger("kcm.nodes")

KIND = "nodes"  # the kind of process that `kcm status` shows


def run(
    settings: Settings, options: SimulatorOptions, stages: Stages, stop: threading.Event
) -> None:
    """Simulates nodes until `stop` is set.

    Raises StoreUnavailable if the store is unavailable at first.
    """
    clock = RealClock()
    links, parts = Links(), ("", "events", "lease")
    connections = [RedisIO(settings, name=f"kcm-nodes-{part}", links=links) for part in parts]
    try:
        for io in connections:
            io.attach()
        _Process(connections, options, stages, clock).run(stop)
    finally:
        for io in connections:
            io.close()


class _WatchedLease:
    """A lease that knows whether another process has had it."""

    def __init__(self, lease: FencedLease) -> None:
        self._lease = lease
        self.was_taken = False

    @property
    def held(self) -> bool:
        held = self._lease.held
        if not held and self._lease.seen_holder not in ("", self._lease.holder):
            self.was_taken = True
        return held


class _Simulation(Loop):
    """Simulates nodes and pods whenever this process holds the lease."""

    reads = True

    def __init__(self, store: Store, lease: FencedLease, build: Callable[[], Simulator]) -> None:
        self._watched = _WatchedLease(lease)
        super().__init__("kcm-nodes", self._watched)
        self._store = store
        self._build = build
        self._simulator: Simulator | None = None
        self._data_id = ""

    def begin(self) -> None:
        """Continues with what has changed, unless another process has changed nodes and pods, or
        the data are other ones.
        """
        if self._watched.was_taken or self._data_id != self._store.data_id:
            self._simulator = None
        self._watched.was_taken = False
        self._data_id = self._store.data_id
        if self._simulator is None:
            self._simulator = self._build()
        self._simulator.begin()

    def turn(self, patience: float) -> Turn:
        if self._data_id != self._store.data_id:
            self.begin()
        assert self._simulator is not None  # since `begin`
        return self._simulator.turn(patience)


class _Process:
    """The simulator, and the loops beside it."""

    def __init__(
        self, connections: list[RedisIO], options: SimulatorOptions, stages: Stages, clock: Clock
    ) -> None:
        main, events, lease = connections
        self._store = Store(main, clock)
        self._board = UsageBoard(main)
        self._options = options
        self._stages = stages
        self._clock = clock
        self._recorder = EventRecorder(Store(events, clock, scheme=self._store.scheme), clock)
        holder = new_holder(socket.gethostname())
        self._keeper = LeaseKeeper(lease, holder, clock=clock)
        name = f"simulation:{options.name_prefix.rstrip('-') or 'nodes'}"
        self._lease: FencedLease = self._keeper.add(name, lambda _: None, lambda: None)
        label = f"{options.count} simulated nodes"
        self._presence = Presence(lease, Member(holder, KIND, name=label))

    def run(self, stop: threading.Event) -> None:
        """Simulates nodes until `stop` is set."""
        simulating, beside = ThreadHost(self._clock), ThreadHost(self._clock)
        beside.run(self._recorder, self._keeper, self._presence, *failover_loops(self._store.io))
        simulating.run(_Simulation(self._store, self._lease, self._build_simulator))
        stop.wait()
        simulating.stop()  # the lease is given back once nothing is written any more
        beside.stop()

    def _build_simulator(self) -> Simulator:
        log.info("Simulating nodes", count=self._options.count, zones=list(self._options.zones))
        return Simulator(
            self._store,
            self._options,
            self._clock,
            stages=self._stages,
            recorder=self._recorder,
            board=self._board,
            fence=lambda: self._lease.fence,
        )
