"""Fails a Redis over under writers that keep every acknowledgement, and counts what was lost.

    python -m tests.chaos.failovers --durability replicated --replicas 2 --fault planned --times 10

Three servers and three sentinels run here. Three writers create ConfigMaps, three watchers keep
caches, each as a process of kcm would, with connections of its own. After the fault, the store and
the caches are compared with what was acknowledged.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import redis

from kcm import errors
from kcm.api.core_v1 import ConfigMap, Namespace
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.coordination.failovers import failover_loops
from kcm.loops import ThreadHost
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.testing.waiting import let_time_pass, until
from tests.conftest import server_binary
from tests.integration.redisio.clients import Cache, stored_versions
from tests.integration.redisio.replicas import Server
from tests.ports import free_port

CONFIGMAPS = ConfigMap.resource
PACE = 0.005  # seconds between the creates of a writer
DOWN_AFTER = 2000  # milliseconds


class Rig:
    """Three servers and the sentinels that watch them."""

    def __init__(self, folder: Path, sentinels: int = 3) -> None:
        self.folder = folder
        self.servers = [Server(folder, name) for name in ("r1", "r2", "r3")]
        self.ports = [free_port() for _ in range(sentinels)]
        self.sentinels: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        return f"sentinel://{','.join(f'127.0.0.1:{port}' for port in self.ports)}/kcm"

    def start(self, min_replicas: int) -> None:
        """Starts everything, with so many replicas without which no write is taken."""
        first = self.servers[0]
        limit = f"min-replicas-to-write {min_replicas}\nmin-replicas-max-lag 2\n"
        for server in self.servers:
            server.start(limit if min_replicas else "")
            if server is not first:
                server.replicate(first)
        for number, port in enumerate(self.ports):
            self.sentinels.append(self._start_sentinel(number, port, first.port))
        until(self.is_settled, "the sentinels know each other and the replicas")

    def _start_sentinel(self, number: int, port: int, master: int) -> subprocess.Popen[bytes]:
        file = self.folder / f"sentinel-{number}.conf"
        quorum = len(self.ports) // 2 + 1
        file.write_text(
            f"port {port}\nbind 127.0.0.1\ndir {self.folder}\n"
            f"sentinel monitor kcm 127.0.0.1 {master} {quorum}\n"
            f"sentinel down-after-milliseconds kcm {DOWN_AFTER}\n"
            "sentinel failover-timeout kcm 10000\n"
        )
        log = self.folder / f"sentinel-{number}.log"
        return subprocess.Popen(
            [server_binary(), str(file), "--sentinel", "--logfile", str(log)],
            stdout=subprocess.DEVNULL,
        )

    def ask(self, port: int, *command: str) -> Any:
        with redis.Redis("127.0.0.1", port, socket_timeout=2) as client:
            return client.execute_command(*command)

    def master(self) -> Server:
        """Returns the server that the first sentinel that answers names."""
        for port in self.ports:
            with suppress(redis.RedisError):
                _, named = self.ask(port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "kcm")
                return next(s for s in self.servers if s.port == int(named))
        raise AssertionError("no sentinel answers")

    def is_settled(self) -> bool:
        """Reports whether all sentinels name the same master, which both others follow."""
        with suppress(redis.RedisError, KeyError, OSError):
            master = self.master()
            states = [self.ask(port, "SENTINEL", "MASTER", "kcm") for port in self.ports]
            fields = [_fields(state) for state in states]
            others = [server for server in self.servers if server is not master]
            return (
                master.replication["role"] == "master"
                and {int(f["port"]) for f in fields} == {master.port}
                and all(f["flags"] == "master" and f["num-slaves"] == "2" for f in fields)
                and all(f["num-other-sentinels"] == str(len(self.ports) - 1) for f in fields)
                and all(server.has_all_of(master) for server in others)
            )
        return False

    def stop(self) -> None:
        for sentinel in self.sentinels:
            sentinel.kill()
            sentinel.wait()
        for server in self.servers:
            server.stop()


def _fields(reply: Any) -> dict[str, str]:
    if isinstance(reply, dict):
        return {_text(key): _text(value) for key, value in reply.items()}
    return {_text(k): _text(v) for k, v in zip(reply[::2], reply[1::2], strict=True)}


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


@contextmanager
def running_rig(folder: Path, min_replicas: int, sentinels: int = 3) -> Iterator[Rig]:
    """Gives a rig whose sentinels know each other."""
    rig = Rig(folder, sentinels)
    try:
        rig.start(min_replicas)
        yield rig
    finally:
        rig.stop()


# --- faults


def plan_failover(rig: Rig) -> None:
    rig.ask(rig.ports[0], "SENTINEL", "FAILOVER", "kcm")


def pause_and_fail_over(rig: Rig) -> None:
    """As docs/operations.md says for a planned failover that loses nothing."""
    rig.master().client.execute_command("CLIENT", "PAUSE", "10000", "WRITE")  # type: ignore[no-untyped-call] # the driver's gap
    plan_failover(rig)


def kill_master(rig: Rig) -> None:
    master = rig.master()
    master.stop()
    until(lambda: rig.master() is not master, "another master")
    master.start()


def cut_host(rig: Rig) -> None:
    """Stops the master and the sentinel beside it, which go on where they were 8 s later."""
    master = rig.master()
    number = rig.servers.index(master)
    stopped: list[Callable[[int], None]] = [master.signal, rig.sentinels[number].send_signal]
    for send in stopped:
        send(signal.SIGSTOP)
    let_time_pass(8, "the host is cut off, and another master is made")
    for send in stopped:
        send(signal.SIGCONT)


def break_nothing(rig: Rig) -> None:
    """For what writes cost."""


FAULTS: Mapping[str, Callable[[Rig], None]] = {
    "planned": plan_failover,
    "paused": pause_and_fail_over,
    "killed": kill_master,
    "cut": cut_host,
}


# --- clients


@dataclass
class Outcome:
    """What was seen in one run."""

    acknowledged: dict[str, int] = field(default_factory=dict)  # resourceVersions by name
    times: list[float] = field(default_factory=list)  # of acknowledgements
    failures: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    given_twice: int = 0
    ghosts: int = 0  # in the caches of the watchers, and hidden from them

    @property
    def gap(self) -> float:
        """The longest time without an acknowledgement, in seconds."""
        times = sorted(self.times)
        return max((b - a for a, b in pairwise(times)), default=0.0)

    def __str__(self) -> str:
        failed = ", ".join(f"{count} x {name}" for name, count in sorted(self.failures.items()))
        return (
            f"acknowledged {len(self.acknowledged)}, lost {self.lost}, "
            f"given twice {self.given_twice}, wrong in caches {self.ghosts}, "
            f"gap {self.gap:.2f} s, failures: {failed or 'none'}"
        )


class Process:
    """The connections of one process of kcm, and the loops that follow the sentinels."""

    def __init__(self, settings: Settings, name: str) -> None:
        self.io = RedisIO(settings, name=name)
        self.store = Store(self.io)
        self._host = ThreadHost()
        self._host.run(*failover_loops(self.io))

    def close(self) -> None:
        self._host.stop()
        self.io.close()


class Writer(Process):
    """Creates ConfigMaps, and keeps what was acknowledged."""

    pace = PACE

    def __init__(self, settings: Settings, number: int, outcome: Outcome) -> None:
        super().__init__(settings, f"writer-{number}")
        self._number, self._outcome = number, outcome

    def run(self, stop: threading.Event) -> None:
        count = 0
        while not stop.wait(self.pace):
            name, count = f"w{self._number}-{count}", count + 1
            meta = ObjectMeta(name=name, namespace="default")
            try:
                created = self.store.create(ConfigMap(metadata=meta))
            except errors.Temporary as error:
                self._outcome.failures[type(error).__name__] += 1
            else:
                self._outcome.acknowledged[name] = int(created.metadata.resource_version or 0)
                self._outcome.times.append(time.monotonic())


class Watcher(Process):
    """Keeps the resourceVersions of all ConfigMaps."""

    def __init__(self, settings: Settings, number: int) -> None:
        super().__init__(settings, f"watcher-{number}")
        self.cache = Cache(self.store, CONFIGMAPS)

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                self.cache.read(0.2)
            except errors.Temporary:
                stop.wait(0.1)


def check(
    rig: Rig,
    settings: Settings,
    fault: Callable[[Rig], None],
    seconds: float,
    is_over: Callable[[Rig], bool] = Rig.is_settled,
) -> Outcome:
    """Runs clients for some seconds before a fault and after it is over, and returns what was
    seen.
    """
    rig.master().client.flushall()
    outcome, stop = Outcome(), threading.Event()
    Store(RedisIO(settings)).create(Namespace(metadata=ObjectMeta(name="default")))
    writers = [Writer(settings, number, outcome) for number in range(3)]
    watchers = [Watcher(settings, number) for number in range(3)]
    processes: list[Writer | Watcher] = [*writers, *watchers]
    writing = [threading.Thread(target=writer.run, args=(stop,)) for writer in writers]
    over = threading.Event()
    watching = [threading.Thread(target=watcher.run, args=(over,)) for watcher in watchers]
    for thread in (*writing, *watching):
        thread.start()
    try:
        until(lambda: len(outcome.acknowledged) > 30, "writes")
        let_time_pass(seconds, "what was written before the fault")
        fault(rig)
        until(lambda: is_over(rig), "the fault is over")
        let_time_pass(seconds, "what is written after the fault")
    finally:
        stop.set()
        for thread in writing:
            thread.join()
    stored = stored_versions(rig.master(), CONFIGMAPS)
    try:
        with suppress(AssertionError):  # what differs is counted
            until(
                lambda: all(w.cache.versions == stored for w in watchers), "the caches", within=10
            )
    finally:
        over.set()
        for thread in watching:
            thread.join()
        for process in processes:
            process.close()
    outcome.lost = sum(stored.get(n) != rv for n, rv in outcome.acknowledged.items())
    versions = Counter(outcome.acknowledged.values())
    outcome.given_twice = sum(count - 1 for count in versions.values())
    outcome.ghosts = sum(len(set(w.cache.versions.items()) ^ set(stored.items())) for w in watchers)
    return outcome


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--durability", choices=("local", "replicated"), default="local")
    parser.add_argument("--replicas", type=int, default=1, help="KCM_REDIS_REPLICAS")
    parser.add_argument("--fault", choices=(*FAULTS, "none"), default="planned")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--pace", type=float, default=PACE, help="seconds between creates")
    parser.add_argument("--seconds", type=float, default=2.0, help="before and after the fault")
    options = parser.parse_args(arguments)
    Writer.pace = options.pace
    min_replicas = options.replicas if options.durability == "replicated" else 0
    for number in range(options.times):  # a sentinel fails over once in 20 s, so each has new ones
        with (
            tempfile.TemporaryDirectory(prefix="kcm-failovers-") as folder,
            running_rig(Path(folder), min_replicas) as rig,
        ):
            settings = Settings(
                redis_url=rig.url,
                redis_durability=options.durability,
                redis_replicas=options.replicas,
            )
            outcome = check(
                rig, settings, FAULTS.get(options.fault, break_nothing), options.seconds
            )
            print(f"{options.fault} {options.durability} {number + 1}: {outcome}", flush=True)  # noqa: T201 - a command


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # after the servers were stopped
    main(sys.argv[1:])
