"""A control plane of real processes: `kcm up`, with Celery's workers and beat.

It is for tests that are to run against Celery as well. It takes seconds to start, and the time is
the machine's.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import yaml

from kcm import errors
from kcm.api.scheme import Scheme
from kcm.clock import RealClock
from kcm.coordination.workqueue.queue import read_stats
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.testing.control_plane.guard import Guard
from kcm.testing.control_plane.options import PlaneOptions
from kcm.testing.control_plane.patience import Patience
from kcm.testing.control_plane.rest import Rest, UnsettledError
from kcm.testing.control_plane.timing import RealTime
from kcm.testing.faults.agenda import Agenda
from kcm.testing.history.recorder import Recorder

_READY = "Ctrl-C stops it all"  # in what `kcm up` prints last
_START_TIMEOUT = 60.0  # seconds
_STOP_TIMEOUT = 20.0  # seconds
_BETWEEN_LOOKS = 0.05  # seconds
_QUIET = 0.5  # seconds without work and changes, after which nothing is left to do
_BEATING = frozenset({"leases.coordination.k8s.io", "nodes", "events"})  # what changes all the time


class Processes:
    """`kcm up` as a child process, without the node of this machine."""

    def __init__(self, options: PlaneOptions) -> None:
        if options.seed is not None:
            raise errors.ConfigurationError(
                'a seed is for mode="loop": the order in which processes work cannot be repeated'
            )
        self._options = options
        self.clock = self._clock = RealClock()
        self.faults = None  # the API server is in another process
        self.agenda = Agenda(time.time)  # whose turns nobody takes
        self._never = threading.Event()
        self.folder = Path()
        self.url = ""
        self.timekeeper = RealTime(self._clock, self.settle)
        self.scheme = Scheme()  # of the store, as far as the test has asked for its kinds
        self.recorder = Recorder(self._clock, self.scheme)
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: Guard | None = None
        self._io: RedisIO | None = None

    def start(self) -> None:
        """Starts the processes, and returns once they are ready. Raises StoreUnavailable."""
        self.folder = Path(tempfile.mkdtemp(prefix="kcm-"))
        log = self.folder / "up.log"
        kept = {name: v for name, v in os.environ.items() if not name.startswith("KCM_")}
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                self._command(),
                env={**kept, "KCM_STATE_DIR": str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._guard = Guard(self._process.pid, self.folder, "TERM")
        deadline = self._clock.monotonic() + _START_TIMEOUT
        while _READY not in (text := log.read_text(errors="replace")):
            if self._process.poll() is not None or self._clock.monotonic() > deadline:
                raise errors.StoreUnavailable(f"kcm up did not start:\n{text}")
            self._clock.wait(self._never, _BETWEEN_LOOKS)
        self.url = _server_of(self.folder / "kubeconfig")
        settings = Settings(state_dir=self.folder)
        self.recorder.start(settings)
        self._io = RedisIO(settings)
        self._io.attach()

    def _command(self) -> list[str]:
        options = self._options
        manager = list(options.flags)
        if tuple(options.controllers) != ("*",):
            manager.append(f"--controllers={','.join(options.controllers)}")
        if options.config is not None:
            file = self.folder / "manager.yaml"
            file.write_text(yaml.safe_dump(dict(options.config)))
            manager.append(f"--config={file}")
        ports = ("--flower-port=0", "--health-port=0", f"--api-port={_find_free_port()}")
        up = ["up", "--no-kubelet", f"--nodes={options.nodes}", *ports]
        up += ["--nodes-programs"] if options.programs else []
        return [sys.executable, "-m", "kcm.cli.main", *up, "--", *manager]

    def settle(self, timeout: float, quiet: float = 0.0) -> Rest:
        """Waits until no key waits or is synced and no object changes, for half a second at
        least.
        """
        store, deadline = self.find_store(), self._clock.monotonic() + timeout
        seen: Any = None
        since = self._clock.monotonic()
        while self._clock.monotonic() - since < max(_QUIET, quiet):
            kinds = [kind for kind in self.scheme.resources() if kind.name not in _BEATING]
            queues = read_stats(store.io)
            busy = [queue.name for queue in queues if queue.depth or queue.running]
            now = (busy, store.last_rvs(kinds))
            if busy or now != seen:
                seen, since = now, self._clock.monotonic()
            if self._clock.monotonic() > deadline:
                raise UnsettledError(
                    f"the processes did not come to rest within {timeout:g} s; queues with work: "
                    f"{', '.join(busy) or 'none, but objects change'}"
                )
            self._clock.wait(self._never, _BETWEEN_LOOKS)
        return Rest(self._clock.now())

    def wait_level(self, timeout: float) -> None:
        """Does nothing: how far the API server is, is known to its own process only."""

    def outside_watches(self) -> None:
        """Returns None: the API server, which would know, is in another process."""

    def find_store(self) -> Store:
        """Returns the store. Raises ConfigurationError before the start."""
        if self._io is None:
            raise errors.ConfigurationError("the control plane has not started: call start()")
        return Store(self._io, scheme=self.scheme, observer=self.recorder)

    def patience(self, grace: float) -> Patience:
        """Returns what waits for conditions, by the machine's clock, which nothing moves."""
        return Patience(self._clock)

    def stop(self) -> None:
        """Stops the processes, and removes the folder. May be called again."""
        self.recorder.stop()
        if self._io is not None:
            self._io.close()
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._guard is not None:
            self._guard.dismiss()
            self._guard = None
            shutil.rmtree(self.folder, ignore_errors=True)


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _server_of(kubeconfig: Path) -> str:
    """Returns the URL of the API server in a kubeconfig."""
    config = yaml.safe_load(kubeconfig.read_text())
    return str(config["clusters"][0]["cluster"]["server"])
