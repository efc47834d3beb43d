"""One user floods the API server with requests that are much work; others hardly notice.

What is measured is what users wait for, so the machine must have nothing else to do.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from kcm.redisio.embedded import EmbeddedServer
from tests.integration.apiserver import hostile
from tests.integration.apiserver.hostile import FLOODS, Hostile
from tests.integration.apiserver.test_hostile_bodies import Server, server

__all__ = ["server"]

CLIENTS = 8
SECONDS = 8.0  # for which an administrator's requests are measured
LONGEST_STALL = 0.05  # seconds, a bound of the metric's buckets
MOST_TIMES = 5  # as long as without the flood
MINE = f"{hostile.MAPS}/mine"
_STALLS = re.compile(r'^kcm_apiserver_event_loop_stall_seconds_bucket\{le="([^"]+)"\} (\S+)', re.M)


def ask(admin: httpx.Client) -> list[float]:
    """Returns the seconds of an administrator's reads and writes."""
    taken: list[float] = []
    end = time.monotonic() + SECONDS
    headers = {"content-type": hostile.MERGE}
    while time.monotonic() < end:
        body = json.dumps({"data": {"a": str(len(taken))}})
        for method, path, content in (("GET", hostile.NAMESPACE, ""), ("PATCH", MINE, body)):
            began = time.perf_counter()
            answer = admin.request(method, path, content=content, headers=headers)
            taken.append(time.perf_counter() - began)
            assert answer.status_code == 200, answer.text
    return taken


def find_p99(taken: list[float]) -> float:
    return sorted(taken)[int(len(taken) * 0.99)]


def count_long_stalls(admin: httpx.Client) -> float:
    counts = dict(_STALLS.findall(admin.get("/metrics").text))
    return float(counts["+Inf"]) - float(counts[str(LONGEST_STALL)])


@contextmanager
def flooded(url: str, flood: Hostile) -> Iterator[None]:
    """Floods the server from a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.integration.apiserver.hostile_clients"]
    process = subprocess.Popen(
        [*command, url, "eves-token", flood.name, str(CLIENTS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield
    finally:
        codes, _ = process.communicate("")
    assert process.returncode == 0, codes
    assert codes != "{}"  # something was sent
    assert set(map(int, json.loads(codes))) <= set(flood.codes), codes


@pytest.fixture(scope="module")
def usual(server: Server, redis_server: EmbeddedServer) -> float:
    """Returns the administrator's 99th percentile without a flood."""
    if os.getloadavg()[0] > (os.cpu_count() or 1):
        pytest.skip("the machine is busy: its system would keep the event loop waiting, too")
    assert server.admin.post(hostile.MAPS, json=hostile.config_map(name="mine")).status_code == 201
    ask(server.admin)  # so that nothing is done for the first time
    return find_p99(ask(server.admin))


@pytest.mark.chaos
@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.name)
def test_a_flood_neither_stalls_the_event_loop_nor_slows_others_down(
    server: Server, usual: float, flood: Hostile
) -> None:
    url = str(server.admin.base_url)
    with flooded(url, flood):  # so that the child processes run
        ask(server.admin)
    before = count_long_stalls(server.admin)
    with flooded(url, flood):
        taken = ask(server.admin)
    assert count_long_stalls(server.admin) == before
    assert find_p99(taken) <= MOST_TIMES * usual
