"""Measures the memory of processes that cache, and the time until a worker is ready."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.harness import Bench, progress, wait_for
from bench.objects import pod_of_a_set
from bench.programs.raw_app import create_app
from bench.queue import noop_syncs
from bench.raw import RawTasks
from bench.store import clear_store, create_in_batches
from bench.table import Row, Sample
from bench.usage import MB, caching, own_memory

POOL = "prefork"


def memory(bench: Bench) -> Iterator[Row]:
    count = bench.sizes.cached_objects
    progress(f"size: memory of caching processes, {count} pods")
    clear_store(bench)
    syncs = noop_syncs(bench, bench.stamps("kcm-size"))
    worker = bench.kcm_worker(POOL, syncs.stamps.path)
    syncs.run_all(50)
    time.sleep(bench.sizes.settle_seconds)
    empty = [own_memory(process) for process in caching(worker.pid)]
    create_in_batches(bench.store, count, pod_of_a_set())
    syncs.run_all(100)  # after its syncs, each child has a full cache
    time.sleep(bench.sizes.settle_seconds)
    full = [own_memory(process) for process in caching(worker.pid)]
    bench.stop(worker)
    per_object = (max(full) - max(empty)) * MB / count / 1024
    yield Row(
        name="size.memory",
        what=f"caching process with {count:,} pods, largest of {len(full)}",
        unit="MB",
        measured=Sample.of(full),
        value=max(full),
        baseline=Sample.of([max(empty)]),
        baseline_what="MB, the same with an empty store",
        bound=80 + 12 * 1024 * count / MB,
        target="80 MB + 12 KB per object",
        note=f"{per_object:.1f} KB per cached pod",
    )


def ready(bench: Bench) -> Iterator[Row]:
    progress(f"size: {bench.sizes.starts} starts of a worker")
    ours, raw = [], []
    for number in range(bench.sizes.starts):
        raw.append(_raw_start(bench, number))
        ours.append(_start(bench))
    yield Row(
        name="size.ready",
        what=f"start of a worker to its first sync (caches synced), {POOL}",
        unit="s",
        measured=Sample.of(ours),
        baseline=Sample.of(raw),
        baseline_what="s, raw worker to its first task",
        bound=1.5,
        target="1.5 s",
    )


def _start(bench: Bench) -> float:
    clear_store(bench)
    syncs = noop_syncs(bench, bench.stamps("kcm-size"))
    syncs.stamps.reset()
    syncs.queue.add("default/first")
    started = time.monotonic()
    worker = bench.kcm_worker(POOL, syncs.stamps.path)
    wait_for(lambda: syncs.stamps.count() > 0, "the first sync")
    seconds = syncs.stamps.times()[0] - started
    bench.stop(worker)
    return seconds


def _raw_start(bench: Bench, number: int) -> float:
    clear_store(bench)
    tasks = RawTasks(create_app(bench.settings), bench.stamps(f"raw-start-{number}"))
    started = time.monotonic()
    worker = bench.raw_worker(POOL, bench.folder / f"raw-start-{number}.stamps")
    tasks.run_all(1)
    seconds = time.monotonic() - started
    bench.stop(worker)
    return seconds
