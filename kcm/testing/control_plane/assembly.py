"""Builds the parts of a control plane, starts them, and stops them in the right order."""

from __future__ import annotations

import gc
import itertools
import random
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

import click
import structlog
import yaml

from kcm import errors, logs
from kcm.api.scheme import Scheme
from kcm.apiserver import credentials
from kcm.apiserver.auth.token_options import KEY_FILE
from kcm.apiserver.bootstrap.kubernetes_service import list_names
from kcm.apiserver.running import Host
from kcm.clock import RealClock
from kcm.informers.factory import SharedInformerFactory
from kcm.loops import StepHost
from kcm.manager.context.context import ControllerContext, Embedding, build_context
from kcm.manager.manager import Manager
from kcm.options.commandline import parse_flags
from kcm.options.manager import ManagerOptions
from kcm.redisio import RedisIO
from kcm.redisio.embedded import EmbeddedServer
from kcm.settings import Settings
from kcm.simulation.simulator import Simulator
from kcm.store import Store
from kcm.store.resource_metrics.usage import UsageBoard
from kcm.testing.control_plane.api import ApiThread
from kcm.testing.control_plane.clock import PlaneClock
from kcm.testing.control_plane.guard import Guard
from kcm.testing.control_plane.loop import ControlLoop
from kcm.testing.control_plane.options import PlaneOptions, simulator_options
from kcm.testing.control_plane.outside import Outside
from kcm.testing.control_plane.parts import Parts
from kcm.testing.control_plane.patience import LoopPatience
from kcm.testing.control_plane.rest import Rest, UnsettledError
from kcm.testing.control_plane.timing import LoopTime, to_moment
from kcm.testing.faults.agenda import Agenda
from kcm.testing.faults.faults import Faults
from kcm.testing.history.recorder import Recorder

log = structlog.get_logger("kcm.testing")

LEASE_DURATION = 1e10  # seconds: a lease outlasts every step of the clock
START = "2030-01-01T00:00:00Z"  # the time at which the clock stands at first, with a seed
_ALL_EVERY = 20  # stops, after which older generations are searched, too
_MANY_WRITES = 2_000
_STOPS = itertools.count(1)
_MOST_MUTATIONS = 5  # that an error shows
_STATED_PORT = 6443  # as kubeadm's
_READY_TIMEOUT = 30.0  # seconds
_FIRST_REST = 2.0  # seconds of the machine, of which it usually takes 0.06


class StoreServer(Protocol):
    """A Redis-compatible server for one control plane, and a folder for that plane's files."""

    folder: Path

    @property
    def url(self) -> str:
        """The URL by which this machine connects."""

    def launch(self) -> None:
        """Begins to start the server. Raises ConfigurationError."""

    def wait_ready(self) -> None:
        """Waits until the server answers. Raises StoreUnavailable."""

    def stop(self) -> None:
        """Frees what belongs to this control plane."""


class Assembly:
    """The parts of one control plane. `start` may be called once, `stop` again and again."""

    def __init__(self, options: PlaneOptions, server: StoreServer | None = None) -> None:
        """`server` is the store's, by default a private one that goes with this process."""
        self._options = options
        self._server = server
        self.clock = self._clock = PlaneClock(
            to_moment(START) if options.seed is not None else None
        )
        self.scheme = Scheme()  # of the store, for all parts
        self.recorder = Recorder(self._clock, self.scheme)
        self.agenda = Agenda(self._clock.moment)
        self.faults = Faults(
            self._clock,
            lambda: self.find_store().resource_version(),
            self.recorder.mark_fault,
            self.recorder.refused,
            self.scheme,
        )
        self._outside = Outside(self.faults.server.watches)
        self._store: Store | None = None
        self._ask_to_stop: list[Callable[[], None]] = []
        self._stops: list[Callable[[], None]] = []  # the last one first; these wait

    def start(self) -> None:
        """Starts all parts. Raises ConfigurationError and StoreUnavailable."""
        server = self._server or PrivateServer()
        self._stops.append(server.stop)
        server.launch()
        self.folder = server.folder
        settings = Settings(redis_url=server.url, state_dir=server.folder, **self._options.settings)
        self._stops.append(self.recorder.stop)
        self.recorder.start(settings)
        logs.pass_to_standard_loggers()
        hosts = list_names(settings.service_cluster_ip_range)
        if self._options.seed is not None:
            credentials.draw_authorities(server.folder, hosts, self._rng("keys"))
        io = RedisIO(settings, name="kcm-testing")
        self._stops.append(io.close)
        # What needs no server is built while it starts.
        options = self._manager_options(server.folder, hosts)
        self._host = StepHost(self._clock.moment)
        rng = self._rng("controllers")
        store = self._open_store(io, rng)
        embedding = Embedding(self._host, store, rng, LEASE_DURATION)
        context = build_context(
            settings, options, self._clock, kind="manager", name="kcm.testing", embedding=embedding
        )
        manager = Manager(context)
        server.wait_ready()
        io.attach()
        if self._clock.frozen:
            io.set_time(self._clock.moment())
        self._start_api(settings, io)
        self._start_loop(settings, context, manager)
        self.timekeeper = LoopTime(self._clock, self.loop)

    def _rng(self, part: str) -> random.Random:
        """Returns the source of what a part draws, such as names. A seed makes it repeatable."""
        seed = self._options.seed
        return random.SystemRandom() if seed is None else random.Random(f"{seed} {part}")

    def _open_store(self, io: RedisIO, rng: random.Random) -> Store:
        return Store(io, self._clock, rng, scheme=self.scheme, observer=self.recorder)

    def _manager_options(self, folder: Path, hosts: Sequence[str]) -> ManagerOptions:
        """Returns the manager's options, with the keys and certificates of `kcm up`."""
        files = credentials.ensure_manager_files(folder, hosts)
        given = {flag: str(path) for flag, path in files.items()}
        given |= {
            "cloud-provider": "sim",
            "controllers": ",".join(self._options.controllers) or "-*",
        }
        if self._options.config is not None:
            with tempfile.NamedTemporaryFile(
                "w", dir=folder, suffix=".yaml", delete=False, encoding="utf-8"
            ) as file:
                yaml.safe_dump(dict(self._options.config), file)
            given["config"] = file.name
        try:
            if self._options.flags:
                given |= parse_flags(self._options.flags)
            return ManagerOptions.load(given, environ={})
        except click.ClickException as error:
            raise errors.ConfigurationError(error.format_message()) from error

    def _start_api(self, settings: Settings, io: RedisIO) -> None:
        # With a seed, objects say the same port in each run.
        port = 0 if self._options.seed is None else _STATED_PORT
        host = Host(
            on_changes=self._wake,
            clock=self._clock,
            rng=self._rng("api"),
            scheme=self.scheme,
            observer=self.recorder,
            stated_port=port,
        )
        self.api = ApiThread(settings, host, replace(self._options.api, faults=self.faults.server))
        self._stops.append(lambda: self.api.stop(io.end_blocking_reads))
        self._ask_to_stop.append(self.api.ask_to_stop)
        self.api.start()
        self.api.wait_started()
        # Whoever reads the objects that the server creates at its start finds all of them.
        self.api.wait_level(_READY_TIMEOUT)

    def _wake(self) -> None:
        if hasattr(self, "loop"):
            self.loop.wake()

    def _start_loop(self, settings: Settings, context: ControllerContext, manager: Manager) -> None:
        """Starts the loop, and lets it do what every control plane does at first."""
        nodes = None
        if self._options.nodes:
            links = RedisIO(settings, name="kcm-nodes-testing")
            self._stops.append(links.close)
            links.attach()
            nodes = Simulator(
                self._open_store(links, self._rng("nodes")),
                simulator_options(self._options, context.options, self.folder / KEY_FILE),
                self._clock,
                recorder=context.recorder,
                board=UsageBoard(links),
            )
        self._store = context.store
        parts = Parts(
            context, manager, nodes=nodes, clock=self._clock, agenda=self.agenda, host=self._host
        )
        waits = self._options.seed is not None
        self.loop = ControlLoop(parts, self._clock, context.io, self.api.wait_level, waits=waits)
        self._stops.append(partial(_stop_manager, manager))
        manager.start()
        parts.run()
        self.loop.start()
        self._stops.append(partial(_refuse_mutations, context.caches.factory))
        self._stops.append(self.loop.stop)
        self._ask_to_stop += [context.stop.set, self.loop.ask_to_stop]
        if not waits:  # else it works once somebody waits
            with suppress(UnsettledError):  # what never rests is for the test to find
                self.loop.settle(_FIRST_REST)

    def find_store(self) -> Store:
        """Returns the store, as controllers have it. Raises ConfigurationError before the start."""
        if self._store is None:
            raise errors.ConfigurationError("the control plane does not run: call start() first")
        return self._store

    @property
    def url(self) -> str:
        """The URL of the API server."""
        return self.api.url

    def wait_level(self, timeout: float) -> None:
        """Waits until the API server has every write."""
        self.api.wait_level(timeout)

    def outside_watches(self) -> int:
        """Returns how many watches other programs have open."""
        return len(self._outside.watches())

    def settle(self, timeout: float, quiet: float = 0.0) -> Rest:
        """Waits until nothing is left to do now, and other programs were quiet for so many
        seconds. Raises UnsettledError.
        """
        return self.patience(quiet).settle(timeout)

    def patience(self, grace: float) -> LoopPatience:
        """Returns what waits for conditions, by the control plane's clock."""
        return LoopPatience(self.loop, self._clock, self._outside, grace)

    def _forget(self) -> None:
        """Frees the memory of what has stopped.

        The parts refer to each other, and the collector runs rarely (see kcm.interpreter): without
        this, a process that starts one control plane after the other grows by 3 MiB with each. The
        youngest generations have nearly everything of it, and are searched in 5 ms instead of 80;
        what lived through many writes is in the oldest.
        """
        for part in ("api", "loop", "timekeeper"):
            vars(self).pop(part, None)
        self._store = None
        everything = next(_STOPS) % _ALL_EVERY == 0 or self.recorder.journal.newest > _MANY_WRITES
        gc.collect(2 if everything else 1)

    def stop(self) -> None:
        """Stops everything, and removes all files. May be called again."""
        failure: Exception | None = None
        while self._ask_to_stop:
            self._ask_to_stop.pop()()
        while self._stops:
            try:
                self._stops.pop()()
            except Exception as error:  # noqa: BLE001 - the rest is stopped first
                failure = failure or error
        self._forget()
        if failure is not None:
            raise failure


def _stop_manager(manager: Manager) -> None:
    """Stops the manager and closes the connections."""
    try:
        manager.stop()
    except errors.Temporary as error:
        log.debug("the store is gone already", error=str(error))


def _refuse_mutations(caches: SharedInformerFactory) -> None:
    """Raises AssertionError if a controller has changed a cached object."""
    mutations = caches.check_mutations()
    if mutations:
        shown = "; ".join(map(str, mutations[:_MOST_MUTATIONS]))
        raise AssertionError(f"{shown}. Cached objects are shared: use replace()")


# --- The private server of a control plane: it dies with the process that started it.


class PrivateServer:
    """An embedded server in a temporary folder, without a port.

    Guarantees: server and folder go when the process ends, also if it is killed.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kcm-"))
        # Nothing outlives a test, so nothing waits for the disk.
        self._server = EmbeddedServer(self.folder, extra=("--appendfsync", "no"))
        self._guard: Guard | None = None

    @property
    def url(self) -> str:
        """The URL by which this machine connects."""
        return self._server.url

    def launch(self) -> None:
        """Begins to start the server, which takes some tens of milliseconds. Raises
        ConfigurationError.
        """
        self._server.launch()
        assert self._server.process is not None
        self._guard = Guard(self._server.process.pid, self.folder)

    def wait_ready(self) -> None:
        """Waits until the server answers. Raises StoreUnavailable."""
        self._server.wait_ready(RealClock())

    def stop(self) -> None:
        """Stops the server, and removes its folder."""
        if self._server.process is not None:
            self._server.process.kill()  # nothing of it is kept, so it need not save anything
        self._server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._guard is not None:
            self._guard.dismiss()
            self._guard = None
