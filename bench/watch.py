"""Measures the time from a write to the event handler in another process, under steady load."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.harness import Bench, progress
from bench.listener import Listener, paced
from bench.objects import pod_of_a_set
from bench.raw import RawStore
from bench.store import clear_store
from bench.table import Row, Sample
from kcm.store import Pattern, WriteItem


def send(bench: Bench, items: list[WriteItem], rate: int) -> dict[str, float]:
    """Writes `rate` items per second; returns when each was sent, in monotonic seconds by name."""
    sent: dict[str, float] = {}
    for item in paced(items, rate):
        sent[item.obj.name or ""] = time.monotonic()
        if not bench.store.write([item])[0].ok:
            raise RuntimeError(f"pod {item.obj.name} was not created")
    return sent


def distinct_pods(bench: Bench, count: int) -> list[WriteItem]:
    """Returns items that create pods under distinct names.

    Of 5,000 random names, two are often equal. The time of the second write would then be compared
    with the handling of the first.
    """
    template = pod_of_a_set()
    first = bench.store.build_create(template)
    pattern = Pattern(first)
    items: dict[str, WriteItem] = {}
    while len(items) < count:
        item = bench.store.build_create(template, like=pattern)
        items.setdefault(item.obj.name or "", item)
    return list(items.values())


def latency(bench: Bench) -> Iterator[Row]:
    sizes = bench.sizes
    count = int(sizes.watch_rate * sizes.watch_seconds)
    progress(f"watch: {count} writes, {sizes.watch_rate} a second")
    clear_store(bench)
    raw_store, data = RawStore(bench.io), pod_of_a_set().model_dump_json(by_alias=True).encode()
    trips = Sample.of([raw_store.round_trip(data) * 1e3 for _ in range(500)])
    raw_store.clear(1)
    items = distinct_pods(bench, count)
    handler = Listener(bench, "bench.programs.handler_process")
    sent = send(bench, items, sizes.watch_rate)
    time.sleep(0.2)
    seen: dict[str, float] = handler.finish()
    times = list(sent.values())
    achieved = (len(times) - 1) / (times[-1] - times[0])
    delays = Sample.of([(seen[name] - moment) * 1e3 for name, moment in sent.items()])
    clear_store(bench)
    yield from _rows(delays, trips, achieved)


def _rows(delays: Sample, trips: Sample, achieved: float) -> Iterator[Row]:
    rate = f"{achieved:,.0f} writes a second"
    for name, share, bound, target in (
        ("watch.p50", 0.5, 5 * trips.median + 2, "5 raw round trips + 2 ms"),
        ("watch.p99", 0.99, 25.0, "25 ms"),
    ):
        yield Row(
            name=name,
            what=f"write to handler, {name.removeprefix('watch.')}, at {rate}",
            unit="ms",
            measured=delays,
            value=delays.percentile(share),
            baseline=trips,
            baseline_what="ms, one SET+XADD script",
            bound=bound,
            target=target,
        )
