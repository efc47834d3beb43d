"""Keeps the node in the store: registers it, renews its lease, reports its status.

A first form: capacity and Ready are real, pressures are not measured yet (`conditions`
is where the eviction manager plugs in). Guarantees: while the store is away nothing
blocks but this thread, and all is written when it is back; a node object that was
deleted comes back only with the kubelet's next start, as upstream.

Source: registerWithAPIServer and syncNodeStatus in pkg/kubelet/kubelet_node_status.go,
Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog

from kcm import errors
from kcm.api import scheme
from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import Node, NodeAddress, NodeCondition, NodeStatus
from kcm.apimachinery.quantity import Quantity
from kcm.clock import Clock
from kcm.helpers import node_reports
from kcm.helpers.node_reports import condition
from kcm.kubelet.node import objects
from kcm.kubelet.node.objects import Machine
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.recorder import Recorder
from kcm.store.objects import ObjectStore
from kcm.store.rules import Subresource

log = structlog.get_logger("kcm.kubelet")

NODES = scheme.by_name("nodes")
LEASES = scheme.by_name("leases.coordination.k8s.io")
RETRY = 1.0  # seconds, while the store is away

Conditions = Callable[[NodeStatus, datetime], Sequence[NodeCondition]]


@dataclass(frozen=True)
class Report:
    """What the status is made of. `conditions` makes all but Ready; `faults` are why the node
    is not ready."""

    machine: Callable[[], Machine]
    faults: Callable[[], Sequence[str]]
    conditions: Conditions
    reserved: Mapping[str, Quantity]


def no_pressure(before: NodeStatus, now: datetime) -> list[NodeCondition]:
    """The conditions of a node on which nothing is measured."""
    rows = (
        ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    )
    return [condition(kind, False, (why, words), before, now) for kind, why, words in rows]


class NodeKeeper:
    """`run` does it all in one thread; `node` may be asked by any."""

    def __init__(
        self,
        store: ObjectStore,
        options: KubeletOptions,
        report: Report,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._store = store
        self._options = options
        self._report = report
        self._recorder = recorder
        self._clock = clock
        self._registered = False
        self._birth = ""  # of the data that the node was registered in
        self._lease: Lease | None = None
        self._reported_at: datetime | None = None
        self._soon = threading.Event()
        name = options.node_name
        self._node = objects.new_node(name, options.node_labels, options.register_with_taints)
        status = self._status(self._node, clock.now())
        self._node = self._node.with_status(status)

    @property
    def node(self) -> Node:
        """The node as last seen, before its registration as it will be."""
        return self._node

    def registered(self) -> Node | None:
        """The node in the store; None as long as it was never seen there."""
        return self._node if self._node.uid else None

    def report_soon(self) -> None:
        """Something about the node changed: report it now."""
        self._soon.set()

    def run(self, stop: threading.Event) -> None:
        """Register, then renew and report until `stop`."""
        next_lease = next_status = 0.0
        while not stop.is_set():
            now = self._clock.monotonic()
            try:
                self._notice_an_emptied_store()
                if not self._registered:
                    self.register()
                if now >= next_lease:
                    self.renew()
                    next_lease = now + self._options.lease_duration / 4
                if now >= next_status or self._soon.is_set():
                    self._soon.clear()
                    self.report()
                    next_status = now + self._options.node_status_update_frequency
            except errors.KcmError as error:
                log.warning("the node was not written", error=str(error))
                self._clock.wait(stop, RETRY)
                continue
            self._clock.wait(self._soon, max(min(next_lease, next_status) - now, 0.05))

    def _notice_an_emptied_store(self) -> None:
        birth = self._store.birth
        if self._birth not in ("", birth):
            self._registered, self._lease = False, None
        self._birth = birth

    def register(self) -> None:
        """Make the node object, or take over the one that is there. Raises: Temporary.

        A node that was deleted is not registered again; in a store that was emptied it is.
        """
        found = self._find()
        options = self._options
        if found is None:
            if not options.register_node:
                raise errors.StoreUnavailable(
                    f"node {options.node_name} is not registered, and --register-node is off"
                )
            made = objects.new_node(
                options.node_name, options.node_labels, options.register_with_taints
            )
            made = made.with_status(self._node.status)
            stored = self._store.write([self._store.creation(made)])[0].stored()
            assert isinstance(stored, Node)
            found = stored
            log.info("Successfully registered node", node=options.node_name)
        else:
            found = self._adopt(found)
        self._node = found.with_status(self._status(found, self._clock.now()))
        self._registered = True
        self._recorder.of_node("Normal", "Starting", "Starting kubelet.")
        self._soon.set()

    def _adopt(self, found: Node) -> Node:
        wanted = objects.adopted(found, self._options.node_labels)
        item = self._store.modification(wanted, found) if wanted is not found else None
        if item is None:
            return found
        stored = self._store.write([item])[0].stored()
        assert isinstance(stored, Node)
        return stored

    def _find(self) -> Node | None:
        found = self._store.get_all([(NODES, self._options.node_name)])[0]
        return found if isinstance(found, Node) else None

    def renew(self) -> None:
        """Renew the lease. Raises: Temporary, Conflict."""
        name, seconds = self._options.node_name, self._options.lease_duration
        now = self._clock.now()
        key = f"{node_reports.LEASE_NAMESPACE}/{name}"
        lease = self._lease
        if lease is None:
            found = self._store.get_all([(LEASES, key)])[0]
            lease = found if isinstance(found, Lease) else None
        if lease is None:
            item = self._store.creation(node_reports.new_lease(self._node, seconds, now))
        else:
            renewed = node_reports.renew_lease(lease, self._node, seconds, now)
            changed = self._store.modification(renewed, lease)
            assert changed is not None
            item = changed
        self._lease = None  # until it is known to be written
        stored = self._store.write([item])[0].stored()
        self._lease = stored if isinstance(stored, Lease) else None

    def report(self) -> None:
        """Report the status, if it changed or was not reported for long. Raises: Temporary."""
        found, now = self._find(), self._clock.now()
        if found is None:
            log.warning("the node object is gone; it comes back when the kubelet is started again")
            return
        status = self._status(found, now)
        long_ago = self._reported_at is None or (
            (now - self._reported_at).total_seconds() >= self._options.node_status_report_frequency
        )
        self._node = found.with_status(status)
        if not long_ago and not node_reports.differs(status, found.status):
            return
        item = self._store.modification(self._node, found, subresource=Subresource.STATUS)
        if item is not None:
            stored = self._store.write([item])[0].stored()
            assert isinstance(stored, Node)
            self._node = stored
            self._tell(node_reports.transitions(stored.status, found.status))
        self._reported_at = now

    def _tell(self, reasons: Sequence[str]) -> None:
        """Events of the conditions that changed."""
        for reason in reasons:
            text = f"Node {self._options.node_name} status is now: {reason}"
            self._recorder.of_node("Normal", reason, text)

    def _status(self, node: Node, now: datetime) -> NodeStatus:
        report, options = self._report, self._options
        found = report.machine()
        now = now.replace(microsecond=0)
        capacity = objects.capacity_of(found, options.max_pods)
        faults = report.faults()
        ready = condition(
            "Ready",
            not faults,
            ("KubeletNotReady", ", ".join(faults))
            if faults
            else ("KubeletReady", "kubelet is posting ready status"),
            node.status,
            now,
        )
        return objects.status_of(
            node,
            found,
            capacity=capacity,
            reserved=report.reserved,
            addresses=[
                NodeAddress(type="InternalIP", address=options.node_ip),
                NodeAddress(type="Hostname", address=options.node_name),
            ],
            conditions=[*report.conditions(node.status, now), ready],
            port=options.port,
        )
