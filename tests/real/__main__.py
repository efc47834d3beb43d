"""The battery again and again, while the API server is killed once in each round of a minute.

    KCM_REAL_APISERVER=... KCM_REAL_ETCD=... python -m tests.real --minutes 60

The server is killed between two requests of the battery's own client, which so knows what it has
done; kcm's requests are cut. After each round its namespaces are deleted, and have to go.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from kcm.testing.waiting import until
from tests.chaos.cluster import Cluster
from tests.real import garbage, workloads
from tests.real.client import Api, Space
from tests.real.kubelet import play_kubelets
from tests.real.objects import Steps
from tests.real.runner import Case, run_cases
from tests.real.server import Server, missing_binaries, serve

WITHIN = 240.0  # seconds for a round
# Those that can be run again on the same cluster.
CASES: Mapping[str, Case] = {
    case.__name__: case
    for case in (*workloads.CASES, *garbage.CASES)
    if case is not workloads.daemonset
}


def main() -> int:
    """Runs the rounds, prints how each ended, and returns 1 if a case failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    options = parser.parse_args()
    if fault := missing_binaries():
        sys.stderr.write(f"error: {fault}\n")
        return 1
    folder = Path(tempfile.mkdtemp(prefix="kcm-real-"))
    cluster = Cluster(workers=1, pool="threads", concurrency=16)
    try:
        with serve(folder) as server:
            cluster.environment |= server.build_environment("*")
            cluster.start()
            return _run_rounds(server, options.minutes * 60)
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _run_rounds(server: Server, seconds: float) -> int:
    began, passed, failed = time.monotonic(), 0, 0
    while time.monotonic() - began < seconds:
        ended = run_cases(server.api, {**CASES, "kill": _kill_once(server)}, WITHIN)
        faults = {name: case.fault for name, case in ended.items() if case.fault}
        passed, failed = passed + len(CASES) - len(faults), failed + len(faults)
        minutes = (time.monotonic() - began) / 60
        sys.stdout.write(f"{minutes:.1f} min: {passed} passed, {failed} failed\n")
        for name, fault in faults.items():
            sys.stdout.write(f"  {name}: {fault}\n")
        sys.stdout.flush()
        _clear(server.api)
    return 1 if failed else 0


def _kill_once(server: Server) -> Case:
    """Returns a case that kills the server at some time of a round."""
    moment = time.monotonic() + random.uniform(2.0, 30.0)

    def kill(_: Space) -> Steps:
        yield "the moment of the kill", lambda: time.monotonic() >= moment
        server.restart()

    return kill


def _clear(api: Api) -> None:
    """Deletes the namespaces of the cases, and waits until they are gone."""
    for name in _list_namespaces(api):
        api.delete(f"/api/v1/namespaces/{name}")

    def are_gone() -> bool:
        play_kubelets(api)
        return not _list_namespaces(api)

    until(are_gone, "the end of all namespaces", WITHIN, lambda: str(_list_namespaces(api)))


def _list_namespaces(api: Api) -> list[str]:
    names = [each["metadata"]["name"] for each in api.list("/api/v1/namespaces")]
    return [name for name in names if name.startswith("t-")]


if __name__ == "__main__":
    sys.exit(main())
