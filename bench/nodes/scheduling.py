"""Measures how fast pods are bound to nodes, and how fast they run on simulated nodes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from bench.harness import Bench, progress, wait_for
from bench.objects import replica_set, web_pod
from bench.raw import RawStore
from bench.store import clear_store, create_in_batches, stored_pods, watch_entries
from bench.table import Row, Sample
from kcm.api.core_v1 import Node, Pod
from kcm.store import Store

PODS, NODES = Pod.resource, Node.resource
POOL = "prefork"
WARM = 10  # pods that are bound before the measurement
START_AFTER = 0.3  # seconds, the default of `kcm nodes --start-after`
KCM = ("-m", "kcm.cli.main")
WITH_SCHEDULER = {"KCM_CONTROLLERS": "*"}


def make_nodes(store: Store, count: int) -> None:
    """Creates nodes without kubelets. The scheduler needs only their labels and resources."""
    items = [store.build_create(_node(n)) for n in range(count)]
    for result in store.write(items):
        result.get_stored()


def _node(number: int) -> Node:
    name = f"n{number:05}"
    room = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    return Node.model_validate(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {
                    "kubernetes.io/hostname": name,
                    "topology.kubernetes.io/zone": "abc"[number % 3],
                },
            },
            "status": {"capacity": room, "allocatable": room},
        }
    )


def wait_bound(store: Store, position: int, count: int) -> None:
    """Waits until `count` pods have been bound to a node by changes after `position`."""
    bound: set[str] = set()
    for entry in watch_entries(store, PODS, position, f"the binding of {count} pods"):
        if b'"nodeName":"' in entry.raw:
            bound.add(entry.key)
            if len(bound) == count:
                return


def _round(bench: Bench, nodes: int, pods: int) -> float:
    """Empties the store; returns the seconds from the first pod's creation to the last binding."""
    clear_store(bench)
    worker = bench.kcm_worker(POOL, extra=WITH_SCHEDULER)
    make_nodes(bench.store, nodes)
    position = bench.store.resource_version()
    create_in_batches(bench.store, WARM, web_pod("warm"))
    wait_bound(bench.store, position, WARM)
    time.sleep(bench.sizes.settle_seconds / 3)
    position = bench.store.resource_version()
    started = time.monotonic()
    create_in_batches(bench.store, pods, web_pod("load"))
    wait_bound(bench.store, position, pods)
    seconds = time.monotonic() - started
    bench.stop(worker)
    return seconds


def scheduling(bench: Bench) -> Iterator[Row]:
    """Measures how many pods of one template are bound in a second, to nodes with room."""
    nodes, pods = bench.sizes.scheduled_nodes, bench.sizes.scheduled_pods
    progress(f"nodes: {pods} pods on {nodes} nodes, {bench.sizes.queue_rounds} rounds")
    ours, raw = [], []
    for _ in range(bench.sizes.queue_rounds):
        ours.append(pods / _round(bench, nodes, pods))
        objects = stored_pods(bench.store)
        clear_store(bench)
        raw.append(len(objects) / RawStore(bench.io).create_all(objects))
    clear_store(bench)
    yield Row(
        name="nodes.scheduling",
        what=f"{pods:,} pods placed on {nodes:,} nodes, creates included",
        unit="/s",
        measured=Sample.of(ours),
        baseline=Sample.of(raw),
        baseline_what="/s, pipelined SET+XADD of the same pods",
        bound=300,
        target="300 a second",
        higher_is_better=True,
    )


def growth(bench: Bench) -> Iterator[Row]:
    """Measures how the time to bind a pod grows with the number of nodes."""
    few, many = bench.sizes.growth_nodes
    pods = bench.sizes.scheduled_pods
    progress(f"nodes: {pods} pods on {few} and on {many} nodes, {bench.sizes.queue_rounds} rounds")
    small, large = [], []
    for _ in range(bench.sizes.queue_rounds):
        small.append(_round(bench, few, pods) / pods * 1e3)
        large.append(_round(bench, many, pods) / pods * 1e3)
    clear_store(bench)
    baseline = Sample.of(small)
    yield Row(
        name="nodes.growth",
        what=f"time for a pod at {many:,} nodes",
        unit="ms",
        measured=Sample.of(large),
        baseline=baseline,
        baseline_what=f"ms, at {few:,} nodes",
        bound=2 * baseline.median,
        target=f"twice that at {few:,} nodes",
    )


def running(bench: Bench) -> Iterator[Row]:
    """Measures the time from creating a ReplicaSet until its pods run on simulated nodes."""
    count = bench.sizes.running_pods
    progress(f"nodes: {count} pods on 5 simulated nodes, {bench.sizes.queue_rounds} rounds")
    bench.kcm_worker(POOL, extra=WITH_SCHEDULER)
    bench.spawn("nodes", [*KCM, "nodes", "--count", "5"])
    wait_for(lambda: bench.store.count(NODES) == 5, "the registration of the nodes")
    time.sleep(bench.sizes.settle_seconds)
    ours = []
    for number in range(bench.sizes.queue_rounds):
        started = time.monotonic()
        bench.store.create(replica_set(f"web-{number}", count))
        wait_for(partial(_all_run, bench, f"web-{number}", count), "all pods Running")
        ours.append(time.monotonic() - started)
    yield Row(
        name="nodes.running",
        what=f"a ReplicaSet of {count} applied, until all its pods are Running",
        unit="s",
        measured=Sample.of(ours),
        baseline=Sample.of([START_AFTER]),
        baseline_what="s, that a simulated container takes to start",
        bound=3,
        target="3 s",
    )


def _all_run(bench: Bench, name: str, count: int) -> bool:
    pods = bench.store.list(PODS, "default").items
    own = (pod for pod in pods if pod.labels.get("set") == name)
    return count == sum(isinstance(pod, Pod) and pod.status.phase == "Running" for pod in own)
