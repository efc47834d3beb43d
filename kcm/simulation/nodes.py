"""The nodes of a simulator: they register, renew their leases and report their status.

Guarantees: a silent node writes nothing. A Node object that was deleted is registered again only
when its kubelet is started (`kcm nodes start`, or the simulator's own start), as upstream. What
others write to a node is never overwritten, because each write names the resourceVersion that it
replaces.

Source: pkg/kubelet/kubelet_node_status.go, staging/src/k8s.io/component-helpers/apimachinery/lease,
Kubernetes 1.33.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import structlog

from kcm import errors
from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import Node
from kcm.api.storage_v1 import CSINode
from kcm.apimachinery.durations import FOREVER
from kcm.helpers import node_reports
from kcm.redisio import Fence
from kcm.simulation import node_objects
from kcm.simulation.commands import AS_USUAL, NodeCommand
from kcm.simulation.context import SimulatorContext
from kcm.simulation.scripting import scripts
from kcm.simulation.scripting.jitter import spread
from kcm.simulation.scripting.scripts import NodeScript
from kcm.simulation.storage.objects import csi_node, is_same_csi_node
from kcm.store import DeleteOptions, WriteItem, damage
from kcm.store.options import Subresource

log = structlog.get_logger("kcm.nodes")

NODES = Node.resource
LEASES = Lease.resource
CSI_NODES = CSINode.resource
GRID = 0.25  # seconds; renewals that are due within them are written together
JITTER = 0.04  # the jitter as a share of the renewal period, as upstream
RETRY = 1.0  # seconds


class SimulatedNode:
    """One simulated node: its objects as last seen in the store, its command and its script."""

    __slots__ = (
        "command",
        "index",
        "lease",
        "name",
        "object",
        "pods",
        "reported",
        "script",
        "started",
        "volumes",
    )

    def __init__(self, name: str, index: int) -> None:
        self.name = name
        self.index = index
        self.object: Node | None = None  # as last seen in the store
        self.lease: Lease | None = None
        self.command: NodeCommand = AS_USUAL
        self.script: NodeScript = scripts.NO_NODE_SCRIPT
        self.started = 0.0  # when its kubelet started
        self.reported = 0.0  # when it last reported its status
        self.pods: set[str] = set()  # keys of the pods bound to it
        # how many pods use each volume that is attached to it, by the volume's unique name
        self.volumes: Counter[str] = Counter()

    def present_script(self, now: float) -> NodeScript:
        """Returns the script, without its states while they have not begun or are over."""
        begin = self.started + self.script.after
        if self.script.states and not begin <= now < begin + self.script.lasts:
            return NodeScript(clock_skew=self.script.clock_skew)
        return self.script

    def silent(self, now: float) -> bool:
        """Reports whether nothing that the node does reaches the API."""
        return self.command.silent or "silent" in self.present_script(now).states

    def in_use(self, *, settled: bool) -> list[str] | None:
        """Returns the unique names of the attached volumes that its pods use, None for none.

        With `settled` False, its pods are not all known yet, and what it last reported holds.
        """
        if settled:
            return sorted(self.volumes) or None
        return self.object.status.volumes_in_use if self.object is not None else None

    def cidrs(self) -> Sequence[str]:
        """Returns the address ranges of the node's pods, () if it has none."""
        spec = self.object.spec if self.object else None
        if spec is None:
            return ()
        return spec.pod_cidrs or ([spec.pod_cidr] if spec.pod_cidr else ())


class SimulatedNodes:
    """All nodes of one simulator. Not thread-safe. Times are seconds since 1970."""

    def __init__(self, context: SimulatorContext) -> None:
        self._store = context.store
        self._options = options = context.options
        self._stages = context.stages
        self._timers = context.timers
        self._recorder = context.recorder
        self.by_name: dict[str, SimulatedNode] = {
            name: SimulatedNode(name, index) for index, name in enumerate(options.names())
        }
        self.unsettled = set(self.by_name)  # nodes whose pods are not all known yet

    def get(self, name: str | None) -> SimulatedNode | None:
        """Returns the node with this name, or None if the simulator has no such node."""
        return self.by_name.get(name or "")

    def address_of(self, node: SimulatedNode) -> str:
        """Returns the node's InternalIP."""
        return self._options.address_of(node.index)

    def settle(self, now: float) -> None:
        """Lets nodes report their volumes in use, once all pods are known. Silent ones wait."""
        for name in [name for name in self.unsettled if not self.by_name[name].silent(now)]:
            self.unsettled.discard(name)
            node = self.by_name[name]
            if node.object is not None and self._in_use(node) != node.object.status.volumes_in_use:
                self._timers.set(("report", name), now)

    def _in_use(self, node: SimulatedNode) -> list[str] | None:
        return node.in_use(settled=node.name not in self.unsettled)

    # --- starting kubelets

    def start(self, names: Iterable[str], now: float, fence: Fence | None) -> None:
        """Starts the kubelets of these nodes.

        They register their nodes or update the labels, report their statuses and renew their
        leases.
        """
        to_start = [self.by_name[name] for name in names]
        nodes = self._store.get_all([(NODES, m.name) for m in to_start])
        leases = self._store.get_all([(LEASES, _lease_key(m.name)) for m in to_start])
        for node, stored, lease in zip(to_start, nodes, leases, strict=True):
            node.object = stored if isinstance(stored, Node) else None
            node.lease = lease if isinstance(lease, Lease) else None
            node.started = now
            self._follow_script(node, now)
        starting = [m for m in to_start if not m.silent(now)]
        self._register(starting, now, fence)
        self._report_drivers(starting, fence)
        for node in starting:
            self._recorder(node.name).record_node_event("Normal", "Starting", "Starting kubelet.")
        names = [m.name for m in starting]
        self.report(names, now, fence)
        self.renew(names, now, fence)

    def _register(
        self, unregistered: Sequence[SimulatedNode], now: float, fence: Fence | None
    ) -> None:
        items: list[tuple[SimulatedNode, WriteItem[Node]]] = []
        for node in unregistered:
            item = self._registration(node, now)
            if item is not None:
                items.append((node, item))
        results = self._store.write([item for _, item in items], fence=fence)
        for (node, _), result in zip(items, results, strict=True):
            if result.ok:
                node.object = result.get_stored()
                self._follow_script(node, now)
            else:
                log.warning("A node was not registered", node=node.name, error=result.status)
                self._timers.set(("script", node.name), now + RETRY)

    def _registration(self, node: SimulatedNode, now: float) -> WriteItem[Node] | None:
        options, index = self._options, node.index
        if node.object is not None:
            new = node_objects.update_labels(node.object, options, index)
            return self._store.build_update(new, node.object)
        new = node_objects.new_node(options, index, node.name)
        script = node.present_script(now)
        status = node_objects.status_of(new, options, index, script, _clock(script, now))
        status = status.replace(volumes_in_use=self._in_use(node))
        node.reported = now
        return self._store.build_create(new.with_status(status))

    def _report_drivers(self, nodes: Sequence[SimulatedNode], fence: Fence | None) -> None:
        """Writes the CSINodes of these nodes, which name the simulated CSI driver."""
        present = [node.object for node in nodes if node.object is not None]
        stored = self._store.get_all([(CSI_NODES, node.name) for node in present])
        deletions: list[WriteItem] = []
        creations: list[WriteItem] = []
        for node, before in zip(present, stored, strict=True):
            stored_node = before if isinstance(before, CSINode) else None
            new = csi_node(node, self._options.volume_limit, stored_node)
            if stored_node is not None and is_same_csi_node(new, stored_node):
                continue
            if stored_node is not None:  # what it says of a driver cannot be changed
                deletion = self._store.build_delete(stored_node, DeleteOptions())
                deletions += [deletion] if deletion is not None else []
            creations.append(self._store.build_create(new))
        self._store.write(deletions, fence=fence)
        for item, result in zip(creations, self._store.write(creations, fence=fence), strict=True):
            if not result.ok:  # it is written at the next start
                log.warning("A CSINode was not written", node=item.obj.name, error=result.status)

    # --- leases and statuses

    def renew(self, names: Iterable[str], now: float, fence: Fence | None) -> None:
        """Renews the leases of these nodes, except silent ones, and schedules the next renewals."""
        due = [m for name in names if (m := self.by_name[name]).object and not m.silent(now)]
        lost = [m for m in due if m.lease is None]
        for node, lease in zip(
            lost, self._store.get_all([(LEASES, _lease_key(m.name)) for m in lost]), strict=True
        ):
            node.lease = lease if isinstance(lease, Lease) else None
        items = [self._renewal(node, now) for node in due]
        results = self._store.write(items, fence=fence)
        for node, result in zip(due, results, strict=True):
            stored = result.get_stored() if result.ok else None
            node.lease = stored if isinstance(stored, Lease) else None  # None: read it next time
            wait = self._options.renew_every * (1 + JITTER * spread(node.name, now))
            self._timers.set(("lease", node.name), _grid(now + (wait if result.ok else RETRY)))

    def _renewal(self, node: SimulatedNode, now: float) -> WriteItem[Lease]:
        assert node.object is not None
        time = _clock(node.script, now, whole=False)
        duration = self._options.lease_duration
        if node.lease is None:
            return self._store.build_create(node_reports.new_lease(node.object, duration, time))
        # Nobody else writes the lease, so it does not have to be validated again.
        new = node_reports.renew_lease(node.lease, node.object, duration, time)
        version = node.lease.metadata.resource_version or ""
        return WriteItem("update", LEASES, new, version)

    def report(self, names: Iterable[str], now: float, fence: Fence | None) -> None:
        """Reports the statuses that have changed or are due, and schedules the next reports."""
        writes: list[tuple[SimulatedNode, WriteItem[Node]]] = []
        for name in names:
            node = self.by_name[name]
            item = self._report(node, now)
            if item is not None:
                writes.append((node, item))
            period = self._options.report_every * (1 + JITTER * spread(name, now))
            next_ = node.reported + period
            # If this report is being written, or the node is silent, the period begins now.
            self._timers.set(("report", name), _grid(next_ if next_ > now else now + period))
        results = self._store.write([item for _, item in writes], fence=fence)
        for (node, _), result in zip(writes, results, strict=True):
            if not result.ok:  # another write was faster, and the watch will have it
                continue
            before, stored = node.object, result.get_stored()
            node.object, node.reported = stored, now
            if before is not None:
                for reason in node_reports.transitions(stored.status, before.status):
                    text = f"Node {node.name} status is now: {reason}"
                    self._recorder(node.name).record_node_event("Normal", reason, text)

    def _report(self, node: SimulatedNode, now: float) -> WriteItem[Node] | None:
        before = node.object
        if before is None or node.silent(now):
            return None
        script = node.present_script(now)
        status = node_objects.status_of(
            before, self._options, node.index, script, _clock(script, now)
        ).replace(volumes_in_use=self._in_use(node))
        overdue = now >= node.reported + self._options.report_every
        if not overdue and not node_reports.differs(status, before.status):
            return None
        return self._store.build_update(
            before.with_status(status), before, subresource=Subresource.STATUS
        )

    # --- changes by others

    def handle_changed(
        self, name: str, raw: bytes, version: int, now: float, *, is_listed: bool = False
    ) -> bool:
        """Handles a written Node object. Returns whether the node has to report its status at once.

        `raw` is the object's JSON, `version` its resourceVersion. As for pods, an older version
        than the known one is news only if it `is_listed`.
        """
        node = self.by_name[name]
        seen_version = int(node.object.metadata.resource_version or 0) if node.object else 0
        if seen_version == version or (seen_version > version and not is_listed):
            return False
        try:
            changed = damage.decode_object(NODES, name, raw)
        except errors.Damaged as error:  # other nodes are not affected
            log.warning("A node cannot be read", key=name, error=error.message)
            return False
        was_silent = node.object is None or node.silent(now)
        if node.object is None:
            node.lease = None
        node.object = changed
        self._follow_script(node, now)
        if node.silent(now):
            return False
        if was_silent:
            self._timers.set(("lease", name), now)
        return True

    def handle_deleted(self, name: str) -> None:
        """Handles a deleted Node object. Its kubelet runs on, but does not register again."""
        node = self.by_name[name]
        node.object = node.lease = None
        self._timers.cancel(("lease", name))
        self._timers.cancel(("report", name))

    def follow_commands(
        self, commands: Mapping[str, NodeCommand], now: float, fence: Fence | None
    ) -> list[str]:
        """Applies commands; returns the names of nodes that are no longer stopped or partitioned.

        Nodes whose kubelets start are registered. If a write fails, all changed nodes keep their
        earlier commands, so that the next call applies them.
        """
        before = {name: node.command for name, node in self.by_name.items()}
        self.set_commands(commands)
        changed = [
            n for n, m in self.by_name.items() if m.command != before[n] and not m.command.silent
        ]
        starting = [n for n in changed if self._is_start(before[n], self.by_name[n].command)]
        back = [n for n in changed if n not in starting]
        try:
            if starting:
                self.start(starting, now, fence)
            self.report(back, now, fence)
            self.renew(back, now, fence)
        except errors.KcmError:
            for name in changed:  # the next call applies these commands again
                self.by_name[name].command = before[name]
            raise
        return starting + back

    @staticmethod
    def _is_start(before: NodeCommand, command: NodeCommand) -> bool:
        return command.since is not None or before.state == "stopped"

    def resume_timers(self, now: float) -> None:
        """Makes all reports and renewals due, after an outage of the store."""
        for name, node in self.by_name.items():
            if node.object is not None and not node.silent(now):
                self._timers.set(("lease", name), now)
                self._timers.set(("report", name), now)

    def set_commands(self, commands: Mapping[str, NodeCommand]) -> None:
        """Sets the nodes' commands without applying them."""
        for name, node in self.by_name.items():
            node.command = commands.get(name, AS_USUAL)

    def apply_script_changes(
        self, names: Iterable[str], now: float, fence: Fence | None
    ) -> list[str]:
        """Applies scripts whose states begin or end; returns the nodes that are not silent."""
        names = list(names)
        missing = [name for name in names if self.by_name[name].object is None]
        for name in names:
            self._follow_script(self.by_name[name], now)
        speaking = [name for name in names if not self.by_name[name].silent(now)]
        self._register([self.by_name[n] for n in missing if n in speaking], now, fence)
        self.report(speaking, now, fence)
        self.renew(speaking, now, fence)
        return speaking

    def _follow_script(self, node: SimulatedNode, now: float) -> None:
        obj = node.object or node_objects.new_node(self._options, node.index, node.name)
        base = self._stages.for_node(obj)
        node.script, faults = scripts.of_node(obj.annotations, base)
        for fault in faults:
            self._recorder(node.name).record_node_event("Warning", "InvalidSimulation", str(fault))
        begin = node.started + node.script.after
        ahead = [t for t in (begin, begin + node.script.lasts) if t > now]
        if node.script.states:
            self._timers.set(("script", node.name), min(ahead, default=FOREVER))


def _grid(due: float) -> float:
    return math.ceil(due / GRID) * GRID


def _clock(script: NodeScript, now: float, *, whole: bool = True) -> datetime:
    """Returns the time of the node's own clock, in whole seconds unless `whole` is False."""
    moment = datetime.fromtimestamp(now, tz=UTC) + timedelta(seconds=script.clock_skew)
    return moment.replace(microsecond=0) if whole else moment


def _lease_key(name: str) -> str:
    return f"{node_reports.LEASE_NAMESPACE}/{name}"
