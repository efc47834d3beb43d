"""The list of all measurements, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from bench import definitions, queue, size, store, system, testing, watch, workloads
from bench.api import requests, watchers
from bench.harness import POOLS, Bench
from bench.nodes import at_rest, kubelet, scheduling, silence, simulated
from bench.rest import growth, policies, webhooks
from bench.rest import workloads as rest_workloads
from bench.rest import writes as rest_writes
from bench.table import Row

QUICK_POOL = "threads"


@dataclass(frozen=True)
class Case:
    """One measurement, which has a Redis server of its own. Its rows' names begin with its name."""

    name: str
    about: str
    run: Callable[[Bench], Iterator[Row]]
    quick: bool = True  # whether `--quick` includes it without `--only`


def _per_pool(
    name: str, about: str, run: Callable[[Bench, str], Iterator[Row]], pools: Sequence[str]
) -> list[Case]:
    return [
        Case(
            f"{name}.{pool}", f"{about}, pool {pool}", partial(_with, run, pool), pool == QUICK_POOL
        )
        for pool in pools
    ]


def _with(run: Callable[[Bench, str], Iterator[Row]], pool: str, bench: Bench) -> Iterator[Row]:
    return run(bench, pool)


CASES = (
    Case("store.batch", "pods a second, created in batches", store.batches),
    Case("store.single", "one create", store.single),
    Case("watch", "write to handler in another process, under load", watch.latency),
    *_per_pool("queue", "keys a second, and idle latency", queue.pool_rows, POOLS),
    *_per_pool("system", "ReplicaSets filled, pods replaced", system.pool_rows, POOLS[:2]),
    Case("workloads", "Deployments, Jobs, cascades, many sets, a namespace", workloads.rows),
    Case("api.single", "create and get over HTTP", requests.single),
    Case("api.list", "a list over HTTP", requests.listed),
    Case("api.rate", "creates a second over HTTP", requests.rate),
    Case("api.stall", "a get beside a long list", requests.stall),
    Case("api.watch", "write to the last of many watchers", watchers.late),
    Case("api.watcher", "memory of an idle watcher", watchers.idle),
    Case("api.definitions", "definitions that come and go", definitions.rows),
    Case("rest.writes", "writes a second of `kcm up`, with all controllers", rest_writes.rows),
    Case("rest.workloads", "ReplicaSets, Deployment, Job over HTTP", rest_workloads.rows),
    Case("rest.growth", "time for a pod with ten and a hundred times the pods", growth.by_pods),
    Case(
        "rest.children",
        "ReplicaSets a second with more worker children",
        growth.by_children,
        quick=False,
    ),
    Case("rest.policies", "CPU that 100 policies add to a create", policies.rows, quick=False),
    Case("rest.webhooks", "what two webhooks add to a create", webhooks.rows, quick=False),
    Case("nodes.scheduling", "pods placed a second", scheduling.scheduling),
    Case("nodes.growth", "time for a pod with ten times the nodes", scheduling.growth),
    Case("nodes.running", "applied until Running on simulated nodes", scheduling.running),
    Case("nodes.monitor", "CPU of one look at thousands of nodes", simulated.monitor),
    Case("nodes.detection", "silent nodes, until their pods go", silence.detection, quick=False),
    Case("nodes.steady", "thousands of nodes with pods at rest", at_rest.many_nodes, quick=False),
    Case(
        "nodes.idle", "CPU of an idle system with five nodes", at_rest.idle_with_nodes, quick=False
    ),
    Case("kubelet.start", "pods of a real node until all are Ready", kubelet.start),
    Case("kubelet.idle", "CPU of a real node with pods at rest", kubelet.idle),
    Case("kubelet.up", "CPU of `kcm up`, its real node's pods at rest", kubelet.everything),
    Case("testing.start", "a fresh process, to its first control plane", testing.start),
    Case(
        "testing.again", "a further control plane of a test's process", testing.again, quick=False
    ),
    Case("testing.stop", "the stop of a test's control plane", testing.stop, quick=False),
    Case(
        "testing.settle", "a Deployment in a test, until it is ready", testing.settle, quick=False
    ),
    Case("testing.year", "a year of a CronJob in a test", testing.year, quick=False),
    Case("testing.memory", "memory of a test's process", testing.memory, quick=False),
    Case("size.memory", "memory of a caching process", size.memory),
    Case("size.ready", "start of a worker to its first sync", size.ready),
    Case("size.idle", "CPU of an idle system", at_rest.idle),
)


def select(names: Sequence[str], *, quick: bool = False) -> list[Case]:
    """Returns the cases under these names, such as `queue` or `queue.prefork`.

    Without names, returns all cases, or with `quick` those marked as quick. Raises LookupError for
    an unknown name.
    """
    chosen: list[Case] = []
    for name in names:
        under = [case for case in CASES if f"{case.name}.".startswith(f"{name}.")]
        if not under:
            known = ", ".join(case.name for case in CASES)
            raise LookupError(f"nothing is called {name!r}; there are: {known}")
        chosen += under
    if not names:
        return [case for case in CASES if case.quick or not quick]
    return [case for case in CASES if case in chosen]
