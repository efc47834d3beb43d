"""Runs thousands of simulated nodes with pods, and measures the monitoring of all nodes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial

import psutil

from bench.harness import Bench, progress, wait_for
from bench.nodes.scheduling import KCM, NODES, make_nodes
from bench.objects import web_pod
from bench.store import clear_store, stored_pods
from bench.table import Row, Sample
from bench.usage import cpu_seconds
from kcm.api import codec
from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import Pod, PodStatus
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.nodelifecycle import NodeLifecycleController
from kcm.manager.context.context import build_context
from kcm.manager.ticks.runner import TickRunner
from kcm.store import Pattern, Store, WriteItem

LEASES = Lease.resource
LEASE_NAMESPACE = "kube-node-lease"
MONITOR = "nodelifecycle.monitorNodeStatus"


# --- one pass


@dataclass
class _Looks:
    """CPU seconds of each look at all nodes, and of a list of their leases."""

    ours: list[float] = field(default_factory=list)
    servers: list[float] = field(default_factory=list)  # of those, in the server
    raw: list[float] = field(default_factory=list)


def monitor(bench: Bench) -> Iterator[Row]:
    """Measures the CPU of one pass over all nodes and leases, here and in the server."""
    few, many = bench.sizes.growth_nodes
    small, large = _look(bench, few), _look(bench, many)
    yield Row(
        name="nodes.monitor.look",
        what=f"CPU of one look at {many:,} nodes whose leases were renewed",
        unit="s",
        measured=Sample.of(large.ours),
        baseline=Sample.of(large.raw),
        baseline_what="s, a list of the same leases",
        bound=2,
        target="2 s",
        note=f"of that in the server {Sample.of(large.servers)} s",
    )
    each = Sample.of([seconds * 1e6 / few for seconds in small.ours])
    yield Row(
        name="nodes.monitor.growth",
        what=f"CPU of a look for a node of {many:,}",
        unit="us",
        measured=Sample.of([seconds * 1e6 / many for seconds in large.ours]),
        baseline=each,
        baseline_what=f"us, of {few:,}",
        bound=2 * each.median,
        target=f"twice that of {few:,}; linear is 1",
    )


def _look(bench: Bench, count: int) -> _Looks:
    """Measures looks at so many nodes, in a store that is emptied again."""
    progress(f"nodes.monitor: looks at {count} nodes, {bench.sizes.rounds} rounds")
    make_nodes(bench.store, count)
    renewals = _Renewals(bench.store, count)
    context = build_context(bench.settings)
    context.selection = replace(context.selection, started=(NodeLifecycleController(),))
    looks = _Looks()
    try:
        context.start()
        ticks = TickRunner(context)
        ticks.run(MONITOR, 0.0)  # the first pass, in which all nodes are new
        for number in range(1, bench.sizes.rounds + 1):
            renewals.renew()
            own, server = _cpu_of(bench, partial(ticks.run, MONITOR, 5.0 * number))
            looks.ours.append(own + server)
            looks.servers.append(server)
            looks.raw.append(sum(_cpu_of(bench, lambda: bench.store.list(LEASES, LEASE_NAMESPACE))))
    finally:
        context.shutdown()
    clear_store(bench)
    return looks


class _Renewals:
    """Renews the leases of nodes without kubelets."""

    def __init__(self, store: Store, count: int) -> None:
        self._store = store
        self._leases: list[Lease] = []
        self._moment = datetime.now(UTC)
        self._write([store.build_create(_lease(f"n{number:05}")) for number in range(count)])

    def renew(self) -> None:
        """Renews every lease, with a time that is ten seconds later than the last one."""
        self._moment += timedelta(seconds=10)
        items = []
        for old in self._leases:
            new = old.with_spec(old.spec.replace(renew_time=self._moment))
            items.append(self._store.build_update(new, old))
        self._write(items)

    def _write(self, items: Iterable[WriteItem | None]) -> None:
        written = self._store.write([item for item in items if item is not None])
        found = [result.get_stored() for result in written]
        self._leases = [lease for lease in found if isinstance(lease, Lease)]


def _lease(name: str) -> KubeObject:
    return codec.decode(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": LEASE_NAMESPACE},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40},
        },
        BUILT_IN,
    )


def _cpu_of(bench: Bench, act: Callable[[], object]) -> tuple[float, float]:
    """Returns the CPU seconds that `act` takes in this process, and in the server."""
    assert bench.server.process is not None
    server = psutil.Process(bench.server.process.pid)
    began, served = time.process_time(), cpu_seconds(server)
    act()
    return time.process_time() - began, cpu_seconds(server) - served


# --- simulated nodes


def start_nodes(bench: Bench, count: int, *flags: str) -> subprocess.Popen[bytes]:
    """Starts a simulator and waits until its nodes are registered."""
    process = bench.spawn("nodes", [*KCM, "nodes", "--count", str(count), *flags])
    wait_for(lambda: bench.store.count(NODES) == count, "the registration of the nodes", 120)
    return process


def make_bound_pods(
    store: Store, names: Sequence[str], each: int, status: PodStatus | None = None
) -> None:
    """Creates `each` pods on every node. They are evicted at once if the node fails.

    With a `status`, they are created with that status.
    """
    for name in names:
        pod = _pod(name)
        if status is not None:
            pod = pod.with_status(status)
        first = store.items.build_create(pod, keep_status=status is not None)
        rest = [store.build_create(pod, like=Pattern(first)) for _ in range(each - 1)]
        for result in store.write([first, *rest]):
            result.get_stored()


def _pod(node: str) -> Pod:
    unready = ("unreachable", "not-ready")
    impatient = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
    tolerations = [{"key": f"node.kubernetes.io/{word}", **impatient} for word in unready]
    return web_pod(f"{node}-load", nodeName=node, tolerations=tolerations)


def wait_running(store: Store, count: int) -> None:
    """Waits until `count` pods have the phase Running."""

    def enough() -> bool:
        return sum(b'"phase":"Running"' in raw for raw in stored_pods(store)) >= count

    wait_for(enough, f"{count} running pods", 300, every=1.0)
