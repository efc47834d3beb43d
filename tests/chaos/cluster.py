"""A whole kcm of real processes, to be broken."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psutil

from beat_schedule import TICKS_QUEUE, tick_task_name
from kcm import errors
from kcm.redisio import RedisIO
from kcm.redisio.embedded import EmbeddedServer
from kcm.settings import Settings
from kcm.store import Store
from kcm.testing.waiting import let_time_pass, until
from tests.chaos.proxy import HalfOpenProxy
from tests.chaos.realnode import RealNode
from tests.chaos.world import World
from tests.conftest import FAULTS_ALLOWED, server_binary

ROOT = Path(__file__).parents[2]
RECOVERY = 60.0  # seconds from the end of a fault to an exact world; a few on an idle machine


class Cluster(World):
    """Runs a private server, workers with their managers, and beats.

    `io` and `store` are the tests' own direct connection.
    """

    def __init__(
        self,
        workers: int = 2,
        beats: int = 1,
        *,
        pool: str = "prefork",
        concurrency: int = 2,
        data: Path | None = None,
    ) -> None:
        """Starts the server. Its files are in `data`, or in the cluster's folder."""
        self.folder = Path(tempfile.mkdtemp(prefix="kcm-chaos-"))
        if data is not None:
            (self.folder / "data").symlink_to(data)
        self.server = EmbeddedServer(self.folder, binary=server_binary(), extra=FAULTS_ALLOWED)
        self.server.start()
        self.proxy = HalfOpenProxy(self.folder / "proxy.sock", self.server.socket_path)
        io = RedisIO(Settings(redis_url=self.server.url))
        super().__init__(Store(io), io)
        self.pool, self.concurrency = pool, concurrency
        self.root = ROOT  # the tree that processes are started from
        self.environment: dict[str, str] = {}
        self.workers: list[psutil.Popen] = []
        self.beats: list[psutil.Popen] = []
        self._wanted = (workers, beats)
        self.node = RealNode(self.folder, self.store, self.spawn)

    # --- processes

    def start(self) -> None:
        """Starts the wanted workers and beats that do not run."""
        workers, beats = self._wanted
        self.workers = [p for p in self.workers if p.is_running() and p.poll() is None]
        self.beats = [p for p in self.beats if p.is_running() and p.poll() is None]
        while len(self.workers) < workers:
            name = f"w{time.monotonic_ns()}@chaos"
            self.workers.append(
                self._spawn("worker", "-c", str(self.concurrency), "-P", self.pool, "-n", name,
                            "-E", "--without-mingle", "--without-gossip")
            )  # fmt: skip
        while len(self.beats) < beats:
            self.beats.append(self._spawn("beat"))
        self.node.start()

    def run_pass(self, loop: str) -> None:
        """Asks the workers for a pass of a periodic loop, as beat does."""
        task = tick_task_name(loop)
        asked = self._spawn("call", task, "--args", "[0.0]", "--queue", TICKS_QUEUE).wait(60)
        assert asked == 0, self._log_tails()

    def _spawn(self, *command: str) -> psutil.Popen:
        celery = [sys.executable, "-W", "ignore", "-m", "celery", "-A", "workers"]
        return self.spawn(command[0], [*celery, *command])

    def spawn(self, name: str, command: list[str]) -> psutil.Popen:
        """Starts a process of the cluster, whose log has this name."""
        with (self.folder / f"{name}.log").open("ab") as log:
            return self._popen(command, log)

    def _popen(self, command: list[str], log: IO[bytes]) -> psutil.Popen:
        return psutil.Popen(
            command,
            cwd=self.root,
            env={
                **os.environ,
                "KCM_REDIS_URL": f"unix://{self.proxy.path}",
                "KCM_STATE_DIR": str(self.folder),
                "KCM_LOG_LEVEL": "warning",
                "KCM_SECURE_PORT": "0",
                "PYTHONPATH": str(self.root),
                **self.environment,
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def children(self) -> list[psutil.Process]:
        """Returns the pool's processes of all workers."""
        return [child for child in self._descendants() if "kcm.manager" not in _line(child)]

    def syncing(self) -> list[psutil.Process]:
        """Returns the processes that run syncs: the pool's, or the workers themselves."""
        return self.children() if self.pool == "prefork" else [*self.workers]

    def managers(self) -> list[psutil.Process]:
        """Returns the managers beside the workers."""
        return [child for child in self._descendants() if "kcm.manager" in _line(child)]

    def everybody(self) -> list[psutil.Process]:
        """Returns all processes of workers and beats, and those that they started."""
        parents = [*self.workers, *self.beats]
        return [p for parent in parents if parent.is_running() for p in _family(parent)]

    def _descendants(self) -> Iterator[psutil.Process]:
        for worker in self.workers:
            try:
                yield from worker.children()
            except psutil.NoSuchProcess:
                continue

    def wait_until_saved(self) -> None:
        """Waits until the server has handed all that was written so far to its disk.

        What it has not, `appendfsync everysec` may lose, and no test is about that.
        """
        until(lambda: not self.io.info("persistence")["aof_buffer_length"], "an empty buffer")

    def restart_server(self, number: int = signal.SIGKILL) -> None:
        """Ends the server with a signal, and starts it on what its append-only file holds."""
        assert self.server.process is not None
        self.server.process.send_signal(number)
        self.server.process.wait()
        self.server.start()

    def stop(self) -> None:
        """Kills everything that was started, at once, and removes its files."""
        processes = [*self.workers, *self.beats]
        for process in processes:
            _signal(process, signal.SIGSTOP)  # so that nothing is started any more
        family = [p for parent in processes if parent.is_running() for p in _family(parent)]
        for member in family:
            _signal(member, signal.SIGKILL)
        psutil.wait_procs(family, timeout=10)
        self.proxy.close()
        self.io.close()
        self.server.stop()
        self.node.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- the world

    def faults_of_the_world(self) -> list[str]:
        """Returns what is wrong; nothing when every count is exact and nothing is left over."""
        return [*self.list_faults(), *self.node.faults()]

    def settle(self, within: float = RECOVERY) -> float:
        """Waits until the world is exact; returns the seconds that took.

        Raises AssertionError with what is wrong after `within` seconds.
        """
        started = time.monotonic()
        wrong = ["never looked"]
        while time.monotonic() - started < within:
            self.start()  # as a supervisor would: Celery gives up when Redis refuses its writes
            try:
                wrong = self.faults_of_the_world()
            except errors.NotFound:
                continue  # deleted between two reads
            except errors.Temporary as error:
                wrong = [str(error)]
            if not wrong:
                return time.monotonic() - started
            let_time_pass(0.1, "looking costs the processes that are to settle")
        raise AssertionError(f"not settled within {within:g} s: {wrong}\n{self._log_tails()}")

    def _log_tails(self) -> str:
        tails = []
        for log in sorted(self.folder.glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()[-15:]
            tails.append(f"--- {log.name}\n" + "\n".join(lines))
        return "\n".join(tails)


def _line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""


def _family(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _signal(process: psutil.Process, number: int) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return
