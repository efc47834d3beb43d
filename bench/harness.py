"""The environment of measurements: a private Redis server, a store and real processes.

Guarantees: everything happens in a temporary folder. An installed or running kcm is not affected.
Every process that was started is killed at the end, even after an error.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from bench.stamps import STAMP_FILE, StampReader
from kcm.redisio import RedisIO
from kcm.redisio.embedded import EmbeddedServer
from kcm.settings import Settings
from kcm.store import Store

ROOT = Path(__file__).resolve().parent.parent
POOLS = ("prefork", "threads", "solo")

_ENTRY_POINTS = "[kcm.controllers]\nbenchnoop = bench.programs.noop_controller:NoopController\n"


@dataclass(frozen=True)
class Sizes:
    """How much is measured: numbers of objects, rounds and seconds."""

    rounds: int = 5
    batch_pods: tuple[int, ...] = (1_000, 10_000)
    single_creates: int = 500
    watch_rate: int = 1_000  # writes a second
    watch_seconds: float = 5.0
    queue_keys: int = 5_000
    queue_rounds: int = 3
    latency_samples: int = 100
    replicas: tuple[int, ...] = (1_000, 10_000)
    replica_rounds: tuple[int, ...] = (5, 3)
    replacements: int = 50
    rolled_pods: int = 100
    job_pods: tuple[int, int] = (200, 20)  # completions, parallelism
    many_sets: int = 500
    namespace_objects: int = 5_000
    cached_objects: int = 10_000
    scheduled_nodes: int = 1_000
    scheduled_pods: int = 1_000
    growth_nodes: tuple[int, int] = (500, 5_000)
    running_pods: int = 30
    many_nodes: int = 5_000
    pods_per_node: int = 10
    detected_nodes: int = 1_000
    node_pods: int = 100
    steady_seconds: float = 40.0
    api_requests: int = 500
    api_listed: int = 1_000
    api_watchers: int = 200
    definitions: int = 400
    definition_rounds: int = 5
    api_watch_rate: int = 50  # writes a second
    rest_rounds: int = 3
    rest_writes: int = 1_000  # of each verb
    growth_pods: tuple[int, ...] = (1_000, 10_000, 100_000)
    growth_rounds: tuple[int, ...] = (3, 3, 1)
    pool_children: tuple[int, ...] = (1, 2, 4)
    policies: int = 100
    settled_pods: int = 1_000
    testing_rounds: int = 3
    starts: int = 3
    idle_seconds: float = 20.0
    settle_seconds: float = 3.0  # until processes and objects are at rest after a change


QUICK = Sizes(
    rounds=2,
    batch_pods=(100,),
    single_creates=20,
    watch_seconds=0.3,
    watch_rate=200,
    queue_keys=100,
    queue_rounds=1,
    latency_samples=5,
    replicas=(50,),
    replica_rounds=(1,),
    replacements=3,
    rolled_pods=8,
    job_pods=(10, 3),
    many_sets=10,
    namespace_objects=50,
    cached_objects=200,
    scheduled_nodes=20,
    scheduled_pods=40,
    growth_nodes=(5, 20),
    running_pods=3,
    many_nodes=20,
    pods_per_node=2,
    detected_nodes=20,
    node_pods=3,
    steady_seconds=1.0,
    api_requests=20,
    api_listed=50,
    api_watchers=5,
    definitions=10,
    definition_rounds=2,
    rest_rounds=1,
    rest_writes=100,
    growth_pods=(10, 40, 100),
    growth_rounds=(1, 1, 1),
    pool_children=(1, 2),
    policies=5,
    settled_pods=20,
    testing_rounds=1,
    starts=1,
    idle_seconds=1.0,
    settle_seconds=0.3,
)


class TooSlowError(Exception):
    """A condition did not hold in time."""


def progress(message: str) -> None:
    """Prints on stderr what is being measured."""
    print(f"bench: {message}", file=sys.stderr, flush=True)  # noqa: T201 - the program's output


def wait_for(
    condition: Callable[[], bool], what: str, timeout: float = 60.0, every: float = 0.01
) -> None:
    """Waits until `condition` holds. Raises TooSlowError with `what` after `timeout` seconds.

    The condition is checked each `every` seconds.
    """
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise TooSlowError(f"{what} did not happen within {timeout:g} s")
        time.sleep(every)


def free_port() -> int:
    """Returns a TCP port of the loopback address that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Bench:
    """The Redis server, the store and the processes of one measurement.

    Use it as a context manager.
    """

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.folder = Path(tempfile.mkdtemp(prefix="kcm-bench-"))
        self.server = EmbeddedServer(self.folder)
        self.settings = Settings(redis_url=self.server.url, state_dir=self.folder)
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Bench:
        try:
            self.server.start()
            self._publish_noop_controller()
            self.io = RedisIO(self.settings)
            self.io.attach()
            self.store = Store(self.io)
        except BaseException:
            self._clean_up()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is not None:
                progress(f"failed; the end of the processes' logs:\n{self._read_logs()}")
        finally:
            self._clean_up()

    def _clean_up(self) -> None:
        self.stop(*self.processes)
        self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _read_logs(self) -> str:
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"--- {log.name}\n{log.read_text()[-2000:]}" for log in logs)

    def _publish_noop_controller(self) -> None:
        """Publishes the no-op controller by an entry point on the path, as a package would."""
        package = self.folder / "plugins" / "kcm_bench-1.dist-info"
        package.mkdir(parents=True)
        (package / "METADATA").write_text("Metadata-Version: 2.1\nName: kcm-bench\nVersion: 1\n")
        (package / "entry_points.txt").write_text(_ENTRY_POINTS)

    # --- processes

    def environment(self, stamps: Path | None = None) -> dict[str, str]:
        """Returns the environment of the processes, with this server's settings only."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith("KCM_")}
        kept["PYTHONPATH"] = os.pathsep.join([str(self.folder / "plugins"), str(ROOT)])
        kept["KCM_REDIS_URL"] = self.server.url
        kept["KCM_STATE_DIR"] = str(self.folder)
        kept["KCM_LOG_LEVEL"] = "warning"
        kept["KCM_CONTROLLERS"] = "*,-default-scheduler"  # only rows about it start it
        if stamps is not None:
            kept[STAMP_FILE] = str(stamps)
        return kept

    def spawn(
        self,
        name: str,
        arguments: Sequence[str],
        stamps: Path | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Starts `python ARGUMENTS` in its own process group, with its output in `NAME.log`.

        `stamps` is a stamp file for it, `extra` are more environment variables.
        """
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=ROOT,
                env={**self.environment(stamps), **(extra or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def kcm_worker(
        self, pool: str, stamps: Path | None = None, extra: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Starts a worker with its manager, as in production.

        `extra` are more environment variables.
        """
        return self.spawn(f"kcm-{pool}", celery_worker("workers", pool), stamps, extra)

    def raw_worker(self, pool: str, stamps: Path) -> subprocess.Popen[bytes]:
        """Starts a worker of a Celery app that only has a no-op task."""
        return self.spawn(f"raw-{pool}", celery_worker("bench.programs.raw_app", pool), stamps)

    def beat(self, extra: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        arguments = ["-m", "celery", "-A", "workers", "beat", "-l", "WARNING"]
        return self.spawn("beat", arguments, extra=extra)

    def stamps(self, name: str) -> StampReader:
        """Returns a reader of a new stamp file, which processes that start later can write."""
        return StampReader(self.folder / f"{name}.stamps")

    def stop(self, *processes: subprocess.Popen[bytes]) -> None:
        """Kills these processes and all that they have started."""
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.processes = [process for process in self.processes if process not in processes]


def celery_worker(app: str, pool: str) -> list[str]:
    """Returns the command line of a worker, which is the same for kcm and the baseline."""
    concurrency = [] if pool == "solo" else ["-c", "2"]
    return [
        *("-m", "celery", "-A", app, "worker", "-P", pool, *concurrency, "-E"),
        *("--without-mingle", "--without-gossip", "-l", "WARNING", "-n", f"{app}-{pool}@bench"),
    ]
