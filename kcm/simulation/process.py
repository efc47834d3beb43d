"""`kcm nodes` as a process: a simulator with its lease, recorder of Events and heartbeats."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import structlog

from kcm import errors
from kcm.clock import Clock, RealClock
from kcm.coordination import FencedLease, LeaseKeeper
from kcm.coordination.lease import new_holder
from kcm.coordination.presence import Member, Presence
from kcm.reconcile.events import EventRecorder
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.simulated.stages import Stages
from kcm.simulation.options import SimulatorOptions
from kcm.simulation.simulator import Simulator
from kcm.store import Store
from kcm.store.resource_metrics.usage import UsageBoard

log = structlog.get_logger("kcm.nodes")

KIND = "nodes"  # the kind of process that `kcm status` shows
STANDBY_EVERY = 0.2  # seconds between checks of the lease while another process has it


def run(
    settings: Settings, options: SimulatorOptions, stages: Stages, stop: threading.Event
) -> None:
    """Simulates nodes until `stop` is set.

    Raises StoreUnavailable if the store is unavailable at first.
    """
    clock = RealClock()
    connections = [RedisIO(settings, name=f"kcm-nodes-{part}") for part in ("", "events", "lease")]
    try:
        for io in connections:
            io.attach()
        _Process(connections, options, stages, clock).run(stop)
    finally:
        for io in connections:
            io.close()


class _Process:
    """The simulator, and what runs beside it in threads."""

    def __init__(
        self, connections: list[RedisIO], options: SimulatorOptions, stages: Stages, clock: Clock
    ) -> None:
        main, events, lease = connections
        self._store = Store(main, clock)
        self._board = UsageBoard(main)
        self._options = options
        self._stages = stages
        self._clock = clock
        self._recorder = EventRecorder(Store(events, clock), clock)
        holder = new_holder(socket.gethostname())
        self._keeper = LeaseKeeper(lease, holder, clock=clock)
        name = f"simulation:{options.name_prefix.rstrip('-') or 'nodes'}"
        self._lease: FencedLease = self._keeper.add(name, lambda _: None, lambda: None)
        label = f"{options.count} simulated nodes"
        self._presence = Presence(lease, Member(holder, KIND, name=label), clock=clock)

    def run(self, stop: threading.Event) -> None:
        """Simulates nodes and pods whenever this process holds the lease, until `stop` is set."""
        over = threading.Event()  # the lease is given back once nothing is written any more
        threads = [
            self._thread(work, over)
            for work in (self._recorder.run, self._keeper.run, self._presence.run)
        ]
        simulator: Simulator | None = None
        data_id = self._store.data_id
        while not stop.is_set():
            if data_id != self._store.data_id:
                data_id, simulator = self._store.data_id, None  # its nodes and pods are gone
            if self._lease.held:
                simulator = simulator or self._simulator()
                self._simulate(simulator, stop, data_id)
                continue
            if self._lease.seen_holder not in ("", self._keeper.holder):
                simulator = None  # another process changes nodes and pods, so all is read again
            self._clock.wait(stop, STANDBY_EVERY)
        over.set()
        for thread in threads:
            thread.join(2.0)

    def _simulator(self) -> Simulator:
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

    def _simulate(self, simulator: Simulator, stop: threading.Event, data_id: str) -> None:
        try:
            simulator.run(stop, lambda: self._lease.held and self._store.data_id == data_id)
        except errors.Fenced:
            log.warning("The lease was lost while writing")
            self._clock.wait(stop, STANDBY_EVERY)

    def _thread(
        self, work: Callable[[threading.Event], None], stop: threading.Event
    ) -> threading.Thread:
        thread = threading.Thread(target=work, args=(stop,), daemon=True)
        thread.start()
        return thread
