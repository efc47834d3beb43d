"""The store's speed: creates in batches, and one at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.harness import Bench, progress
from bench.objects import pod_of_a_set
from bench.raw import BATCH, RawStore
from bench.table import Row, Sample
from kcm.api import scheme
from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store import Pattern, Store

PODS = scheme.resource_of(Pod)


def stored_pods(store: Store) -> list[bytes]:
    """The JSON of every pod, as it is stored."""
    found: list[bytes] = []
    after = ""
    while page := store.raw_page(PODS, None, after):
        found += [raw for _, raw in page if raw]
        after = page[-1][0]
    return found


def clear_store(bench: Bench) -> None:
    """Empty the server."""
    bench.io.execute("FLUSHALL")
    bench.io.attach()


def create_in_batches(store: Store, count: int, template: KubeObject) -> float:
    """Create `count` objects like this one through the store's public verbs; seconds."""
    started = time.perf_counter()
    left = count
    while left:
        size = min(BATCH, left)
        first = store.build_create(template)
        pattern = Pattern(first)
        rest = [store.build_create(template, like=pattern) for _ in range(size - 1)]
        results = store.write([first, *rest])
        left -= sum(result.ok for result in results)  # a name that was drawn twice is drawn again
    return time.perf_counter() - started


def batches(bench: Bench) -> Iterator[Row]:
    for count in bench.sizes.batch_pods:
        progress(f"store: {count} pods in batches of {BATCH}, {bench.sizes.rounds} rounds")
        ours, raw = [], []
        for _ in range(bench.sizes.rounds):
            clear_store(bench)
            ours.append(count / create_in_batches(bench.store, count, pod_of_a_set()))
            objects = stored_pods(bench.store)
            clear_store(bench)
            raw.append(count / RawStore(bench.io).create_all(objects))
        clear_store(bench)
        baseline = Sample.of(raw)
        yield Row(
            name=f"store.batch.{count}",
            what=f"create {count:,} pods in batches of {BATCH}",
            unit="/s",
            measured=Sample.of(ours),
            baseline=baseline,
            baseline_what="/s, pipelined SET+XADD scripts",
            bound=0.4 * baseline.median,
            target="0.4 of raw",
            higher_is_better=True,
            note=f"{len(objects[0])} bytes a pod",
        )


def single(bench: Bench) -> Iterator[Row]:
    count = bench.sizes.single_creates
    progress(f"store: {count} single creates")
    clear_store(bench)
    raw_store = RawStore(bench.io)
    template = pod_of_a_set()
    data = bench.store.create(template).model_dump_json(by_alias=True).encode()
    ours, raw = [], []
    for number in range(count):
        started = time.perf_counter()
        bench.store.create(template)
        ours.append((time.perf_counter() - started) * 1e3)
        raw.append(raw_store.round_trip(data, number) * 1e3)
    clear_store(bench)
    baseline = Sample.of(raw)
    yield Row(
        name="store.single",
        what="create one pod",
        unit="ms",
        measured=Sample.of(ours),
        baseline=baseline,
        baseline_what="ms, one SET+XADD script",
        bound=3 * baseline.median,
        target="3 raw round trips, p50",
    )
