"""Measures requests: create, get and list, many creates at once, and gets beside a long list."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from bench.api.client import Connection, Server
from bench.api.servers import NAMESPACE, Servers, pod_body
from bench.harness import Bench, progress
from bench.objects import pod_of_a_set
from bench.store import create_in_batches
from bench.table import Row, Sample

CONNECTIONS = 8


def _pairs(servers: Servers, ours: bytes, raw: bytes, count: int) -> tuple[Sample, Sample]:
    """Sends both requests in turns, so that a busy moment of the machine delays both.

    Returns the milliseconds of each.
    """
    api, constant = Connection(servers.api), Connection(servers.constant)
    for _ in range(count // 10 + 1):  # warm up
        api.ask(ours)
        constant.ask(raw)
    pairs = [(api.timed(ours), constant.timed(raw)) for _ in range(count)]
    api.close()
    constant.close()
    return Sample.of([one for one, _ in pairs]), Sample.of([other for _, other in pairs])


def single(bench: Bench) -> Iterator[Row]:
    count = bench.sizes.api_requests
    progress(f"api: {count} creates, gets, constants")
    servers = Servers(bench)
    body = pod_body()
    created = Connection(servers.api).ask(servers.api.request("POST", NAMESPACE, body))
    create = servers.api.request("POST", NAMESPACE, body)
    raw = servers.constant_request("POST", "created", created, body)
    yield _row("api.create", "create a pod", *_pairs(servers, create, raw, count), 3)
    name = _name(created)
    get = servers.api.request("GET", f"{NAMESPACE}/{name}")
    raw = servers.constant_request("GET", "got", Connection(servers.api).ask(get))
    yield _row("api.get", "get a pod", *_pairs(servers, get, raw, count), 2)


def _name(pod: bytes) -> str:
    return pod.partition(b'"name":"')[2].partition(b'"')[0].decode()


def _row(name: str, what: str, ours: Sample, raw: Sample, most: float) -> Row:
    return Row(
        name=name,
        what=f"{what}, p50",
        unit="ms",
        measured=ours,
        baseline=raw,
        baseline_what="ms, the same bytes as a constant",
        bound=most * raw.median,
        target=f"{most} x the constant",
    )


def listed(bench: Bench) -> Iterator[Row]:
    count = bench.sizes.api_listed
    progress(f"api: lists of {count} pods")
    servers = Servers(bench)
    create_in_batches(bench.store, count, pod_of_a_set())
    request = servers.api.request("GET", NAMESPACE)
    answer = Connection(servers.api).ask(request)
    raw = servers.constant_request("GET", "list", answer)
    pairs = _pairs(servers, request, raw, max(5, bench.sizes.api_requests // 5))
    yield _row("api.list", f"list {count:,} pods ({len(answer):,} bytes)", *pairs, 4)


def rate(bench: Bench) -> Iterator[Row]:
    count = bench.sizes.api_requests // CONNECTIONS * CONNECTIONS
    progress(f"api: {count} creates over {CONNECTIONS} connections, {bench.sizes.rounds} rounds")
    servers = Servers(bench)
    body = pod_body()
    create = servers.api.request("POST", NAMESPACE, body)
    created = Connection(servers.api).ask(create)
    constant = servers.constant_request("POST", "created", created, body)
    ours, raw = [], []
    for _ in range(bench.sizes.rounds):
        ours.append(count / _seconds(servers.api, create, count))
        raw.append(count / _seconds(servers.constant, constant, count))
    baseline = Sample.of(raw)
    yield Row(
        name="api.rate",
        what=f"{count} creates over {CONNECTIONS} connections",
        unit="/s",
        measured=Sample.of(ours),
        baseline=baseline,
        baseline_what="/s, the same bytes as a constant",
        bound=0.5 * baseline.median,
        target="half of the constant's rate",
        higher_is_better=True,
    )


def _seconds(server: Server, request: bytes, count: int) -> float:
    connections = [Connection(server) for _ in range(CONNECTIONS)]

    def some(connection: Connection) -> None:
        for _ in range(count // CONNECTIONS):
            connection.ask(request)

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        started = time.perf_counter()
        list(pool.map(some, connections))
        seconds = time.perf_counter() - started
    for connection in connections:
        connection.close()
    return seconds


def stall(bench: Bench) -> Iterator[Row]:
    count = bench.sizes.cached_objects
    progress(f"api: gets while {count} pods are listed")
    servers = Servers(bench)
    create_in_batches(bench.store, count, pod_of_a_set())
    small, large = Connection(servers.api), Connection(servers.api)
    list_ = servers.api.request("GET", NAMESPACE)
    name = _name(large.ask(list_))
    get = servers.api.request("GET", f"{NAMESPACE}/{name}")
    calm = Sample.of([small.timed(get) for _ in range(bench.sizes.api_requests)])
    slowest = [
        _during(lambda: large.ask(list_), lambda: small.timed(get))
        for _ in range(bench.sizes.rounds)
    ]
    yield Row(
        name="api.stall",
        what=f"slowest get while {count:,} pods are listed",
        unit="ms",
        measured=Sample.of(slowest),
        baseline=calm,
        baseline_what="ms, get without the list",
        bound=calm.median + 50,
        target="50 ms more than without",
    )


def _during(long: Callable[[], object], short: Callable[[], float]) -> float:
    """Returns the slowest result of `short`, which is called repeatedly while `long` runs."""
    thread = threading.Thread(target=long)
    thread.start()
    found = [short()]
    while thread.is_alive():
        found.append(short())
    return max(found)
