"""Runs `kcm up` for hours under a steady client, and tells which process grows.

    python -m tests.scenarios.soak --minutes 150

A client changes two objects a second through the API server: it scales Deployments, rolls them out,
writes ConfigMaps, runs Jobs that are removed when they are done. Events are kept for five minutes.
Each minute the anonymous memory of every process is printed in MB, as its share of what it has in
common with others (files that are mapped, such as libraries, weigh more as soon as another process
that maps them ends). At the end, for each process: what it had after half an hour and at the end,
and its slope in between in MB an hour.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import shutil
import ssl
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import linear_regression
from typing import Any

import httpx
import psutil
import yaml

from kcm.testing.waiting import let_time_pass
from tests.scenarios.system import System

WARM = 30.0  # minutes until caches and pools are full
PACE = 0.5  # seconds from one change to the next
DEPLOYMENTS = 10
MERGE = {"Content-Type": "application/merge-patch+json"}
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
APPS = "/apis/apps/v1/namespaces/default/deployments"
JOBS = "/apis/batch/v1/namespaces/default/jobs"

Series = dict[str, list[tuple[float, float]]]  # (minute, MB) by process


def connect(system: System) -> httpx.Client:
    """Returns a client of the API server with the administrator's credentials."""
    config = yaml.safe_load((system.state_dir / "kubeconfig").read_text("utf-8"))
    server, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(server["certificate-authority-data"]).decode()
    return httpx.Client(
        base_url=server["server"],
        headers={"Authorization": f"Bearer {user['token']}"},
        verify=ssl.create_default_context(cadata=authority),
    )


def send(client: httpx.Client, verb: str, path: str, body: Mapping[str, Any] | None = None) -> None:
    """Sends one request. Raises: HTTPStatusError, unless it succeeds."""
    headers = MERGE if verb == "PATCH" else {}
    client.request(verb, path, json=body, headers=headers).raise_for_status()


def _template(app: str, image: str, restarts: str) -> dict[str, Any]:
    container = {"name": "main", "image": image}
    spec = {"containers": [container], "restartPolicy": restarts}
    return {"metadata": {"labels": {"app": app}}, "spec": spec}


def begin(client: httpx.Client) -> None:
    """Creates what the changes are made to."""
    for number in range(DEPLOYMENTS):
        name = f"web-{number}"
        template = _template(name, "app:0", "Always")
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}
        send(client, "POST", APPS, {"metadata": {"name": name}, "spec": spec})


def make_changes(client: httpx.Client) -> Iterator[None]:
    """Makes one change at each step, without an end."""
    for turn in itertools.count():
        web = f"{APPS}/web-{turn % DEPLOYMENTS}"
        send(client, "PATCH", web, {"spec": {"replicas": 1 + turn % 4}})
        yield
        send(client, "POST", CONFIGMAPS, {"metadata": {"name": f"note-{turn}"}})
        yield
        send(client, "PATCH", f"{CONFIGMAPS}/note-{turn}", {"data": {"turn": str(turn)}})
        yield
        send(client, "DELETE", f"{CONFIGMAPS}/note-{turn}")
        yield
        job = {
            "ttlSecondsAfterFinished": 5,
            "template": _template(f"job-{turn}", "app:0", "Never"),
        }
        send(client, "POST", JOBS, {"metadata": {"name": f"job-{turn}"}, "spec": job})
        yield
        template = _template(f"web-{turn % DEPLOYMENTS}", f"app:{turn}", "Always")
        send(client, "PATCH", web, {"spec": {"template": template}})
        yield


def read_anonymous_memory(pid: int) -> float:
    """Returns the process's share of anonymous memory in MB. Raises OSError if it has ended."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines():
        if line.startswith("Pss_Anon:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise OSError("the kernel does not tell anonymous memory (Linux does from 5.3 on)")


def measure(system: System) -> dict[str, float]:
    """Returns the memory of each process in MB, by what it is called and its number."""
    assert system.process is not None
    root = psutil.Process(system.process.pid)
    measured = {}
    for process in [root, *root.children(recursive=True)]:
        try:
            words = process.cmdline()
            memory = read_anonymous_memory(process.pid)
        except (psutil.NoSuchProcess, ProcessLookupError, FileNotFoundError):
            continue
        title = " ".join(word.rsplit("/", 1)[-1] for word in words[:6])
        measured[f"{title[:60]} {process.pid}"] = memory
    return measured


def describe_growth(series: Series, warm: float) -> Iterator[str]:
    """Yields a line for each process that lives at the end: its memory after `warm` minutes and at
    the end, and the slope between.
    """
    end = max(points[-1][0] for points in series.values())
    for name, points in sorted(series.items()):
        settled = [point for point in points if point[0] >= warm]
        if len(settled) < 2 or settled[-1][0] < end:
            continue
        slope = linear_regression(*zip(*settled, strict=True)).slope * 60
        yield f"{slope:+7.2f} MB/h  {settled[0][1]:6.1f} -> {settled[-1][1]:6.1f} MB  {name}"


def run(system: System, minutes: float, every: float, warm: float) -> None:
    """Changes and measures for `minutes`. Prints each measurement, taken `every` minutes."""
    begun = time.monotonic()
    series: Series = defaultdict(list)
    with connect(system) as client:
        begin(client)
        step, measured = make_changes(client), 0
        for number in itertools.count():
            now = (time.monotonic() - begun) / 60
            if now >= measured * every:
                measured += 1
                for name, pss in measure(system).items():
                    series[name].append((now, pss))
                latest = " ".join(f"{points[-1][1]:.0f}" for points in series.values())
                print(f"{now:6.1f} min  {number} changes  {latest}", flush=True)  # noqa: T201 - a command
            if now >= minutes:
                break
            next(step)
            let_time_pass(begun + (number + 1) * PACE - time.monotonic(), "the pace of the client")
    print(*series, *describe_growth(series, warm), sep="\n")  # noqa: T201 - a command


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=150.0)
    parser.add_argument("--every", type=float, default=1.0, help="minutes between measurements")
    parser.add_argument("--warm", type=float, default=WARM, help="minutes that are not judged")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kcm-soak-"))
    system = System(folder)
    try:
        system.start("--", "--event-ttl=5m")
        run(system, given.minutes, given.every, given.warm)
    finally:
        system.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
