"""Measures idle systems: small ones, and one with thousands of nodes and their pods."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence

from bench.harness import Bench, progress, wait_for
from bench.nodes.scheduling import PODS, POOL, WITH_SCHEDULER
from bench.nodes.simulated import MONITOR, make_bound_pods, start_nodes, wait_running
from bench.store import clear_store
from bench.table import Row, Sample
from bench.usage import MB, Part, caching, measure, shares
from kcm.api.core_v1 import Pod
from kcm.controllers.nodelifecycle.memory import load_zones

Processes = list[subprocess.Popen[bytes]]

GIB = 2**30 / MB
CHILDREN = 2  # processes of a worker's pool


def idle(bench: Bench) -> Iterator[Row]:
    """Measures the CPU of idle workers, manager, beat and Flower."""
    yield _idle_row(
        bench,
        "size.idle",
        "CPU of everything: server, worker, manager, beat, Flower; idle",
        lambda: [bench.kcm_worker(POOL), bench.beat(), _flower(bench, "workers")],
        3,
    )


def idle_with_nodes(bench: Bench) -> Iterator[Row]:
    """Measures the CPU of all that `kcm up` runs, while idle with five simulated nodes."""
    yield _idle_row(
        bench,
        "nodes.idle",
        "CPU of everything: as size.idle, with scheduler, API server and five nodes",
        lambda: [*_system(bench), start_nodes(bench, 5)],
        6,
    )


def _idle_row(
    bench: Bench, name: str, what: str, start: Callable[[], Processes], most: float
) -> Row:
    seconds = bench.sizes.idle_seconds
    progress(f"{name}: CPU of an idle raw Celery, then of an idle kcm, {seconds:g} s each")
    raws = [
        bench.raw_worker(POOL, bench.stamps("raw-idle").path),
        _flower(bench, "bench.programs.raw_app"),
    ]
    raw = measure(bench, raws, seconds)
    bench.stop(*raws)
    clear_store(bench)
    ours = start()
    parts = measure(bench, ours, seconds)
    bench.stop(*ours)
    return Row(
        name=name,
        what=what,
        unit="% of a core",
        measured=Sample.of([_cpu(parts)]),
        baseline=Sample.of([_cpu(raw)]),
        baseline_what="%, server, raw worker, Flower",
        bound=most,
        target=f"{most:g} % of one core",
        note=shares(parts),
    )


def _flower(bench: Bench, app: str) -> subprocess.Popen[bytes]:
    """Starts Flower for this Celery app, on a free port."""
    arguments = ["-m", "celery", "-A", app, "flower", "--address=127.0.0.1", "--port=0"]
    return bench.spawn(f"flower-{app}", arguments)


def _system(bench: Bench) -> Processes:
    """Starts what `kcm up` runs, except the simulator. The worker is the first in the list."""
    worker = bench.kcm_worker(POOL, extra=WITH_SCHEDULER)
    others = [
        bench.beat(extra=WITH_SCHEDULER),
        _flower(bench, "workers"),
        bench.spawn("apiserver", ["-m", "kcm.apiserver", "--port", "0"]),
    ]
    wait_for(lambda: len(caching(worker.pid)) > CHILDREN, "the start of manager and children")
    return [worker, *others]


def many_nodes(bench: Bench) -> Iterator[Row]:
    """Measures the CPU and memory of all processes, with thousands of nodes and their idle pods."""
    count, each = bench.sizes.many_nodes, bench.sizes.pods_per_node
    seconds, settle = bench.sizes.steady_seconds, bench.sizes.settle_seconds
    progress(f"nodes.steady: an empty system, then {count} nodes with {each} pods each at rest")
    system = _system(bench)
    time.sleep(3 * settle)
    empty = measure(bench, system, seconds / 4)
    empty_largest = _largest(empty, system[0])
    bench.stop(*system)
    clear_store(bench)
    simulator = start_nodes(bench, count, "--no-events")
    _fill(bench, [f"node-{number + 1}" for number in range(count)], each)
    progress("nodes.steady: all pods run; starting the rest")
    system = _system(bench)
    wait_for(lambda: _monitored(bench) == count, "the first pass over all nodes", 180, every=1.0)
    time.sleep(6 * settle)  # that pass records an Event about every node
    full = measure(bench, [*system, simulator], seconds)
    full_largest = _largest(full, system[0])
    what = f"{count:,} nodes with {each} pods each"
    yield Row(
        name="nodes.steady.cpu",
        what=f"CPU of everything but the simulator; {what}, at rest",
        unit="% of a core",
        measured=Sample.of([_cpu([part for part in full if part.pid != simulator.pid])]),
        baseline=Sample.of([_cpu(empty)]),
        baseline_what="%, the same with an empty store",
        bound=60,
        target="60 % of one core",
        note=f"{shares(full)}; the simulator is nodes",
    )
    objects = count * (each + 1)
    yield Row(
        name="nodes.steady.memory",
        what=f"caching process with {objects:,} nodes and pods, the largest",
        unit="MB",
        measured=Sample.of([full_largest]),
        baseline=Sample.of([empty_largest]),
        baseline_what="MB, the same with an empty store",
        bound=80 + 12 * 1024 * objects / MB,
        target="80 MB + 12 KB per object",
        note=f"{(full_largest - empty_largest) * MB / objects / 1024:.1f} KB per cached object",
    )
    yield Row(
        name="nodes.steady.total",
        what=f"memory of all processes, the simulator's too; {what}",
        unit="GiB",
        measured=Sample.of([_memory(full) / GIB]),
        baseline=Sample.of([_memory(empty) / GIB]),
        baseline_what="GiB, an empty system",
        bound=5,
        target="5 GiB",
        note="MB: " + ", ".join(f"{part.title} {part.memory:.0f}" for part in full),
    )


def _fill(bench: Bench, names: Sequence[str], each: int) -> None:
    """Creates running pods.

    The simulator runs the first, the others are created with its status.
    """
    make_bound_pods(bench.store, names[:1], 1)
    wait_running(bench.store, 1)
    (first,) = bench.store.list(PODS).items
    assert isinstance(first, Pod)
    make_bound_pods(bench.store, names[:1], each - 1, first.status)
    make_bound_pods(bench.store, names[1:], each, first.status)


def _monitored(bench: Bench) -> int:
    raw = bench.io.execute("HGET", bench.io.keys.tick_state(MONITOR), "zones")
    return sum(zone.nodes for zone in load_zones({"zones": raw.decode()} if raw else {}).values())


def _cpu(parts: Sequence[Part]) -> float:
    return sum(part.cpu for part in parts)


def _memory(parts: Sequence[Part]) -> float:
    return sum(part.memory for part in parts)


def _largest(parts: Sequence[Part], worker: subprocess.Popen[bytes]) -> float:
    """Returns the MB of the largest caching process of that worker. All of them must still run."""
    pids = {process.pid for process in caching(worker.pid)}
    return max(part.memory for part in parts if part.pid in pids)
