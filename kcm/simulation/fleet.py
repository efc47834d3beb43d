"""The nodes of a simulator: they register, renew leases and report, or are silent.

Guarantees: a silent node writes nothing; a Node object that was deleted comes back only when its
kubelet is started again (`kcm nodes start`, or the simulator's own start), as upstream's; what
others write to a node is never overwritten, because each write names the version that it is for.

Source: pkg/kubelet/kubelet_node_status.go, staging/src/k8s.io/component-helpers/apimachinery/lease,
Kubernetes 1.33.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import structlog

from kcm import errors
from kcm.api import scheme
from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import Node
from kcm.apimachinery.durations import FOREVER
from kcm.helpers import node_reports
from kcm.kubelet.recorder import EventSink, KubeletEventRecorder
from kcm.redisio import Fence
from kcm.simulated import scripts
from kcm.simulated.jitter import spread
from kcm.simulated.scripts import NodeScript
from kcm.simulated.stages import Stages
from kcm.simulation import machines
from kcm.simulation.options import SimulatorOptions
from kcm.simulation.orders import AS_USUAL, Order
from kcm.simulation.timers import Timers
from kcm.store import Store, WriteItem, damage
from kcm.store.rules import Subresource

log = structlog.get_logger("kcm.nodes")

NODES = scheme.by_name("nodes")
LEASES = scheme.by_name("leases.coordination.k8s.io")
GRID = 0.25  # seconds: renewals within it share a write
JITTER = 0.04  # of the renewal period, as upstream
RETRY = 1.0  # seconds

Task = Literal["lease", "report", "script", "pod", "usage"]
Key = tuple[Task, str]


@dataclass(frozen=True, slots=True)
class SimulatorContext:
    """What the nodes and pods of one simulator share."""

    store: Store
    options: SimulatorOptions
    stages: Stages
    timers: Timers[Key]
    sink: EventSink | None  # of Events

    def recorder(self, node: str) -> KubeletEventRecorder:
        """Returns what records Events in the name of a node's kubelet."""
        return KubeletEventRecorder(self.sink, node)


class SimulatedMachine:
    """One simulated node: its objects as last seen, its orders and its script."""

    __slots__ = ("index", "lease", "name", "node", "order", "pods", "reported", "script", "started")

    def __init__(self, name: str, index: int) -> None:
        self.name = name
        self.index = index
        self.node: Node | None = None  # as last seen in the store
        self.lease: Lease | None = None
        self.order: Order = AS_USUAL
        self.script: NodeScript = scripts.NO_NODE_SCRIPT
        self.started = 0.0  # when its kubelet started
        self.reported = 0.0  # when it last reported its status
        self.pods: set[str] = set()  # keys of the pods bound to it

    def present_script(self, now: float) -> NodeScript:
        """Returns the script, without states whose time has not come or is over."""
        begin = self.started + self.script.after
        if self.script.states and not begin <= now < begin + self.script.lasts:
            return NodeScript(clock_skew=self.script.clock_skew)
        return self.script

    def silent(self, now: float) -> bool:
        """Reports whether nothing that the node does reaches the API."""
        return self.order.silent or "silent" in self.present_script(now).states

    def cidrs(self) -> Sequence[str]:
        """Returns the ranges of its pods' addresses."""
        spec = self.node.spec if self.node else None
        if spec is None:
            return ()
        return spec.pod_cidrs or ([spec.pod_cidr] if spec.pod_cidr else ())


class Fleet:
    """All machines of one simulator. Used by one thread; times are seconds since 1970."""

    def __init__(self, context: SimulatorContext) -> None:
        self._store = context.store
        self._options = options = context.options
        self._stages = context.stages
        self._timers = context.timers
        self._recorder = context.recorder
        self.machines: dict[str, SimulatedMachine] = {
            name: SimulatedMachine(name, index) for index, name in enumerate(options.names())
        }

    def get(self, name: str | None) -> SimulatedMachine | None:
        """Returns the machine with this name, None if it is not the simulator's."""
        return self.machines.get(name or "")

    def address_of(self, machine: SimulatedMachine) -> str:
        """Returns the machine's InternalIP."""
        return self._options.address_of(machine.index)

    # --- kubelets start

    def start(self, names: Iterable[str], now: float, fence: Fence | None) -> None:
        """Starts kubelets: they register, or find their nodes, and then report and renew their
        leases.
        """
        machines_to_start = [self.machines[name] for name in names]
        nodes = self._store.get_all([(NODES, m.name) for m in machines_to_start])
        leases = self._store.get_all([(LEASES, _lease_key(m.name)) for m in machines_to_start])
        for machine, node, lease in zip(machines_to_start, nodes, leases, strict=True):
            machine.node = node if isinstance(node, Node) else None
            machine.lease = lease if isinstance(lease, Lease) else None
            machine.started = now
            self._follow_script(machine, now)
        starting = [m for m in machines_to_start if not m.silent(now)]
        self._register(starting, now, fence)
        for machine in starting:
            self._recorder(machine.name).record_node_event(
                "Normal", "Starting", "Starting kubelet."
            )
        names = [m.name for m in starting]
        self.report(names, now, fence)
        self.renew(names, now, fence)

    def _register(
        self, unregistered: Sequence[SimulatedMachine], now: float, fence: Fence | None
    ) -> None:
        items: list[tuple[SimulatedMachine, WriteItem]] = []
        for machine in unregistered:
            item = self._registration(machine, now)
            if item is not None:
                items.append((machine, item))
        results = self._store.write([item for _, item in items], fence=fence)
        for (machine, _), result in zip(items, results, strict=True):
            if result.ok:
                stored = result.get_stored()
                assert isinstance(stored, Node)
                machine.node = stored
                self._follow_script(machine, now)
            else:
                log.warning("A node was not registered", node=machine.name, error=result.status)
                self._timers.set(("script", machine.name), now + RETRY)

    def _registration(self, machine: SimulatedMachine, now: float) -> WriteItem | None:
        options, index = self._options, machine.index
        if machine.node is not None:
            new = machines.update_labels(machine.node, options, index)
            return self._store.build_update(new, machine.node)
        node = machines.new_node(options, index, machine.name)
        script = machine.present_script(now)
        status = machines.status_of(node, options, index, script, _clock(script, now))
        machine.reported = now
        return self._store.build_create(node.with_status(status))

    # --- signs of life

    def renew(self, names: Iterable[str], now: float, fence: Fence | None) -> None:
        """Renews leases, and schedules the next renewals."""
        due = [m for name in names if (m := self.machines[name]).node and not m.silent(now)]
        lost = [m for m in due if m.lease is None]
        for machine, lease in zip(
            lost, self._store.get_all([(LEASES, _lease_key(m.name)) for m in lost]), strict=True
        ):
            machine.lease = lease if isinstance(lease, Lease) else None
        items = [self._renewal(machine, now) for machine in due]
        results = self._store.write(items, fence=fence)
        for machine, result in zip(due, results, strict=True):
            stored = result.get_stored() if result.ok else None
            machine.lease = stored if isinstance(stored, Lease) else None  # None: read it again
            wait = self._options.renew_every * (1 + JITTER * spread(machine.name, now))
            self._timers.set(("lease", machine.name), _grid(now + (wait if result.ok else RETRY)))

    def _renewal(self, machine: SimulatedMachine, now: float) -> WriteItem:
        assert machine.node is not None
        time = _clock(machine.script, now, whole=False)
        duration = self._options.lease_duration
        if machine.lease is None:
            return self._store.build_create(node_reports.new_lease(machine.node, duration, time))
        # Nobody else has a say in a lease, so the rules for updates need not be asked again.
        new = node_reports.renew_lease(machine.lease, machine.node, duration, time)
        version = machine.lease.metadata.resource_version or ""
        return WriteItem("update", LEASES, new, version)

    def report(self, names: Iterable[str], now: float, fence: Fence | None) -> None:
        """Reports statuses that have changed, or that were reported long ago."""
        writes: list[tuple[SimulatedMachine, WriteItem]] = []
        for name in names:
            machine = self.machines[name]
            item = self._report(machine, now)
            if item is not None:
                writes.append((machine, item))
            period = self._options.report_every * (1 + JITTER * spread(name, now))
            next_ = machine.reported + period
            # A report that is just being written, or cannot be, counts from now.
            self._timers.set(("report", name), _grid(next_ if next_ > now else now + period))
        results = self._store.write([item for _, item in writes], fence=fence)
        for (machine, _), result in zip(writes, results, strict=True):
            if not result.ok:  # the watch brings what was faster
                continue
            before, stored = machine.node, result.get_stored()
            assert isinstance(stored, Node)
            machine.node, machine.reported = stored, now
            if before is not None:
                for reason in node_reports.transitions(stored.status, before.status):
                    text = f"Node {machine.name} status is now: {reason}"
                    self._recorder(machine.name).record_node_event("Normal", reason, text)

    def _report(self, machine: SimulatedMachine, now: float) -> WriteItem | None:
        node = machine.node
        if node is None or machine.silent(now):
            return None
        script = machine.present_script(now)
        status = machines.status_of(node, self._options, machine.index, script, _clock(script, now))
        overdue = now >= machine.reported + self._options.report_every
        if not overdue and not node_reports.differs(status, node.status):
            return None
        return self._store.build_update(
            node.with_status(status), node, subresource=Subresource.STATUS
        )

    # --- what others do

    def handle_changed(self, name: str, raw: bytes, version: int, now: float) -> bool:
        """Takes note of a node that was written; returns whether it has to report at once."""
        machine = self.machines[name]
        known = machine.node.metadata.resource_version if machine.node else None
        if known is not None and int(known) >= version:
            return False
        try:
            node = damage.decode_object(NODES, name, raw)
        except errors.Damaged as error:  # the others go on
            log.warning("A node cannot be read", key=name, error=error.message)
            return False
        assert isinstance(node, Node)
        was_silent = machine.node is None or machine.silent(now)
        if machine.node is None:
            machine.lease = None
        machine.node = node
        self._follow_script(machine, now)
        if machine.silent(now):
            return False
        if was_silent:
            self._timers.set(("lease", name), now)
        return True

    def handle_deleted(self, name: str) -> None:
        """Takes note of a deleted node. Its kubelet runs on, but does not register again."""
        machine = self.machines[name]
        machine.node = machine.lease = None
        self._timers.cancel(("lease", name))
        self._timers.cancel(("report", name))

    def follow_orders(
        self, orders: Mapping[str, Order], now: float, fence: Fence | None
    ) -> list[str]:
        """Follows orders; returns the machines that are no longer silent.

        Machines that are told to start are registered.
        """
        before = {name: machine.order for name, machine in self.machines.items()}
        self.set_orders(orders)
        changed = [
            n for n, m in self.machines.items() if m.order != before[n] and not m.order.silent
        ]
        starting = [n for n in changed if self._is_start(before[n], self.machines[n].order)]
        back = [n for n in changed if n not in starting]
        try:
            if starting:
                self.start(starting, now, fence)
            self.report(back, now, fence)
            self.renew(back, now, fence)
        except errors.KcmError:
            for name in changed:  # what was not followed to its end is followed again
                self.machines[name].order = before[name]
            raise
        return starting + back

    @staticmethod
    def _is_start(before: Order, order: Order) -> bool:
        return order.since is not None or before.state == "stopped"

    def resume_timers(self, now: float) -> None:
        """Makes everything due now, after an outage of the store."""
        for name, machine in self.machines.items():
            if machine.node is not None and not machine.silent(now):
                self._timers.set(("lease", name), now)
                self._timers.set(("report", name), now)

    def set_orders(self, orders: Mapping[str, Order]) -> None:
        """Sets the machines' orders without following them."""
        for name, machine in self.machines.items():
            machine.order = orders.get(name, AS_USUAL)

    def apply_script_changes(
        self, names: Iterable[str], now: float, fence: Fence | None
    ) -> list[str]:
        """Follows scripts whose states begin or end; returns the machines that are not silent."""
        names = list(names)
        missing = [name for name in names if self.machines[name].node is None]
        for name in names:
            self._follow_script(self.machines[name], now)
        speaking = [name for name in names if not self.machines[name].silent(now)]
        self._register([self.machines[n] for n in missing if n in speaking], now, fence)
        self.report(speaking, now, fence)
        self.renew(speaking, now, fence)
        return speaking

    def _follow_script(self, machine: SimulatedMachine, now: float) -> None:
        node = machine.node or machines.new_node(self._options, machine.index, machine.name)
        base = self._stages.for_node(node)
        machine.script, faults = scripts.of_node(node.annotations, base)
        for fault in faults:
            self._recorder(machine.name).record_node_event(
                "Warning", "InvalidSimulation", str(fault)
            )
        begin = machine.started + machine.script.after
        ahead = [t for t in (begin, begin + machine.script.lasts) if t > now]
        if machine.script.states:
            self._timers.set(("script", machine.name), min(ahead, default=FOREVER))


def _grid(due: float) -> float:
    return math.ceil(due / GRID) * GRID


def _clock(script: NodeScript, now: float, *, whole: bool = True) -> datetime:
    """Returns what the node's own clock shows."""
    moment = datetime.fromtimestamp(now, tz=UTC) + timedelta(seconds=script.clock_skew)
    return moment.replace(microsecond=0) if whole else moment


def _lease_key(name: str) -> str:
    return f"{node_reports.LEASE_NAMESPACE}/{name}"
