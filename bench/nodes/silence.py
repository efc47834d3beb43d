"""Measures how soon stopped nodes become Unknown and tainted, and their pods deleted."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bench.harness import Bench, TooSlowError, progress
from bench.nodes.scheduling import NODES, PODS, POOL
from bench.nodes.simulated import LEASES, make_bound_pods, start_nodes, wait_running
from bench.table import Row, Sample
from kcm.api import codec
from kcm.api.core_v1 import Node, Pod
from kcm.api.scheme import BUILT_IN
from kcm.simulation import commands
from kcm.simulation.commands import NodeCommand

SHARE = 20  # one node of that many is stopped
GRACE = 6  # the node monitor grace period, in seconds
PODS_PER_NODE = 2
QUICK_TO_NOTICE = {
    "KCM_NODE_MONITOR_PERIOD": "1s",
    "KCM_NODE_MONITOR_GRACE_PERIOD": f"{GRACE}s",
    "KCM_NODE_EVICTION_RATE": "1000",
}


@dataclass
class _Silence:
    """What the watch shows after nodes were stopped. Times are seconds since then."""

    silent: set[str]  # the names of the stopped nodes
    marked: dict[str, float] = field(default_factory=dict)  # when nodes became Unknown
    tainted: dict[str, float] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)  # when pods were deleted
    touched: set[str] = field(default_factory=set)  # other nodes, and their pods, that were changed
    renewed: dict[str, float] = field(default_factory=dict)
    longest: float = 0.0  # the longest time between two renewals of another node

    def renew(self, name: str, seconds: float) -> None:
        """Records the renewal of a node's lease."""
        if name not in self.silent:
            self.longest = max(self.longest, seconds - self.renewed.get(name, seconds))
            self.renewed[name] = seconds

    def see(self, raw: bytes, key: str, seconds: float, *, deleted: bool) -> None:
        """Records an entry of the watch log of pods and nodes."""
        obj = codec.decode(raw, BUILT_IN)
        if isinstance(obj, Pod):
            if deleted or obj.deleting:
                self._record(self.gone, key, obj.spec.node_name or "", seconds)
        elif isinstance(obj, Node):
            ready = {c.status for c in obj.status.conditions or () if c.type == "Ready"}
            if ready == {"Unknown"}:
                self._record(self.marked, key, key, seconds)
            if any(taint.effect == "NoExecute" for taint in obj.spec.taints or ()):
                self._record(self.tainted, key, key, seconds)

    def _record(self, times: dict[str, float], key: str, node: str, seconds: float) -> None:
        if node in self.silent:
            times.setdefault(key, seconds)
        else:
            self.touched.add(key)


def detection(bench: Bench) -> Iterator[Row]:
    """Measures the times from stopping one node in twenty until all their pods are deleted."""
    count = bench.sizes.detected_nodes
    progress(f"nodes.detection: 1 of {SHARE} of {count} nodes falls silent")
    bench.kcm_worker(POOL, extra=QUICK_TO_NOTICE)
    bench.beat(extra=QUICK_TO_NOTICE)
    start_nodes(bench, count, "--node-lease-duration-seconds", str(GRACE))
    names = [f"node-{number}" for number in range(1, count + 1)]
    make_bound_pods(bench.store, names, PODS_PER_NODE)
    wait_running(bench.store, count * PODS_PER_NODE)
    time.sleep(5 * bench.sizes.settle_seconds)
    found = _stop_and_watch(bench, names[::SHARE])
    marked, tainted, gone = (max(t.values()) for t in (found.marked, found.tainted, found.gone))
    first = min(found.marked.values())
    steps = (
        ("marked", f"of {count:,} nodes {len(found.silent)} stopped: until all are marked",
         marked, 8, "from the stop",
         f"first mark after {first:.1f} s; {len(found.touched)} others touched, whose leases were "
         f"renewed after at most {found.longest:.1f} s"),
        ("tainted", "from the last mark to the last taint", tainted - marked, 1, "after that", ""),
        ("gone", f"from the last taint until all {len(found.gone)} pods are deleted",
         gone - tainted, 2, "after that", ""),
    )  # fmt: skip
    for name, what, seconds, bound, since, note in steps:
        yield Row(
            name=f"nodes.detection.{name}",
            what=what,
            unit="s",
            measured=Sample.of([max(0.0, seconds)]),
            # The row misses if a node that was not stopped was changed.
            value=float("inf") if found.touched else None,
            baseline=Sample.of([GRACE]),
            baseline_what="s, the grace period",
            bound=bound,
            target=f"{bound} s {since}, no others touched",
            note=note,
        )


def _stop_and_watch(bench: Bench, names: Sequence[str]) -> _Silence:
    found = _Silence(set(names))
    position = bench.store.resource_version()
    positions = {NODES: position, PODS: position, LEASES: position}
    commands.send(bench.store, dict.fromkeys(names, NodeCommand("stopped", datetime.now(UTC))))
    began = time.monotonic()
    end = began + 60
    while time.monotonic() < end:
        changes = bench.store.read_changes(positions, 50)
        positions.update(changes.positions)
        seconds = time.monotonic() - began
        for entry in changes.entries:
            if entry.resource == LEASES:
                found.renew(entry.key.rpartition("/")[2], seconds)
                continue
            found.see(entry.raw, entry.key, seconds, deleted=entry.type == "DELETED")
        if len(found.gone) == len(names) * PODS_PER_NODE and len(found.tainted) == len(names):
            end = min(end, time.monotonic() + bench.sizes.settle_seconds)  # for changes of others
    if not (len(found.marked) == len(found.tainted) == len(names) and found.gone):
        raise TooSlowError(
            f"of {len(names)} nodes {len(found.marked)} were marked and {len(found.tainted)} "
            f"tainted, {len(found.gone)} pods were deleted"
        )
    return found
