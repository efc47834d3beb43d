"""Measures load balancers of the simulated cloud, for a client of the REST API."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from bench.harness import Bench, progress
from bench.rest.system import CORE, RestSystem, rest_system
from bench.rest.watch import Watch
from bench.table import Row, Sample

SERVICES = f"{CORE}/services"


def rows(bench: Bench) -> Iterator[Row]:
    """Measures load balancers of the simulated cloud."""
    count = bench.sizes.balancers
    progress(f"rest: {count} load balancers")
    ours, raw = [], []
    with rest_system(bench) as system, Watch(system.servers.api, SERVICES) as services:
        for number in range(bench.sizes.rest_rounds):
            names = [f"lb-{number}-{n}" for n in range(count)]
            ours.append(_balance(system, services, names))
            raw.append(_create(system, [f"plain-{number}-{n}" for n in range(count)], "ClusterIP"))
    baseline = Sample.of(raw)
    yield Row(
        name="rest.balancers",
        what=f"{count} Services of type LoadBalancer, until each has an address",
        unit="s",
        measured=Sample.of(ours),
        baseline=baseline,
        baseline_what="s, as many plain Services created",
        bound=20 * baseline.median,
        target="20 x plain Services",
    )


def _balance(system: RestSystem, services: Watch, names: list[str]) -> float:
    """Creates Services; returns the seconds until each has an address."""
    started = time.monotonic()
    _create(system, names, "LoadBalancer")

    def have_addresses(watch: Watch) -> bool:
        return all(watch.status_of(name).get("loadBalancer") for name in names)

    return services.wait(have_addresses, f"{len(names)} load balancers") - started


def _create(system: RestSystem, names: list[str], kind: str) -> float:
    """Creates Services of a type; returns the seconds until the last response."""
    bodies = [
        {"metadata": {"name": name}, "spec": {"type": kind, "ports": [{"port": 80}]}}
        for name in names
    ]
    api = system.servers.api
    return system.client.ask_all(
        [api.request("POST", SERVICES, json.dumps(body).encode()) for body in bodies]
    )
