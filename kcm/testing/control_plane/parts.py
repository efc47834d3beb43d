"""The loops of a control plane, in the order in which one thread steps them.

They are those of every kcm: leases, queues, dispatch and the recorder of Events as in a manager,
nodes as in `kcm nodes`, and in the places of Celery's workers and beat one loop that syncs and one
that runs passes.
"""

from __future__ import annotations

from kcm.loops import StepHost
from kcm.manager.context.context import ControllerContext
from kcm.manager.manager import Manager
from kcm.simulation.simulator import KINDS, Simulator
from kcm.testing.control_plane.changes import Changes
from kcm.testing.control_plane.clock import PlaneClock
from kcm.testing.control_plane.passes import PassLoop
from kcm.testing.control_plane.wakeups import SyncLoop
from kcm.testing.faults.agenda import Agenda

# The kinds for which the API server has loops of its own.
_OF_API = frozenset(
    {"customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io"}
)
_OF_NODES = frozenset(kind.name for kind in KINDS)


class Parts:
    """The loops of one control plane, and what they leave to do."""

    def __init__(
        self,
        context: ControllerContext,
        manager: Manager,
        *,
        nodes: Simulator | None,
        clock: PlaneClock,
        agenda: Agenda,
        host: StepHost,
    ) -> None:
        self.host = host
        self._context = context
        self._nodes = nodes
        self._agenda = agenda
        self._informers = context.caches.factory.loop
        self._informers.reads = True
        self.changes = Changes(context.caches.factory)
        self.syncs = SyncLoop(context)
        self.passes = PassLoop(context, clock, self.changes, self._is_alive)
        self._manager = manager
        if manager.ingester is not None:
            manager.ingester.reads = False
        self.changes.call_on(_OF_API, manager.kind_follower.wake)
        if nodes is not None and all(context.caches.knows(kind.name) for kind in KINDS):
            nodes.reads = False
            self.changes.call_on(_OF_NODES, nodes.wake)

    def run(self) -> None:
        """Adds loops in the places of nodes, workers and beat to those of the manager, and puts all
        that work on changes in their order. The others only keep up what is expected of a process.
        """
        manager, nodes = self._manager, [self._nodes] if self._nodes is not None else []
        self.host.run(*nodes, self.syncs, self.passes, self._agenda)
        self.host.arrange(
            *(manager.kind_follower, *nodes, self._informers, manager.dispatcher),
            *(self.syncs, manager.pump, self.passes, self._agenda),
        )

    def expect_news(self, *, injected: bool = False) -> None:
        """Lets the next turn read what the API server may have written, or others have injected."""
        self._informers.wake()
        if injected and self._manager.ingester is not None:
            self._manager.ingester.wake()

    def arrive(self) -> None:
        """Lets nodes send the heartbeats that are due at a new time, before anybody misses them."""
        self.passes.wake()
        if self._nodes is not None:
            with self.changes.beating():
                self.host.step(self._nodes)
                self.host.step(self._informers)

    def count_api_changes(self) -> int:
        """Returns how many changes there were for which the API server has loops of its own."""
        return sum(self.changes.of_kinds[kind] for kind in _OF_API)

    def list_pending(self) -> dict[str, float]:
        """Returns what is pending, each with the time when it is due, NEVER for nothing.

        Raises StoreUnavailable.
        """
        pending = {f"pass of {name}": when for name, when in self.passes.list_due()}
        pending |= self._list_delayed()
        pending["what the test has on its agenda"] = self.host.due_of(self._agenda)
        if self._nodes is not None:
            pending["simulated containers and nodes"] = self.host.due_of(self._nodes)
        return pending

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
