"""Measures the work queue on Celery, against the same number of plain Celery tasks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.harness import Bench, progress, wait_for
from bench.programs.noop_controller import NoopController
from bench.programs.raw_app import create_app
from bench.raw import RawTasks
from bench.stamps import StampReader
from bench.table import Row, Sample
from kcm.coordination.workqueue import WorkQueue
from kcm.manager.queues import queue_config

SPACING = 0.02  # seconds between two samples of the idle latency


@dataclass
class NoopSyncs:
    """The syncs of the no-op controller: its queue, and the stamps that they write."""

    queue: WorkQueue
    stamps: StampReader

    def run_all(self, count: int) -> float:
        """Adds `count` distinct keys; returns the seconds until the last one has been synced."""
        keys = [f"default/key-{number}" for number in range(count)]
        self.stamps.reset()
        started = time.monotonic()
        self.queue.add(*keys)
        wait_for(lambda: self.stamps.count() >= count, f"{count} syncs")
        wait_for(self._is_idle, "the end of the last sync", every=0.002)
        return time.monotonic() - started

    def latency(self) -> float:
        """Adds one key; returns the seconds until its sync starts."""
        self.stamps.reset()
        started = time.monotonic()
        self.queue.add("default/key")
        wait_for(lambda: self.stamps.count() > 0, "a sync", every=0.002)
        moment = self.stamps.times()[0]
        wait_for(self._is_idle, "the end of a sync", every=0.002)
        return moment - started

    def _is_idle(self) -> bool:
        stats = self.queue.stats()
        return stats.depth == 0 and stats.running == 0


def noop_syncs(bench: Bench, stamps: StampReader) -> NoopSyncs:
    """Returns the no-op controller's syncs, with its queue configured as by the manager."""
    controller = NoopController()
    queue = WorkQueue(bench.io, controller.short_name)
    queue.configure(queue_config(controller))
    return NoopSyncs(queue, stamps)


def start_both(bench: Bench, pool: str) -> tuple[NoopSyncs, RawTasks]:
    """Starts a worker of kcm and a raw one, and warms both up."""
    ours, raws = bench.stamps(f"kcm-{pool}"), bench.stamps(f"raw-{pool}")
    bench.kcm_worker(pool, ours.path)
    bench.raw_worker(pool, raws.path)
    syncs = noop_syncs(bench, ours)
    tasks = RawTasks(create_app(bench.settings), raws)
    for run_all in (syncs.run_all, tasks.run_all):
        run_all(50)
    return syncs, tasks


def pool_rows(bench: Bench, pool: str) -> Iterator[Row]:
    sizes = bench.sizes
    count = sizes.queue_keys
    progress(f"queue: starting workers, pool {pool}")
    syncs, tasks = start_both(bench, pool)
    progress(f"queue: {count} keys, {sizes.queue_rounds} rounds, pool {pool}")
    ours, raw = [], []
    for _ in range(sizes.queue_rounds):
        raw.append(count / tasks.run_all(count))
        ours.append(count / syncs.run_all(count))
    baseline = Sample.of(raw)
    yield Row(
        name=f"queue.{pool}.rate",
        what=f"{count:,} keys enqueued to all synced, {pool}",
        unit="/s",
        measured=Sample.of(ours),
        baseline=baseline,
        baseline_what="/s, Celery no-op tasks",
        bound=1.5 * baseline.median,
        target="1.5 x raw",
        higher_is_better=True,
    )
    progress(f"queue: idle latency, pool {pool}")
    waits, raw_waits = [], []
    for _ in range(sizes.latency_samples):
        time.sleep(SPACING)
        raw_waits.append(tasks.latency() * 1e3)
        time.sleep(SPACING)
        waits.append(syncs.latency() * 1e3)
    raw_latency = Sample.of(raw_waits)
    yield Row(
        name=f"queue.{pool}.latency",
        what=f"idle: enqueue to sync start, {pool}, p50",
        unit="ms",
        measured=Sample.of(waits),
        baseline=raw_latency,
        baseline_what="ms, publish to task start",
        bound=raw_latency.median + 5,
        target="raw + 5 ms",
    )
