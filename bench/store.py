"""Measures the store's creates, in batches and singly. Fills, watches and empties the store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.harness import Bench, TooSlowError, progress
from bench.objects import pod_of_a_set
from bench.raw import BATCH, RawStore
from bench.table import Row, Sample
from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store import Pattern, Store, WatchEntry

PODS = Pod.resource


def stored_pods(store: Store) -> list[bytes]:
    """Returns the JSON of every pod as it is stored."""
    found: list[bytes] = []
    after = ""
    while page := store.raw_page(PODS, None, after):
        found += [raw for _, raw in page if raw]
        after = page[-1][0]
    return found


def clear_store(bench: Bench) -> None:
    """Removes everything from the Redis server."""
    bench.io.execute("FLUSHALL")
    bench.io.attach()


def watch_entries(
    store: Store, resource: Resource, position: int, what: str, timeout: float = 120.0
) -> Iterator[WatchEntry]:
    """Yields the changes after `position`, in order.

    Raises TooSlowError with `what` after `timeout` seconds.
    """
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        changes = store.read_changes({resource: position}, 200)
        position = changes.positions.get(resource, position)
        yield from changes.entries
    raise TooSlowError(f"{what} did not happen within {timeout:g} s")


def watch_until(
    store: Store, resource: Resource, key: str, holds: Callable[[Any], bool], what: str
) -> float:
    """Watches an object until `holds`; returns the monotonic time then. Raises TooSlowError."""
    position = store.resource_version()
    if not holds(store.get(resource, key)):
        entries = watch_entries(store, resource, position, f"{key}: {what}")
        own = (codec.decode(entry.raw, resource) for entry in entries if entry.key == key)
        next(obj for obj in own if holds(obj))
    return time.monotonic()


def create_in_batches(store: Store, count: int, template: KubeObject) -> float:
    """Creates `count` objects like `template` through the store; returns the seconds."""
    started = time.perf_counter()
    left = count
    while left:
        size = min(BATCH, left)
        first = store.build_create(template)
        pattern = Pattern(first)
        rest = [store.build_create(template, like=pattern) for _ in range(size - 1)]
        results = store.write([first, *rest])
        left -= sum(result.ok for result in results)  # names that are taken are drawn again
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
