"""Runs `kcm up` without nodes, with all controllers but the scheduler, for clients of its API."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from bench.api.servers import Servers
from bench.harness import Bench, free_port, progress, wait_for
from bench.nodes.scheduling import KCM
from bench.rest.client import Client
from bench.usage import cpu_by_title
from kcm.api import codec
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.reconcile.metrics import SYNC, read_totals

CORE = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
BATCH = "/apis/batch/v1/namespaces/default"
PODS, REPLICA_SETS = f"{CORE}/pods", f"{APPS}/replicasets"
DEPLOYMENTS, JOBS = f"{APPS}/deployments", f"{BATCH}/jobs"
MERGE_PATCH = "application/merge-patch+json"
PATIENCE = 20.0  # seconds for `kcm up` to exit
_BACKGROUND = b'{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}'
_AT_ONCE = b'{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}'


@dataclass(frozen=True)
class RestSystem:
    """A running system with a client of its API, and a server of constants with a client."""

    bench: Bench
    servers: Servers
    client: Client
    constants: Client

    def create(self, path: str, obj: KubeObject) -> bytes:
        """Returns a request that creates this object."""
        return self.servers.api.request("POST", path, encoded(obj))

    def delete(self, path: str, name: str) -> bytes:
        """Returns a request that deletes an object, and its dependents in the background."""
        return self.servers.api.request("DELETE", f"{path}/{name}", _BACKGROUND)

    def delete_pod(self, name: str) -> bytes:
        """Returns a request that deletes a pod without a grace period."""
        return self.servers.api.request("DELETE", f"{PODS}/{name}", _AT_ONCE)

    def patch(self, path: str, fields: Mapping[str, object]) -> bytes:
        """Returns a request with a merge patch."""
        body = json.dumps(fields).encode()
        return self.servers.api.request("PATCH", path, body, MERGE_PATCH)

    def constant_seconds(self, method: str, answer: bytes, body: bytes, count: int) -> float:
        """Returns the seconds for `count` requests to which the server of constants responds.

        It responds with the bytes of `answer`.
        """
        request = self.servers.constant_request(
            method, f"{method.lower()}-{len(answer)}", answer, body
        )
        return self.constants.ask_all([request] * count)

    def cpu(self) -> dict[str, float]:
        """Returns the CPU seconds that all processes of the system have used, by their titles."""
        assert self.bench.server.process is not None
        return cpu_by_title([self.bench.server.process.pid, self.servers.process.pid])

    def constant_cpu(self) -> float:
        """Returns the CPU seconds that the server of constants has used."""
        return sum(cpu_by_title([self.servers.constant_process.pid]).values())

    def syncs(self) -> int:
        """Returns how many syncs all controllers have run and reported."""
        totals = read_totals(self.bench.io).items()
        return sum(sum(t.results.values()) for (what, _), t in totals if what == SYNC)

    def settle(self) -> None:
        """Waits until the system should be at rest."""
        time.sleep(self.bench.sizes.settle_seconds)


@contextmanager
def rest_system(bench: Bench, *flags: str) -> Iterator[RestSystem]:
    """Starts the system on this measurement's server, and stops it.

    `flags` are further flags of `kcm up`.
    """
    progress(f"rest: starting {' '.join(('kcm up', *flags))} and a server of constants")
    servers = Servers(bench, partial(_start_up, flags=flags))
    try:
        with Client(servers.api) as client, Client(servers.constant) as constants:
            yield RestSystem(bench, servers, client, constants)
    finally:
        _stop(bench, servers.process)


def _start_up(bench: Bench, flags: Sequence[str]) -> subprocess.Popen[bytes]:
    ports = [f"--{name}-port={free_port()}" for name in ("flower", "health", "api")]
    process = bench.spawn("up", [*KCM, "up", "--nodes=0", "--no-kubelet", *ports, *flags])
    output = bench.folder / "up.log"
    wait_for(lambda: "Ctrl-C stops it all" in output.read_text(), "the start of everything")
    return process


def _stop(bench: Bench, process: subprocess.Popen[bytes]) -> None:
    """Lets `kcm up` stop its processes, which have sessions of their own; kills what stays."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE)
    bench.stop(process)


def encoded(obj: KubeObject) -> bytes:
    """Returns the JSON of an object as a client sends it."""
    return json.dumps(codec.to_dict(obj)).encode()


def describe_cpu(seconds: Mapping[str, float], count: int) -> str:
    """Returns the CPU of each title for one of `count` operations, in words."""
    each = {title: used * 1e6 / count for title, used in seconds.items() if used > 0}
    parts = ", ".join(f"{title} {us:,.0f}" for title, us in each.items())
    return f"{sum(each.values()):,.0f} us of CPU each: {parts}"


def difference(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Returns the CPU seconds that each title used between two calls of `cpu`."""
    return {title: seconds - before.get(title, 0.0) for title, seconds in after.items()}
