"""Measures many watchers of one kind: the delay of the last one, the memory of an idle one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from bench.api.client import Connection
from bench.api.servers import NAMESPACE, Servers, pod_body
from bench.harness import Bench, progress
from bench.listener import Listener, paced
from bench.table import Row, Sample
from bench.usage import own_memory, tree

KB = 1000


def _watchers(servers: Servers, count: int, writes: int) -> Listener:
    """Starts a process with `count` watchers, which prints when each write has reached all."""
    to = servers.api
    where = (to.host, str(to.port), to.certificate, to.token)
    return Listener(servers.bench, "bench.api.watching_process", *where, str(count), str(writes))


def late(bench: Bench) -> Iterator[Row]:
    sizes = bench.sizes
    count, writes = sizes.api_watchers, int(sizes.api_watch_rate * sizes.watch_seconds)
    progress(f"api: {count} watchers, {writes} writes, {sizes.api_watch_rate} a second")
    servers = Servers(bench)
    calm = Sample.of([Connection(servers.api).timed(_create(servers, 0)) for _ in range(20)])
    watchers = _watchers(servers, count, writes)
    time.sleep(sizes.settle_seconds)
    sent = _write(servers, writes, sizes.api_watch_rate)
    time.sleep(1)
    seen: list[float] = watchers.finish()
    delays = Sample.of([(there - left) * 1e3 for there, left in zip(seen, sent, strict=True)])
    yield Row(
        name="api.watch",
        what=f"write to the last of {count} watchers, p99, {sizes.api_watch_rate} writes a second",
        unit="ms",
        measured=delays,
        value=delays.percentile(0.99),
        baseline=calm,
        baseline_what="ms, one create without watchers",
        bound=60,
        target="60 ms",
    )


def _create(servers: Servers, number: int) -> bytes:
    body = pod_body()
    metadata = {"name": f"seen-{number:06d}"} if number else {"generateName": "unseen-"}
    manifest = json.loads(body)
    manifest["metadata"] = manifest["metadata"] | {"generateName": ""} | metadata
    return servers.api.request("POST", NAMESPACE, json.dumps(manifest).encode())


def _write(servers: Servers, count: int, rate: float) -> list[float]:
    """Creates the pods 1 to `count`, `rate` per second; returns the monotonic times of sending."""
    connection = Connection(servers.api)
    requests = [_create(servers, number) for number in range(1, count + 1)]
    sent = []
    for request in paced(requests, rate):
        sent.append(time.monotonic())
        connection.ask(request)
    return sent


def idle(bench: Bench) -> Iterator[Row]:
    count = bench.sizes.api_watchers
    progress(f"api: memory of {count} idle watchers")
    servers = Servers(bench)
    first = _watchers(servers, 1, 0)  # the first one costs more than the others
    time.sleep(bench.sizes.settle_seconds)
    before = _memory(servers)
    others = _watchers(servers, count, 0)
    time.sleep(bench.sizes.settle_seconds)
    each = (_memory(servers) - before) / count
    first.finish()
    others.finish()
    yield Row(
        name="api.watcher",
        what=f"memory of the server for an idle watcher, of {count}",
        unit="KB",
        measured=Sample.of([each]),
        baseline=Sample.of([before / KB]),
        baseline_what="MB, the server with one watcher",
        bound=60,
        target="60 KB",
    )


def _memory(servers: Servers) -> float:
    """Returns the server's memory in KB."""
    return sum(own_memory(process) for process in tree(servers.process.pid)) * KB
