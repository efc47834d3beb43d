"""Memory of what caches, time until a worker is ready, and what an idle system costs."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence

import psutil

from bench.harness import Bench, progress, wait_for
from bench.noop_controller import NoopController
from bench.queue import NoopSyncs
from bench.raw import RawTasks
from bench.raw_app import create_app
from bench.store import clear_store, create_in_batches
from bench.table import Row, Sample
from kcm.manager.manager import queue_config
from kcm.workqueue import WorkQueue

MB = 1_000_000
POOL = "prefork"


def tree(pid: int) -> list[psutil.Process]:
    """A process and all that came from it."""
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def own_memory(process: psutil.Process) -> float:
    """What the process takes in MB: its own pages and its share of the shared ones."""
    return float(process.memory_full_info().pss) / MB


def caching(pid: int) -> list[psutil.Process]:
    """The manager and the pool's children: all but the worker's own process."""
    return tree(pid)[1:]


def memory(bench: Bench) -> Iterator[Row]:
    count = bench.sizes.cached_objects
    progress(f"size: memory of caching processes, {count} pods")
    clear_store(bench)
    syncs = _noop_syncs(bench)
    worker = bench.kcm_worker(POOL, syncs.stamps.path)
    syncs.run_all(50)
    time.sleep(bench.sizes.settle_seconds)
    empty = [own_memory(process) for process in caching(worker.pid)]
    create_in_batches(bench, count)
    syncs.run_all(100)  # each child has read everything when its syncs have ended
    time.sleep(bench.sizes.settle_seconds)
    full = [own_memory(process) for process in caching(worker.pid)]
    bench.stop(worker)
    per_object = (max(full) - max(empty)) * MB / count / 1024
    yield Row(
        name="size.memory",
        what=f"caching process with {count:,} pods, largest of {len(full)}",
        unit="MB",
        measured=Sample.of(full),
        value=max(full),
        baseline=Sample.of([max(empty)]),
        baseline_what="MB, the same with an empty store",
        bound=80 + 12 * 1024 * count / MB,
        target="80 MB + 12 KB per object",
        note=f"{per_object:.1f} KB per cached pod",
    )


def _noop_syncs(bench: Bench) -> NoopSyncs:
    controller = NoopController()
    queue = WorkQueue(bench.io, controller.short_name)
    queue.configure(queue_config(controller))
    return NoopSyncs(queue, bench.stamps("kcm-size"))


def ready(bench: Bench) -> Iterator[Row]:
    progress(f"size: {bench.sizes.starts} starts of a worker")
    ours, raw = [], []
    for number in range(bench.sizes.starts):
        raw.append(_raw_start(bench, number))
        ours.append(_start(bench))
    yield Row(
        name="size.ready",
        what=f"start of a worker to its first sync (caches synced), {POOL}",
        unit="s",
        measured=Sample.of(ours),
        baseline=Sample.of(raw),
        baseline_what="s, raw worker to its first task",
        bound=1.5,
        target="1.5 s",
    )


def _start(bench: Bench) -> float:
    clear_store(bench)
    syncs = _noop_syncs(bench)
    syncs.stamps.reset()
    syncs.queue.add("default/first")
    started = time.monotonic()
    worker = bench.kcm_worker(POOL, syncs.stamps.path)
    wait_for(lambda: syncs.stamps.count() > 0, "the first sync")
    seconds = syncs.stamps.times()[0] - started
    bench.stop(worker)
    return seconds


def _raw_start(bench: Bench, number: int) -> float:
    clear_store(bench)
    tasks = RawTasks(create_app(bench.settings), bench.stamps(f"raw-start-{number}"))
    started = time.monotonic()
    worker = bench.raw_worker(POOL, bench.folder / f"raw-start-{number}.stamps")
    tasks.run_all(1)
    seconds = time.monotonic() - started
    bench.stop(worker)
    return seconds


def idle(bench: Bench) -> Iterator[Row]:
    seconds = bench.sizes.idle_seconds
    progress(f"size: CPU of an idle raw Celery, {seconds:g} s")
    stamps = bench.stamps("raw-idle")
    raws = [bench.raw_worker(POOL, stamps.path), _flower(bench, "bench.raw_app")]
    raw = _idle_cpu(bench, [process.pid for process in raws], seconds)
    bench.stop(*raws)
    progress(f"size: CPU of an idle kcm, {seconds:g} s")
    clear_store(bench)
    ours = [bench.kcm_worker(POOL), bench.beat(), _flower(bench, "workers")]
    measured, note = _cpu_with_shares(bench, [process.pid for process in ours], seconds)
    bench.stop(*ours)
    yield Row(
        name="size.idle",
        what="CPU of everything: server, worker, manager, beat, Flower; idle",
        unit="% of a core",
        measured=Sample.of([measured]),
        baseline=Sample.of([raw]),
        baseline_what="%, server, raw worker, Flower",
        bound=3.0,
        target="3 % of one core",
        note=note,
    )


def _flower(bench: Bench, app: str) -> subprocess.Popen[bytes]:
    arguments = ["-m", "celery", "-A", app, "flower", "--address=127.0.0.1", "--port=0"]
    return bench.spawn(f"flower-{app}", arguments)


def _idle_cpu(bench: Bench, pids: Sequence[int], seconds: float) -> float:
    return _cpu_with_shares(bench, pids, seconds)[0]


def _cpu_with_shares(bench: Bench, pids: Sequence[int], seconds: float) -> tuple[float, str]:
    """Per cent of one core over `seconds`, and which process took how much."""
    assert bench.server.process is not None
    time.sleep(2 * bench.sizes.settle_seconds)  # starting is not idling
    processes = [p for pid in (bench.server.process.pid, *pids) for p in tree(pid)]
    before = {process: _cpu(process) for process in processes}
    time.sleep(seconds)
    shares = {p: 100 * (_cpu(p) - used) / seconds for p, used in before.items()}
    note = ", ".join(f"{_title(process)} {share:.2f}" for process, share in shares.items())
    return sum(shares.values()), note


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _title(process: psutil.Process) -> str:
    words = process.cmdline()
    for title in ("kcm.manager", "beat", "flower", "worker"):
        if title in words:
            return title.removeprefix("kcm.")
    return process.name()
