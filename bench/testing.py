"""Measures the control planes that tests start in their own process (`kcm.testing`)."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from bench.harness import ROOT, Bench, progress
from bench.raw import RawStore
from bench.table import Row, Sample
from bench.usage import MB
from kcm.redisio.embedded import EmbeddedServer

_PATIENCE = 600.0  # seconds


def start(bench: Bench) -> Iterator[Row]:
    """Measures the first control plane of a fresh process, from the process' start on."""
    count = bench.sizes.starts
    progress(f"testing: {count} starts in fresh processes")
    bare, seconds, cpu, parts = [], [], [], []
    for _ in range(count):
        bare.append(_start_bare())
        started = time.monotonic()
        figures = _measure(bench, "start")
        seconds.append(figures["ready"] - started)
        cpu.append(figures["own"] + figures["others"])
        parts.append(f"{figures['own']:.2f} + {figures['others']:.2f}")
    baseline, what = Sample.of(bare), "s, a bare Python that starts and ends"
    yield Row(
        name="testing.start",
        what="a fresh process, until its first control plane is ready",
        unit="s",
        measured=Sample.of(seconds),
        baseline=baseline,
        baseline_what=what,
        bound=1.8,
        target="1.8 s",
    )
    yield Row(
        name="testing.start.cpu",
        what="CPU until then, the server's included",
        unit="s",
        measured=Sample.of(cpu),
        baseline=baseline,
        baseline_what=what,
        bound=1.8,
        target="1.8 s",
        note=f"this process and its server: {', '.join(parts)}",
    )


def again(bench: Bench) -> Iterator[Row]:
    """Measures a further start in a process that has had a control plane."""
    starts, _, raw, _ = _repeat(bench)
    yield Row(
        name="testing.again",
        what="a further control plane of the process, until it is ready",
        unit="s",
        measured=Sample.of(starts),
        baseline=Sample.of(raw),
        baseline_what="s, the start of its server alone",
        bound=0.15,
        target="0.15 s",
    )


def stop(bench: Bench) -> Iterator[Row]:
    """Measures a stop, after which nothing is left."""
    _, stops, _, raw = _repeat(bench)
    yield Row(
        name="testing.stop",
        what="stop of a control plane, until nothing is left of it",
        unit="s",
        measured=Sample.of(stops),
        baseline=Sample.of(raw),
        baseline_what="s, the stop of its server alone",
        bound=0.15,
        target="0.15 s",
    )


def settle(bench: Bench) -> Iterator[Row]:
    """Measures how long a Deployment takes until all of its pods are ready, the clock stopped."""
    pods, rounds = bench.sizes.settled_pods, bench.sizes.testing_rounds
    progress(f"testing: a Deployment of {pods} pods, {rounds} rounds")
    figures = _measure(bench, "settle", pods, rounds)
    raw_store, raw = RawStore(bench.io), []
    for _ in range(rounds):
        raw.append(raw_store.create_all([pod.encode() for pod in figures["pods"]]))
        raw_store.clear(pods)
    baseline = Sample.of(raw)
    yield Row(
        name="testing.settle",
        what=f"a Deployment of {pods:,} applied, settled, until all of its pods are ready",
        unit="s",
        measured=Sample.of(figures["seconds"]),
        baseline=baseline,
        baseline_what="s, pipelined SET+XADD of the same pods",
        bound=1_000 * baseline.median,
        target="1,000 x raw",
    )


def year(bench: Bench) -> Iterator[Row]:
    """Measures a year that a test's clock is advanced by."""
    rounds = bench.sizes.testing_rounds
    progress(f"testing: a year, {rounds} rounds")
    figures = _measure(bench, "year", rounds)
    yield Row(
        name="testing.year",
        what="a year of a monthly CronJob, with its twelve Jobs",
        unit="s",
        measured=Sample.of(figures["full"]),
        baseline=Sample.of(figures["empty"]),
        baseline_what="s, a year without it",
        bound=2,
        target="2 s",
    )


def memory(bench: Bench) -> Iterator[Row]:
    """Measures the memory of a process with a control plane."""
    count = bench.sizes.starts
    progress(f"testing: memory of {count} processes")
    all_figures = [_measure(bench, "memory") for _ in range(count)]
    full, bare, others = (
        [figures[name] / MB for figures in all_figures] for name in ("full", "bare", "others")
    )
    yield Row(
        name="testing.memory",
        what="resident memory of a process with a control plane",
        unit="MB",
        measured=Sample.of(full),
        value=max(full),
        baseline=Sample.of(bare),
        baseline_what="MB, before the imports",
        bound=150,
        target="150 MB",
        note=f"its server and its guard have {max(others):.0f} MB more",
    )


def _repeat(bench: Bench) -> tuple[list[float], list[float], list[float], list[float]]:
    """Returns the seconds of starts and stops, of control planes and of a server alone."""
    rounds = bench.sizes.rounds
    progress(f"testing: {rounds} further starts in a process")
    figures = _measure(bench, "again", rounds)
    starts, stops = [], []
    for number in range(rounds):
        server = EmbeddedServer(bench.folder / f"alone-{number}")
        before = time.monotonic()
        server.start()
        between = time.monotonic()
        server.stop()
        starts.append(between - before)
        stops.append(time.monotonic() - between)
    return figures["starts"], figures["stops"], starts, stops


def _start_bare() -> float:
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.monotonic() - started


def _measure(bench: Bench, name: str, *numbers: int) -> dict[str, Any]:
    """Runs a measurement of `bench.programs.control_plane` in a fresh process. Raises RuntimeError
    if it fails.
    """
    path = bench.folder / "figures.json"
    arguments = ["-m", "bench.programs.control_plane", name, str(path), *map(str, numbers)]
    # The bench's own controller is for its own workers.
    process = bench.spawn(f"testing-{name}", arguments, extra={"PYTHONPATH": str(ROOT)})
    if code := process.wait(_PATIENCE):
        raise RuntimeError(f"the measurement {name} ended with {code}")
    figures: dict[str, Any] = json.loads(path.read_text())
    return figures
