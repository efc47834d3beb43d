"""Measures the whole system: from a ReplicaSet to its pods, from a lost pod to its replacement."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.harness import Bench, progress, wait_for
from bench.objects import replica_set
from bench.raw import RawStore
from bench.store import PODS, stored_pods, watch_entries, watch_until
from bench.table import Row, Sample
from kcm.api.apps_v1 import ReplicaSet

REPLICA_SETS = ReplicaSet.resource
SPACING = 0.1  # seconds between deletions
_BOUNDS = {1_000: 16.0, 10_000: 20.0}  # in units of a raw batch create of the same pods


def scale_up(bench: Bench, name: str, count: int) -> float:
    """Creates a ReplicaSet; returns the seconds until its status counts all of its pods."""
    started = time.monotonic()
    created = bench.store.create(replica_set(name, count))

    def is_filled(found: ReplicaSet) -> bool:
        return found.status.replicas == count

    what = f"its {count} replicas"
    return watch_until(bench.store, REPLICA_SETS, created.key, is_filled, what) - started


def remove(bench: Bench, name: str) -> None:
    """Deletes a ReplicaSet and waits until the garbage collector has deleted its pods."""
    bench.store.delete(REPLICA_SETS, f"default/{name}")
    wait_for(lambda: bench.store.count(PODS) == 0, "the collection of the pods", 180, every=0.05)
    time.sleep(bench.sizes.settle_seconds / 6)


def start_system(bench: Bench, pool: str) -> None:
    """Starts worker, manager and beat, and warms them up with a small ReplicaSet."""
    bench.kcm_worker(pool)
    bench.beat()
    scale_up(bench, "warm-up", 20)
    remove(bench, "warm-up")


def pool_rows(bench: Bench, pool: str) -> Iterator[Row]:
    progress(f"system: starting worker, manager and beat, pool {pool}")
    start_system(bench, pool)
    for count, rounds in zip(bench.sizes.replicas, bench.sizes.replica_rounds, strict=True):
        yield _scale_row(bench, pool, count, rounds)
    yield _replacement_row(bench, pool)


def _scale_row(bench: Bench, pool: str, count: int, rounds: int) -> Row:
    progress(f"system: ReplicaSet 0 to {count}, {rounds} rounds, pool {pool}")
    ours, raw = [], []
    raw_store = RawStore(bench.io)
    for number in range(rounds):
        name = f"web-{number}"
        ours.append(scale_up(bench, name, count) * 1e3)
        objects = stored_pods(bench.store)
        assert len(objects) == count
        raw.append(raw_store.create_all(objects) * 1e3)
        raw_store.clear(count)
        remove(bench, name)
    baseline = Sample.of(raw)
    factor = _BOUNDS.get(count, 16.0)
    return Row(
        name=f"system.{pool}.{count}",
        what=f"ReplicaSet 0 to {count:,}, apply to status, {pool}",
        unit="ms",
        measured=Sample.of(ours),
        baseline=baseline,
        baseline_what="ms, pipelined SET+XADD of the same pods",
        bound=factor * baseline.median,
        target=f"{factor:g} x raw",
    )


def _replacement_row(bench: Bench, pool: str) -> Row:
    count, deletions = bench.sizes.replicas[0], bench.sizes.replacements
    progress(f"system: {deletions} pods of {count} lost and replaced, pool {pool}")
    scale_up(bench, "web", count)
    time.sleep(bench.sizes.settle_seconds)
    raw_store, data = RawStore(bench.io), stored_pods(bench.store)[0]
    keys = [key for key, _ in bench.store.raw_page(PODS, None, "", deletions)]
    ours, raw = [], []
    for key in keys:
        ours.append(_replace_one(bench, key) * 1e3)
        raw.append(raw_store.round_trip(data) * 1e3)
        time.sleep(SPACING)
    remove(bench, "web")
    return Row(
        name=f"system.{pool}.replace",
        what=f"one pod of {count:,} deleted: to the next one on the watch, {pool}, p50",
        unit="ms",
        measured=Sample.of(ours),
        baseline=Sample.of(raw),
        baseline_what="ms, one SET+XADD script",
        bound=10.0,
        target="10 ms p50",
    )


def _replace_one(bench: Bench, key: str) -> float:
    """Deletes a pod; returns the seconds until the watch shows a new one."""
    position = bench.store.resource_version()
    started = time.monotonic()
    bench.store.delete(PODS, key)
    entries = watch_entries(bench.store, PODS, position, f"the replacement of pod {key}", 30)
    next(entry for entry in entries if entry.type == "ADDED")
    return time.monotonic() - started
