"""Measures CustomResourceDefinitions that are created and deleted repeatedly.

The rows are the CPU time that this takes in the API server, and the memory that it keeps
afterwards.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import psutil

from bench.api.client import Connection
from bench.api.servers import Servers
from bench.harness import Bench, progress, wait_for
from bench.table import Row, Sample
from bench.usage import cpu_seconds, own_memory

_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_FIELDS, _DEPTH = 6, 3  # 216 fields with descriptions: 41 KB in each of two versions


def rows(bench: Bench) -> Iterator[Row]:
    count, rounds = bench.sizes.definitions, bench.sizes.definition_rounds
    progress(f"definitions: {count}, applied and deleted {rounds} times over")
    servers = Servers(bench)
    process = psutil.Process(servers.process.pid)
    empty = own_memory(process)
    full, left, seconds = [], [], []
    for number in range(rounds):
        before = cpu_seconds(process)
        _apply(servers, count)
        full.append(own_memory(process))
        _delete(servers, count)
        seconds.append(cpu_seconds(process) - before)
        time.sleep(bench.sizes.settle_seconds)
        left.append(own_memory(process))
        progress(f"definitions: round {number + 1}: {left[-1]:.0f} MB, {seconds[-1]:.1f} s of CPU")
    yield Row(
        name="api.definitions.memory",
        what=f"memory of the server after {count} definitions came and went {rounds} times",
        unit="MB",
        measured=Sample.of(left),
        value=left[-1],
        baseline=Sample.of([left[0]]),
        baseline_what="MB, after the first time",
        bound=1.25 * left[0],
        target="1.25 x the first time's",
        note=f"{empty:.0f} MB without any, {max(full):.0f} MB with all of them",
    )
    each = [1000 * one / count for one in seconds]
    yield Row(
        name="api.definitions.cpu",
        what=f"CPU of the server for a definition that comes and goes, of {count}",
        unit="ms",
        measured=Sample.of(each),
        baseline=Sample.of([_alone(servers, process)]),
        baseline_what="ms, of a tenth as many",
        bound=100,
        target="100 ms",
    )


def _alone(servers: Servers, process: psutil.Process) -> float:
    count = max(1, servers.bench.sizes.definitions // 10)
    before = cpu_seconds(process)
    _apply(servers, count)
    _delete(servers, count)
    return 1000 * (cpu_seconds(process) - before) / count


def _apply(servers: Servers, count: int) -> None:
    connection = Connection(servers.api)
    for number in range(count):
        body = json.dumps(_definition(number)).encode()
        connection.ask(servers.api.request("POST", _PATH, body))
    last = servers.api.request("GET", f"/apis/bench.example.com/v1/things{count - 1}")
    wait_for(lambda: _answers(connection, last), "the last definition's objects")
    connection.close()


def _delete(servers: Servers, count: int) -> None:
    connection = Connection(servers.api)
    for number in range(count):
        connection.ask(servers.api.request("DELETE", f"{_PATH}/things{number}.bench.example.com"))
    left = servers.api.request("GET", f"{_PATH}?limit=1")
    wait_for(lambda: not json.loads(connection.ask(left))["items"], "the end of all definitions")
    connection.close()


def _answers(connection: Connection, request: bytes) -> bool:
    try:
        connection.ask(request)
    except RuntimeError:
        return False
    return True


def _definition(number: int) -> dict[str, Any]:
    name = f"things{number}"
    schema = {"type": "object", "properties": {"spec": _schema(_DEPTH)}}
    versions: list[dict[str, Any]] = [
        {
            "name": version,
            "served": True,
            "storage": version == "v1",
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}},
        }
        for version in ("v1", "v1beta1")
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}.bench.example.com"},
        "spec": {
            "group": "bench.example.com",
            "names": {"plural": name, "singular": f"thing{number}", "kind": f"Thing{number}"},
            "scope": "Namespaced",
            "versions": versions,
        },
    }


def _schema(depth: int) -> dict[str, Any]:
    if not depth:
        return {"type": "string", "description": "What a field holds, in some words. " * 4}
    return {
        "type": "object",
        "properties": {f"field{number}": _schema(depth - 1) for number in range(_FIELDS)},
    }
