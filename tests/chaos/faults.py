"""The faults: each breaks something and, where nobody else would, mends it again."""

from __future__ import annotations

import contextlib
import random
import signal
from collections.abc import Callable

import psutil

from kcm.testing.waiting import let_time_pass, until
from tests.chaos import workload
from tests.chaos.cluster import Cluster
from tests.misconf import unable_to_persist

Fault = Callable[[Cluster, random.Random], None]


def kill_a_pool_child(cluster: Cluster, rng: random.Random) -> None:
    """Kills a process of a worker's pool in the middle of whatever it syncs."""
    _kill_one(cluster.children(), rng)


def kill_a_worker(cluster: Cluster, rng: random.Random) -> None:
    """Kills a whole worker; its supervisor starts another."""
    worker = rng.choice(cluster.workers)
    worker.kill()
    worker.wait()
    cluster.start()


def kill_a_manager(cluster: Cluster, rng: random.Random) -> None:
    """Kills a manager; the worker's bootstep starts another."""
    _kill_one(cluster.managers(), rng)


def kill_beat(cluster: Cluster, rng: random.Random) -> None:
    """Kills a beat; its supervisor starts another."""
    beat = rng.choice(cluster.beats)
    beat.kill()
    beat.wait()
    cluster.start()


def cut_every_connection(cluster: Cluster, rng: random.Random) -> None:
    """Closes every connection to Redis but our own."""
    for kind in ("normal", "pubsub"):
        cluster.io.execute("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")


def kill_the_server(cluster: Cluster, rng: random.Random) -> None:
    """Kills Redis and starts it again on its append-only file."""
    cluster.wait_until_saved()
    cluster.restart_server(signal.SIGKILL)


def stop_the_server(cluster: Cluster, rng: random.Random) -> None:
    """Restarts Redis cleanly."""
    cluster.restart_server(signal.SIGTERM)


def half_open_link(cluster: Cluster, rng: random.Random) -> None:
    """Lets the link swallow everything for a while, and forget its connections."""
    cluster.proxy.freeze()
    let_time_pass(rng.uniform(2, 8), "the link is half open")
    cluster.proxy.thaw()


def long_half_open_link(cluster: Cluster, rng: random.Random) -> None:
    """Lets the link swallow everything for 20 seconds."""
    cluster.proxy.freeze()
    let_time_pass(20, "the link is half open")
    cluster.proxy.thaw()


def freeze_a_process(cluster: Cluster, rng: random.Random) -> None:
    """Stops a process beyond its lease. It goes on as somebody who has lost its keys."""
    process = rng.choice(cluster.syncing())
    process.send_signal(signal.SIGSTOP)
    let_time_pass(6, "the process sleeps beyond its lease")
    if process.is_running():
        process.send_signal(signal.SIGCONT)


def lose_the_messages(cluster: Cluster, rng: random.Random) -> None:
    """Deletes every Celery message that waits on the broker's lists."""
    for name in cluster.io.execute("KEYS", cluster.io.keys.broker_prefix() + "*"):
        if cluster.io.execute("TYPE", name) == b"list":
            cluster.io.execute("DEL", name)


def flush_the_scripts(cluster: Cluster, rng: random.Random) -> None:
    """Flushes the scripts of Redis, as an operator might."""
    cluster.io.execute("SCRIPT FLUSH")


def rubbish_in_the_streams(cluster: Cluster, rng: random.Random) -> None:
    """Adds foreign entries to the event bus and to a watch log."""
    io = cluster.io
    for number in range(20):
        io.execute("XADD", io.keys.events(), "*", "type", "ADDED", "object", rng.randbytes(50))
        io.execute("XADD", io.keys.events(), "*", f"field{number}", "x")
    io.execute("XADD", io.keys.watch("pods"), _next(cluster), "a", "b")


def out_of_memory(cluster: Cluster, rng: random.Random) -> None:
    """Lets Redis reject every write for want of memory, and then have it again."""
    cluster.io.execute("CONFIG SET", "maxmemory", 1)
    try:
        let_time_pass(rng.uniform(1, 4), "Redis has no memory")
    finally:
        cluster.io.execute("CONFIG SET", "maxmemory", 0)


def nowhere_to_persist(cluster: Cluster, rng: random.Random) -> None:
    """Lets Redis reject every write because it cannot save (MISCONF), as with a full disk."""
    with unable_to_persist(cluster.io):
        let_time_pass(rng.uniform(1, 4), "Redis cannot save")


def kill_a_kubelet(cluster: Cluster, rng: random.Random) -> None:
    """Kills a kubelet while its pods come and go.

    What it started runs on. The node stays from now on.
    """
    node = cluster.node
    node.wanted = True
    node.scale(rng.randrange(5, 15))
    cluster.start()
    until(lambda: node.count_running() > 0, "a pod on the real node")
    let_time_pass(rng.uniform(0, 1), "the kill comes at any moment of the start")
    node.kill()
    node.scale(rng.randrange(15))
    let_time_pass(rng.uniform(0, 1), "the kubelet is away")
    cluster.start()


def empty_the_server(cluster: Cluster, rng: random.Random) -> None:
    """Empties Redis while everything runs; users apply again what they had."""
    cluster.io.execute("FLUSHALL")
    workload.prepare(cluster)
    if cluster.node.wanted:
        cluster.node.scale(rng.randrange(5))


def pause_the_clients(cluster: Cluster, rng: random.Random) -> None:
    """Lets the server take commands and answer none, for longer than a timeout."""
    cluster.io.execute("CLIENT", "PAUSE", 5000, "ALL")
    let_time_pass(5, "the server answers nobody")


def flush_the_scripts_again_and_again(cluster: Cluster, rng: random.Random) -> None:
    """Flushes the scripts in a loop, so that they are gone between any two calls."""
    for _ in range(300):
        cluster.io.execute("SCRIPT", "FLUSH")
        let_time_pass(0.01, "some calls come between two flushes")


def no_more_files(cluster: Cluster, rng: random.Random) -> None:
    """Lets no process open another file or connection for a while."""
    every = cluster.everybody()
    limits = {process: process.rlimit(psutil.RLIMIT_NOFILE) for process in every}
    for process in every:
        _limit(process, (1, limits[process][1]))
    cut_every_connection(cluster, rng)
    let_time_pass(4, "no process can open a file")
    for process in every:
        _limit(process, limits[process])


def _limit(process: psutil.Process, limits: tuple[int, int]) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.rlimit(psutil.RLIMIT_NOFILE, limits)


FAULTS: tuple[Fault, ...] = (
    out_of_memory,
    nowhere_to_persist,
    kill_a_pool_child,
    kill_a_worker,
    kill_a_manager,
    kill_beat,
    cut_every_connection,
    kill_the_server,
    stop_the_server,
    half_open_link,
    freeze_a_process,
    lose_the_messages,
    flush_the_scripts,
    empty_the_server,
    pause_the_clients,
    flush_the_scripts_again_and_again,
    no_more_files,
    rubbish_in_the_streams,
    kill_a_kubelet,
)


def _next(cluster: Cluster) -> str:
    version = int(cluster.io.execute("GET", cluster.io.keys.resource_version()) or 0)
    return f"{version + 50}-0"


def _kill_one(processes: list[psutil.Process], rng: random.Random) -> None:
    if processes:
        rng.choice(processes).kill()
