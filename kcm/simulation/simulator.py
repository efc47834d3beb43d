"""The loop of a simulator: reads changes, advances nodes and pods, and writes the results.

One thread does it for all nodes and pods, with a blocking read of the watch that returns when the
next timer is due. Guarantees: an outage of the store loses nothing, because all state is read from
it again. Two simulators of the same nodes take turns, because every write carries the fence of a
lease.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

import structlog

from kcm.api.core_v1 import ConfigMap, Node
from kcm.api.scheme import Resource
from kcm.clock import Clock
from kcm.informers.follower import Follower
from kcm.kubelet.recorder import EventSink
from kcm.loops import Loop, Turn
from kcm.redisio import Fence
from kcm.simulation import commands
from kcm.simulation.context import Key, SimulatorContext, Task
from kcm.simulation.nodes import NODES, SimulatedNodes
from kcm.simulation.options import SimulatorOptions
from kcm.simulation.pods import SimulatedPods
from kcm.simulation.scripting.stages import NO_STAGES, Stages
from kcm.simulation.storage.seen import KINDS as STORAGE_KINDS
from kcm.simulation.storage.volumes import SimulatedVolumes
from kcm.simulation.timers import Timers
from kcm.simulation.tracked import PODS
from kcm.simulation.usage import Meter
from kcm.store import Store, WatchEntry
from kcm.store.resource_metrics.usage import UsageBoard

log = structlog.get_logger("kcm.nodes")

CONFIGMAPS = ConfigMap.resource
KINDS = (PODS, NODES, CONFIGMAPS, *STORAGE_KINDS)  # what a simulator watches
LONGEST_READ = 0.5  # seconds, and so how long stopping may take
_ROUNDS = 4  # batches of pods that are advanced in one turn
_USAGE: Key = ("usage", "")
_UPKEEP = ("lease", "report", "usage")  # what is done at intervals, and changes nothing else
_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')


class Simulator(Loop):
    """The loop of a simulator. Times are seconds since 1970."""

    reads = True

    def __init__(
        self,
        store: Store,
        options: SimulatorOptions,
        clock: Clock,
        *,
        stages: Stages = NO_STAGES,
        recorder: EventSink | None = None,
        board: UsageBoard | None = None,
        fence: Callable[[], Fence | None] = lambda: None,
    ) -> None:
        super().__init__("kcm-nodes")
        self._store = store
        self._options = options
        self._clock = clock
        self._fence = fence
        self._timers: Timers[Key] = Timers()
        sink = recorder if options.events else None
        context = SimulatorContext(store, options, stages, self._timers, sink)
        self.nodes = SimulatedNodes(context)
        self.volumes = SimulatedVolumes(context)
        self.pods = SimulatedPods(context, self.nodes, self.volumes.seen)
        every = options.metric_resolution
        self._meter = Meter(board, self.nodes, self.pods, every) if board and every else None
        self._follower = Follower(store, self, KINDS)
        self._restarted = True

    def begin(self) -> None:
        """Makes the next turn read everything, instead of the changes since the last turn."""
        self._follower.list_again()

    def turn(self, patience: float) -> Turn:
        """Reads what has changed, waiting up to `patience` seconds for it, and does what is due.

        Raises Temporary and Fenced.
        """
        wait = min(patience, LONGEST_READ, max(self._timers.next() - self._now(), 0.0))
        wait = 0.0 if self.pods.dirty else wait
        count = self._follower.read(wait)
        worked = self._let_time_pass() or count > 0
        now = self._now()
        if self.pods.dirty or self._follower.is_listing:
            return Turn(worked, 0.0)
        due = self._timers.next_except(lambda key: key[0] in _UPKEEP)
        return Turn(worked, max(due - now, 0.0), max(self._timers.next() - now, 0.0))

    def is_alive(self, node: str) -> bool:
        """Reports whether it simulates the node, and the node sends heartbeats."""
        simulated = self.nodes.get(node)
        if simulated is None or simulated.object is None:
            return False
        return not simulated.silent(self._now())

    def _now(self) -> float:
        return self._clock.now().timestamp()

    # --- reading

    def list_kinds(self, kinds: Sequence[Resource]) -> Mapping[Resource, int]:
        """Reads everything; the first time, also starts the kubelets. See `ChangeTarget`."""
        version = self._store.resource_version()
        now = self._now()
        sent = commands.parse(commands.get_stored(self._store))
        if self._restarted:
            self.volumes.offer()
            self.nodes.set_commands(sent)
            self.nodes.start(self.nodes.by_name, now, self._fence())
            commands.store_grace_period(self._store, self._options.monitor_grace_period)
            self._restarted = False
        else:
            self._read_nodes(now)
            self.nodes.resume_timers(now)
            self.nodes.follow_commands(sent, now, self._fence())
        for kind in STORAGE_KINDS:
            self.volumes.read(kind, self._objects(kind))
        self.volumes.look_at_all(now, self._fence())
        self._read_pods()
        self.pods.wake(self.nodes.by_name)
        self._timers.set(_USAGE, now)
        return dict.fromkeys(KINDS, version)

    def apply_changes(
        self, kind: Resource, changes: Sequence[WatchEntry], resource_version: int
    ) -> None:
        """Takes the changes of one kind; see `ChangeTarget`."""
        for change in changes:
            self._take(change)

    def _read_nodes(self, now: float) -> None:
        present = set()
        for name, raw, version in self._objects(NODES):
            present.add(name)
            self._node_changed(name, raw, version, now, is_listed=True)
        for name in self.nodes.by_name.keys() - present:
            self.nodes.handle_deleted(name)

    def _read_pods(self) -> None:
        present = set()
        for key, raw, version in self._objects(PODS):
            present.add(key)
            self.pods.handle_changed(key, raw, version, is_listed=True)
        self.pods.forget_missing(present)

    def _objects(self, resource: Resource) -> list[tuple[str, bytes, int]]:
        entries: list[tuple[str, bytes, int]] = []
        for page in self._store.raw_pages(resource):
            for key, raw in page:
                match = _VERSION.search(raw)  # the first field of the metadata
                if match:
                    entries.append((key, raw, int(match[1])))
        return entries

    def _take(self, change: WatchEntry) -> None:
        now = self._now()
        if change.resource is PODS:
            if change.type == "DELETED":
                self._pod_deleted(change)
            else:
                self.pods.handle_changed(change.key, change.raw, change.resource_version)
        elif change.resource is NODES and change.key in self.nodes.by_name:
            if change.type == "DELETED":
                self._node_deleted(change)
            else:
                self._node_changed(change.key, change.raw, change.resource_version, now)
        elif change.resource is CONFIGMAPS and change.key == commands.KEY:
            sent = commands.parse(commands.get_stored(self._store))
            self.pods.wake(self.nodes.follow_commands(sent, now, self._fence()))
        elif change.resource in STORAGE_KINDS:
            deleted = change.type == "DELETED"
            raw = None if deleted else change.raw
            touched = self.volumes.handle_change(
                change.resource, change.key, raw, now, self._fence()
            )
            self.pods.wake_users(touched)

    def _pod_deleted(self, change: WatchEntry) -> None:
        tracked = self.pods.tracked.get(change.key)
        if tracked is not None and tracked.version < change.resource_version:
            self.pods.handle_deleted(change.key)

    def _node_deleted(self, change: WatchEntry) -> None:
        node = self.nodes.by_name[change.key].object
        # If the node was registered again in between, this is an earlier Node object.
        if node is None or int(node.metadata.resource_version or 0) < change.resource_version:
            log.info("A node was deleted; starting it registers it again", node=change.key)
            self.nodes.handle_deleted(change.key)

    def _node_changed(
        self, name: str, raw: bytes, version: int, now: float, *, is_listed: bool = False
    ) -> None:
        node = self.nodes.get(name)
        if node is None:
            return
        before = None if node.object is None or node.silent(now) else node.object
        if not self.nodes.handle_changed(name, raw, version, now, is_listed=is_listed):
            return
        self._timers.set(("report", name), now)
        if before is not None and node.object is not None and _is_alike(before, node.object):
            self.pods.wake_waiting(name)
        else:
            self.pods.wake([name])

    # --- what is due

    def _let_time_pass(self) -> bool:
        """Does what is due, and reports whether there was anything."""
        now, fence = self._now(), self._fence()
        due: dict[str, list[str]] = {task: [] for task in get_args(Task)}
        for task, name in self._timers.pop_due(now):
            due[task].append(name)
        self.volumes.end_calls(due["storage"], now, fence)
        if due["script"]:
            self.pods.wake(self.nodes.apply_script_changes(due["script"], now, fence))
        if due["report"]:
            self.nodes.report(due["report"], now, fence)
        if due["lease"]:
            self.nodes.renew(due["lease"], now, fence)
        self.pods.dirty.update(dict.fromkeys(due["pod"]))
        worked = bool(self.pods.dirty) or any(due.values())
        for _ in range(_ROUNDS):
            if not self.pods.dirty:
                break
            self.pods.play(now, fence)
        self.pods.save_outputs()
        if self.nodes.unsettled and not self.pods.dirty:
            self.nodes.settle(now)
        if due["usage"] and self._meter is not None:
            self._timers.set(_USAGE, now + self._options.metric_resolution)
            self._meter.report(now)
        return worked


def _is_alike(before: Node, after: Node) -> bool:
    """Reports whether the nodes differ in nothing but their statuses."""
    same = before.labels == after.labels and before.annotations == after.annotations
    return same and before.spec == after.spec and before.deleting == after.deleting
