"""A whole control plane in the process of a test: API server, controllers, scheduler and nodes.

    with ControlPlane(nodes=3) as control_plane:
        control_plane.apply(MANIFEST)
        control_plane.wait_for("deployment/web", condition="Available")

Any client in any language reaches it by the file `control_plane.kubeconfig`. Controllers run by the
code that `kcm up` runs, in threads instead of Celery's workers.
"""

from __future__ import annotations

import random
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import click
import yaml

from kcm import errors, logs
from kcm.apiextensions import known
from kcm.apimachinery.durations import parse_duration
from kcm.apiserver import credentials
from kcm.apiserver.token_options import KEY_FILE
from kcm.clock import RealClock
from kcm.component.commandline import parse_flags
from kcm.component.context import ControllerContext, build_context
from kcm.component.options import ManagerOptions
from kcm.manager.manager import Manager
from kcm.settings import Settings
from kcm.simulated.stages import NO_STAGES
from kcm.simulation import process as simulation
from kcm.simulation.options import SimulatorOptions
from kcm.store import Store
from kcm.testing.control_plane.api import ApiThread
from kcm.testing.control_plane.loops import SyncThreads, TickThread
from kcm.testing.control_plane.objects import ApiError, Json, Manifest, Objects
from kcm.testing.control_plane.server import PrivateServer
from kcm.testing.control_plane.simulated import simulator_options
from kcm.testing.faults.agenda import Agenda
from kcm.testing.faults.chaos import KINDS, Chaos
from kcm.testing.faults.deeds import Victims
from kcm.testing.faults.faults import Faults
from kcm.testing.faults.nodes import Nodes
from kcm.testing.faults.pods import Pods

Duration = str | float | timedelta  # "1m30s", seconds, or a timedelta

READY_TIMEOUT = 30.0  # seconds
PATIENCE = "30s"  # how long waits last by default
_BETWEEN_LOOKS = 0.02  # seconds


class ControlPlane:
    """A control plane of its own, from `start` (or `with`) to `stop`.

    Guarantees: no other control plane sees its objects, and no process or file outlives this one's,
    however it ends. Does not guarantee that two control planes that run in one process at the same
    time keep their custom kinds apart; processes do, such as those of pytest-xdist.
    """

    def __init__(
        self,
        *,
        controllers: Sequence[str] = ("*",),
        nodes: int = 1,
        config: Mapping[str, Any] | None = None,
        flags: Sequence[str] = (),
    ) -> None:
        """`controllers` are names as `kcm manager --controllers` takes them, `nodes` the number of
        simulated nodes, `config` the content of a KubeControllerManagerConfiguration, and `flags`
        those of `kcm manager`, like `--node-monitor-grace-period=10s`.
        """
        self._controllers = controllers
        self._nodes = nodes
        self._config = config
        self._flags = flags
        self._ask_to_stop: list[Callable[[], None]] = []
        self._stops: list[Callable[[], None]] = []  # the last one first; these wait
        self._folder: Path | None = None
        self._objects: Objects | None = None
        self._context: ControllerContext | None = None
        clock = RealClock()
        names = SimulatorOptions(count=nodes).names()
        self.faults = Faults(clock, self._newest_version)
        self.nodes = Nodes(names, lambda: self.store, clock)
        self.pods = Pods(lambda: self.store, clock)
        self.agenda = Agenda()
        self.url = ""  # of the API server
        self.token = ""  # of its administrator

    # --- start and stop

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts everything, and returns once nodes are ready. Raises ConfigurationError and
        StoreUnavailable.
        """
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        server = PrivateServer()
        self._stops.append(server.stop)
        server.start()
        self._folder = server.folder
        settings = Settings(redis_url=server.url, state_dir=server.folder)
        options = self._options(server.folder)
        logs.pass_to_standard_loggers()
        self._start_api(settings)
        self._start_controllers(settings, options)
        if self._nodes:
            self._start_nodes(settings, options)
        self._wait_ready()

    def _options(self, folder: Path) -> ManagerOptions:
        """Returns the manager's options, with the keys and certificates of `kcm up`."""
        certificate = credentials.certificate(folder).certificate
        authority = credentials.load_authority(folder)
        own = {
            "cloud-provider": "sim",
            "root-ca-file": certificate,
            "service-account-private-key-file": folder / KEY_FILE,
            "cluster-signing-cert-file": authority.certificate,
            "cluster-signing-key-file": authority.key,
            "controllers": ",".join(self._controllers),
        }
        if self._config is not None:
            with tempfile.NamedTemporaryFile(
                "w", dir=folder, suffix=".yaml", delete=False, encoding="utf-8"
            ) as file:
                yaml.safe_dump(dict(self._config), file)
            own["config"] = file.name
        flags = [f"--{name}={value}" for name, value in own.items()]
        try:
            return ManagerOptions.load(parse_flags([*flags, *self._flags]), environ={})
        except click.ClickException as error:
            raise errors.ConfigurationError(error.format_message()) from error

    def _start_api(self, settings: Settings) -> None:
        api = ApiThread(settings, self.faults.server)
        self._stops.append(lambda: known.learn_all(()))
        self._stops.append(api.stop)
        self._ask_to_stop.append(api.ask_to_stop)
        api.start()
        api.wait_started()
        folder = settings.state_dir
        self.url, self.token = api.url, (folder / "apiserver-token").read_text().strip()
        self._objects = Objects(self.url, self.token, folder / "apiserver.crt")
        self._stops.append(self._objects.close)

    def _start_controllers(self, settings: Settings, options: ManagerOptions) -> None:
        context = build_context(settings, options, kind="manager", name="kcm.testing")
        self._context = context
        manager = Manager(context)
        self._stops.append(manager.stop)
        self._ask_to_stop.append(context.stop.set)
        context.io.attach()
        manager.start()
        for loop in (SyncThreads(context), TickThread(context, self.agenda)):
            threads = loop.start()
            self._stops += [_joiner(thread) for thread in threads]

    def _start_nodes(self, settings: Settings, options: ManagerOptions) -> None:
        stop = threading.Event()
        simulated = simulator_options(self._nodes, options)
        thread = threading.Thread(
            target=simulation.run,
            args=(settings, simulated, NO_STAGES, stop),
            name="kcm-nodes",
            daemon=True,
        )
        thread.start()
        self._stops.append(_joiner(thread))
        self._ask_to_stop.append(stop.set)

    def _wait_ready(self) -> None:
        def is_ready() -> bool:
            nodes = self.objects.list("nodes", None)
            return len(nodes) == self._nodes and all(is_usable(node) for node in nodes)

        self.eventually(is_ready, within=READY_TIMEOUT, what=f"{self._nodes} ready nodes")

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
        if failure is not None:
            raise failure

    # --- how to reach it

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of its administrator, for any client."""
        return self._state_dir / "kubeconfig"

    @property
    def _state_dir(self) -> Path:
        if self._folder is None:
            raise errors.ConfigurationError(
                "the control plane has not started: use `with ControlPlane() as control_plane:`, "
                "or call start()"
            )
        return self._folder

    @property
    def store(self) -> Store:
        """Its store, as its controllers have it."""
        if self._context is None:
            raise errors.ConfigurationError("the control plane has not started: call start()")
        return self._context.store

    def _newest_version(self) -> int:
        return self.store.resource_version()

    @property
    def objects(self) -> Objects:
        """Reads and writes its objects over REST."""
        if self._objects is None:
            raise errors.ConfigurationError("the control plane has not started: call start()")
        return self._objects

    def apply(self, manifest: Manifest, namespace: str = "default") -> list[Json]:
        """Applies an object, YAML text or a YAML file on the server. Raises ApiError."""
        return self.objects.apply(manifest, namespace)

    def get(self, name: str, namespace: str = "default") -> Json:
        """Returns the object `kind/name`, like `deployment/web`. Raises ApiError."""
        return self.objects.get(name, namespace)

    def list(self, kind: str, namespace: str | None = "default", selector: str = "") -> list[Json]:
        """Returns the objects of a kind; with `namespace` None those of all. Raises ApiError."""
        return self.objects.list(kind, namespace, selector)

    def delete(self, name: str, namespace: str = "default") -> None:
        """Deletes the object `kind/name`. Raises ApiError."""
        self.objects.delete(name, namespace)

    # --- failing

    def chaos(
        self,
        seed: int = 1,
        *,
        rate: float = 6.0,
        of: Sequence[str] = KINDS,
        for_: str | None = None,
        namespace: str | None = None,
    ) -> Chaos:
        """Returns a context in which things fail, so many a minute, as the seed has it.

        `of` are the kinds of failures, `for_` is the client whose requests fail (as in
        `faults.api`), and `namespace` that of the pods. Raises ValueError.
        """
        victims = Victims(self.faults, self.nodes, self.pods, lambda: self.store, for_, namespace)
        return Chaos(victims, self.agenda, random.Random(seed), rate=rate, of=of)

    # --- waiting

    def eventually(
        self, holds: Callable[[], object], within: Duration = PATIENCE, what: str = ""
    ) -> None:
        """Waits until `holds` returns a true value. An ApiError counts as false.

        Raises AssertionError after `within`, with what was awaited and the last error.
        """
        seconds = to_seconds(within)
        clock, never = RealClock(), threading.Event()
        deadline = clock.monotonic() + seconds
        last: ApiError | None = None
        while True:
            try:
                if holds():
                    return
                last = None
            except ApiError as error:
                last = error
            if clock.monotonic() > deadline:
                name = what or getattr(holds, "__name__", "the condition")
                why = f": {last}" if last else ""
                raise AssertionError(f"{name} did not hold within {seconds:g} s{why}")
            clock.wait(never, _BETWEEN_LOOKS)

    def wait_for(
        self,
        name: str,
        *,
        condition: str,
        status: str = "True",
        namespace: str = "default",
        within: Duration = PATIENCE,
    ) -> Json:
        """Waits until the object `kind/name` has a condition, and returns the object.

        Raises AssertionError after `within`, with the conditions that it has.
        """
        seen: Json = {}

        def holds() -> bool:
            seen.clear()
            seen.update(self.get(name, namespace))
            return any(
                c.get("type") == condition and c.get("status") == status for c in _conditions(seen)
            )

        try:
            self.eventually(holds, within, f"{condition}={status} of {name}")
        except AssertionError as late:
            had = ", ".join(
                f"{c.get('type')}={c.get('status')} ({c.get('message') or c.get('reason') or ''})"
                for c in _conditions(seen)
            )
            raise AssertionError(f"{late}; its conditions: {had or 'none'}") from None
        return seen


def is_usable(node: Json) -> bool:
    """Reports whether a node is ready, and without taints."""
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in _conditions(node))
    return ready and not node.get("spec", {}).get("taints")


def to_seconds(duration: Duration) -> float:
    """Returns a duration in seconds. Raises ValueError."""
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    return parse_duration(duration).total_seconds() if isinstance(duration, str) else duration


def _conditions(obj: Json) -> list[Json]:
    return (obj.get("status") or {}).get("conditions") or []


def _joiner(thread: threading.Thread) -> Callable[[], None]:
    def join() -> None:
        thread.join(READY_TIMEOUT)

    return join
