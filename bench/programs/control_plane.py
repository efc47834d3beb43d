"""Starts control planes of `kcm.testing` in this process, as a test does, and measures them.

The arguments are the name of a measurement, the file for its figures as JSON, and whole numbers for
the measurement. Nothing of kcm is imported before a measurement begins.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kcm.testing import ControlPlane

Figures = dict[str, Any]
YEAR = "8760h"
MONTHS = 12


def start() -> Figures:
    """Returns when the first control plane was ready, by the machine's monotonic clock, and the CPU
    seconds until then: of this process, and of those that it started.
    """
    from kcm.testing import ControlPlane  # noqa: PLC0415 - part of what is measured

    with ControlPlane():
        ready = time.monotonic()
        used = time.process_time()
        return {"ready": ready, "own": used, "others": sum(map(_used, _children()))}


def again(rounds: int) -> Figures:
    """Returns the seconds that each start and each stop takes, after the first ones."""
    from kcm.testing import ControlPlane  # noqa: PLC0415 - see the module

    with ControlPlane():
        pass
    starts, stops = [], []
    for _ in range(rounds):
        plane = ControlPlane()
        starts.append(_time(plane.start))
        stops.append(_time(plane.stop))
    return {"starts": starts, "stops": stops}


def settle(pods: int, rounds: int) -> Figures:
    """Returns the seconds from applying a Deployment until all of its pods are ready, and the pods
    of the last round.
    """
    from kcm.testing import ControlPlane  # noqa: PLC0415 - see the module

    manifest = _deployment(pods)
    seconds: list[float] = []
    stored: list[str] = []
    for _ in range(rounds):
        with ControlPlane(seed=1, nodes=20) as plane:
            seconds.append(_time(lambda: _fill(plane, manifest)))
            stored = [json.dumps(pod) for pod in plane.list("pods")]
    assert len(stored) == pods
    return {"seconds": seconds, "pods": stored}


def _fill(plane: ControlPlane, manifest: dict[str, Any]) -> None:
    def all_ready() -> bool:
        status = plane.get("deployment/web")["status"]
        return bool(status.get("readyReplicas") == manifest["spec"]["replicas"])

    plane.apply(manifest)
    plane.settle(timeout="10m")
    plane.eventually(all_ready, within="5m")


def _deployment(replicas: int) -> dict[str, Any]:
    # Twenty nodes have no room for a thousand pods that request more.
    container = {"name": "web", "image": "nginx:1.27", "resources": {"requests": {"cpu": "10m"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template,
        },
    }


def year(rounds: int) -> Figures:
    """Returns the seconds that a year takes with a monthly CronJob, and without."""
    full, empty = [], []
    for _ in range(rounds):
        empty.append(_live_a_year(None))
        full.append(_live_a_year(_cron_job()))
    return {"full": full, "empty": empty}


def _live_a_year(cron_job: dict[str, Any] | None) -> float:
    from kcm.testing import ControlPlane  # noqa: PLC0415 - see the module

    with ControlPlane(seed=1) as plane:
        if cron_job is not None:
            plane.apply(cron_job)
        seconds = _time(lambda: plane.clock.advance(YEAR))
        expected = 0 if cron_job is None else MONTHS
        assert len(plane.list("jobs")) == expected
        return seconds


def _cron_job() -> dict[str, Any]:
    annotations = {"simulation.kcm.dev/run-for": "30s"}
    container = {"name": "main", "image": "report:1"}
    pods = {
        "metadata": {"annotations": annotations},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "report"},
        "spec": {
            "schedule": "0 12 1 * *",
            "successfulJobsHistoryLimit": 2 * MONTHS,
            "jobTemplate": {"spec": {"template": pods}},
        },
    }


def memory() -> Figures:
    """Returns the resident memory in bytes: before the imports, with a control plane, and of the
    processes that it started.
    """
    import psutil  # noqa: PLC0415 - see the module

    process = psutil.Process()
    bare = process.memory_info().rss
    from kcm.testing import ControlPlane  # noqa: PLC0415 - see the module

    with ControlPlane():
        others = sum(child.memory_info().rss for child in _children())
        return {"bare": bare, "full": process.memory_info().rss, "others": others}


def _time(call: Callable[[], object]) -> float:
    """Returns the seconds that a call takes."""
    started = time.monotonic()
    call()
    return time.monotonic() - started


def _children() -> list[Any]:
    import psutil  # noqa: PLC0415 - see the module

    return psutil.Process(os.getpid()).children(recursive=True)


def _used(process: Any) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


MEASUREMENTS: dict[str, Callable[..., Figures]] = {
    "start": start,
    "again": again,
    "settle": settle,
    "year": year,
    "memory": memory,
}


def main() -> None:
    name, path, *numbers = sys.argv[1:]
    Path(path).write_text(json.dumps(MEASUREMENTS[name](*map(int, numbers))))


if __name__ == "__main__":
    main()
