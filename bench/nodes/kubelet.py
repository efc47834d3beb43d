"""Measures a real node: how fast its pods start, and what they use at rest."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.harness import Bench, free_port, progress, wait_for
from bench.nodes.scheduling import KCM, NODES, PODS, WITH_SCHEDULER
from bench.objects import web_pod
from bench.store import create_in_batches
from bench.table import Row, Sample
from bench.usage import measure, sums
from kcm.api.core_v1 import Pod
from kcm.cli.up.plan import machine_name
from kcm.helpers.pods import is_ready
from kcm.kubelet.runtime.ending import end_node

Process = subprocess.Popen[bytes]

NAME = "bench"
PATIENCE = 20.0  # seconds for the kubelet to exit
SLEEP = {"name": "main", "image": "none", "command": ["sleep", "100000"]}


def start(bench: Bench) -> Iterator[Row]:
    """Measures how long it takes until all pods that are bound to one node are Ready."""
    count = bench.sizes.node_pods
    progress(f"kubelet: {count} pods on one node, {bench.sizes.queue_rounds} rounds")
    ours, raw = [], []
    with _kubelet(bench):
        for number in range(bench.sizes.queue_rounds):
            raw.append(_raw_start(count))
            ours.append(_run(bench, f"load-{number}", count))
            _delete_all_pods(bench)
    yield Row(
        name="kubelet.start",
        what=f"{count} pods bound to one node, until all are Ready",
        unit="s",
        measured=Sample.of(ours),
        baseline=Sample.of(raw),
        baseline_what=f"s, {count} bare Pythons that start and end, two at a time",
        bound=15,
        target="15 s",
    )


def idle(bench: Bench) -> Iterator[Row]:
    """Measures the CPU of a node with pods at rest."""
    with _kubelet(bench) as kubelet:
        yield _rest(bench, "kubelet.idle", "a kubelet, its {} pods and the server", kubelet, NAME)


def everything(bench: Bench) -> Iterator[Row]:
    """Measures the CPU of all that `kcm up` runs, with pods at rest on its real node."""
    with _up(bench) as system:
        node = machine_name(socket.gethostname())
        what = "the whole of `kcm up`, with {} pods on its real node,"
        yield _rest(bench, "kubelet.up", what, system, node)


def _rest(bench: Bench, name: str, what: str, process: Process, node: str) -> Row:
    """Measures the CPU of a process and all that it has started, with pods at rest and without."""
    count, seconds = bench.sizes.node_pods, bench.sizes.idle_seconds
    progress(f"{name}: {count} pods at rest for {seconds:g} s")
    empty = measure(bench, [process], seconds)
    _run(bench, "rest", count, node)
    full = measure(bench, [process], seconds)
    return Row(
        name=name,
        what=f"CPU of {what.format(count)} at rest",
        unit="% of a core",
        measured=Sample.of([sum(part.cpu for part in full)]),
        baseline=Sample.of([sum(part.cpu for part in empty)]),
        baseline_what="%, the same without pods",
        bound=10,
        target="10 % of one core",
        note=sums(full),
    )


@contextmanager
def _kubelet(bench: Bench) -> Iterator[Process]:
    """Runs a kubelet, and kills its containers at the end, even after an error."""
    root = bench.folder / "kubelet" / NAME
    flags = [f"--node-name={NAME}", f"--root-dir={root}", "--port=0", "--end-containers"]
    process = bench.spawn(
        "kubelet", [*KCM, "kubelet", *flags, "--max-pods=1000", "--eviction-hard="]
    )
    with _terminated(bench, process):
        wait_for(lambda: bench.store.count(NODES) == 1, "the registration of the node")
        time.sleep(bench.sizes.settle_seconds)
        yield process


@contextmanager
def _up(bench: Bench) -> Iterator[Process]:
    """Runs `kcm up` with five simulated nodes and a real one, on this measurement's server."""
    flags = [f"--{name}-port={free_port()}" for name in ("flower", "health", "api")]
    process = bench.spawn("up", [*KCM, "up", *flags], extra=WITH_SCHEDULER)
    with _terminated(bench, process):
        output = bench.folder / "up.log"
        wait_for(lambda: "Ctrl-C stops it all" in output.read_text(), "the start of everything")
        wait_for(lambda: bench.store.count(NODES) == 6, "the registration of the nodes")
        yield process


@contextmanager
def _terminated(bench: Bench, process: Process) -> Iterator[None]:
    """Stops the process and kills its node's containers at the end, even after an error."""
    try:
        yield
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
        bench.stop(process)
        for root in (bench.folder / "kubelet").glob("*"):
            end_node(root)


def _run(bench: Bench, prefix: str, count: int, node: str = NAME) -> float:
    """Returns the seconds from the creation of the first pod until all are Ready."""
    pod = web_pod(prefix, nodeName=node, containers=[SLEEP], terminationGracePeriodSeconds=1)
    started = time.monotonic()
    create_in_batches(bench.store, count, pod)
    wait_for(lambda: _ready(bench) == count, "all pods Ready", every=0.1)
    return time.monotonic() - started


def _ready(bench: Bench) -> int:
    return sum(isinstance(pod, Pod) and is_ready(pod) for pod in bench.store.list(PODS).items)


def _delete_all_pods(bench: Bench) -> None:
    for pod in bench.store.list(PODS).items:
        bench.store.delete(PODS, pod.key)
    wait_for(lambda: bench.store.count(PODS) == 0, "the end of all pods")


def _raw_start(count: int) -> float:
    """Returns the seconds that `count` bare interpreters take to start and exit, two at a time."""
    command = [sys.executable, "-I", "-S", "-E", "-c", ""]
    started = time.monotonic()
    for _ in range((count + 1) // 2):
        pair = [subprocess.Popen(command) for _ in range(2)]
        for process in pair:
            process.wait()
    return time.monotonic() - started
