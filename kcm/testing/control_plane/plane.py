"""A whole control plane in the process of a test: API server, controllers, scheduler and nodes.

    with ControlPlane(nodes=3) as control_plane:
        control_plane.apply(MANIFEST)
        control_plane.wait_for("deployment/web", condition="Available")

Any client in any language reaches it by the file `control_plane.kubeconfig`. Controllers run by the
code that `kcm up` runs, in one thread instead of Celery's workers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, get_args

from kcm import errors
from kcm.simulation.options import SimulatorOptions
from kcm.testing.control_plane.assembly import Assembly
from kcm.testing.control_plane.manifests import Json
from kcm.testing.control_plane.objects import Manifest, Objects
from kcm.testing.control_plane.options import BARE, PlaneOptions, serve_anywhere
from kcm.testing.control_plane.patience import conditions_of, name_of
from kcm.testing.control_plane.processes import Processes
from kcm.testing.control_plane.reaching import Reaching
from kcm.testing.control_plane.rest import Rest
from kcm.testing.control_plane.timing import (
    GRACE,
    PATIENCE,
    STEP_TIMEOUT,
    Duration,
    Timekeeper,
    to_seconds,
)
from kcm.testing.faults.failing import Failing
from kcm.testing.faults.nodes import Nodes
from kcm.testing.faults.pods import Pods
from kcm.testing.history.looking import Looking

READY_TIMEOUT = 30.0  # seconds
Mode = Literal["loop", "processes"]


class ControlPlane(Reaching, Looking, Failing):
    """A control plane of its own, from `start` (or `with`) to `stop`.

    Guarantees: no other control plane sees its objects, and no process or file outlives this one's,
    however it ends. With a `seed`, two runs that do the same have the same result, down to each
    resourceVersion. Does not guarantee that two control planes that run in one process at the same
    time keep their custom kinds apart; processes do, such as those of pytest-xdist.
    """

    def __init__(
        self,
        *,
        controllers: Sequence[str] | None = None,
        nodes: int | None = None,
        config: Mapping[str, Any] | None = None,
        flags: Sequence[str] = (),
        seed: int | None = None,
        mode: Mode = "loop",
        grace: Duration = GRACE,
        crds: Manifest = None,
        bare: bool = False,
        storage_class: bool = True,
        programs: bool = False,
    ) -> None:
        """`controllers` are names as `kcm manager --controllers` takes them, by default all;
        `nodes` is the number of simulated nodes, by default one, `config` the content of a
        KubeControllerManagerConfiguration, and `flags` those of `kcm manager`, like
        `--node-monitor-grace-period=10s`. `storage_class` says whether there is the StorageClass
        `local`. With `programs`, simulated containers do what their commands say, as far as that is
        understood: echo, exit, env, cat, sleep and the like.

        With `bare`, it is as in controller-runtime's envtest: an API server without controllers
        and nodes but those that are asked for, without StorageClass, and pods need no service
        account.

        With a `seed`, the clock stands at 2030-01-01 at first, all names and uids are drawn from
        the seed, and controllers work only while the test waits for them: in `settle`,
        `clock.advance`, `clock.to`, `eventually` and `wait_for`.

        `grace` is how long programs outside, such as an operator that watches objects, are to be
        quiet, by the machine's clock, before a wait moves a clock that stands still.

        `crds` are CustomResourceDefinitions that are established when it has started: manifests as
        for `apply`, such as a folder.

        With the mode "processes", the same test runs against `kcm up`: Celery's workers and beat,
        and the machine's time. `clock.advance` then waits as long as it says.
        """
        if mode not in get_args(Mode):
            raise errors.ConfigurationError(
                f"mode={mode!r} is not known: use one of {', '.join(map(repr, get_args(Mode)))}"
            )
        self.bare = bare
        if mode == "processes" and (bare or not storage_class):
            raise errors.ConfigurationError('bare= and storage_class= are for mode="loop"')
        if controllers is None:
            controllers = () if bare else ("*",)
        self._options = PlaneOptions(
            controllers,
            (0 if bare else 1) if nodes is None else nodes,
            config,
            flags,
            seed,
            serve_anywhere(storage_class=storage_class and not bare),
            BARE if bare else {},
            programs,
        )
        engine = Assembly(self._options) if mode == "loop" else Processes(self._options)
        self._engine: Assembly | Processes = engine
        self._recorder = engine.recorder
        self._faults, self._agenda = engine.faults, engine.agenda
        self._find_store = engine.find_store
        self._mark_fault = engine.recorder.mark_fault
        names = SimulatorOptions(count=self._options.nodes).names()
        self.nodes = Nodes(names, engine.find_store, engine.clock)
        self.pods = Pods(engine.find_store, engine.clock)
        self._grace = to_seconds(grace)
        self._crds = crds
        self._objects: Objects | None = None
        self._stopped = False
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
        try:
            if error is None:
                self.check_invariants()
        finally:
            self.stop()

    def start(self) -> None:
        """Starts everything, and returns once nodes are ready. Raises ConfigurationError and
        StoreUnavailable.
        """
        try:
            self._engine.start()
            folder, self.url = self._engine.folder, self._engine.url
            self.token = (folder / "apiserver-token").read_text().strip()
            self._objects = Objects(
                self.url, self.token, folder / "apiserver.crt", self._engine.scheme
            )
            self._wait_ready()
            if self._crds is not None:
                self.install_definitions(self._crds)
        except BaseException:
            self.stop()
            raise

    def _wait_ready(self) -> None:
        count = self._options.nodes

        def is_ready() -> bool:
            nodes = self.objects.list("nodes", None)
            return len(nodes) == count and all(is_usable(node) for node in nodes)

        self.eventually(is_ready, within=READY_TIMEOUT, what=f"{count} ready nodes")

    def stop(self) -> None:
        """Stops everything, and removes all files. May be called again."""
        if self._objects is not None:
            self._objects.close()
        self._engine.stop()
        self._stopped = True

    # --- how to reach it

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of its administrator, for any client."""
        return self._state_dir / "kubeconfig"

    @property
    def _state_dir(self) -> Path:
        return self._started.folder

    @property
    def _started(self) -> Assembly | Processes:
        if self._stopped:
            raise errors.ConfigurationError("the control plane has stopped")
        if self._objects is None:
            raise errors.ConfigurationError(
                "the control plane has not started: use `with ControlPlane() as control_plane:`, "
                "or call start()"
            )
        return self._engine

    @property
    def objects(self) -> Objects:
        """Reads and writes its objects over REST."""
        assert self._started
        assert self._objects is not None
        return self._objects

    def _wait_level(self) -> None:
        self._started.wait_level(to_seconds(STEP_TIMEOUT))

    # --- time

    def outside_watches(self) -> int | None:
        """Returns how many watches programs outside, such as an operator, have open, and None with
        real processes, where it is not known.
        """
        return self._started.outside_watches()

    @property
    def clock(self) -> Timekeeper:
        """The time of the control plane, which a test can stop and move."""
        return self._started.timekeeper

    def settle(self, timeout: Duration = STEP_TIMEOUT, *, quiet: Duration = 0.0) -> Rest:
        """Waits until nothing is left to do now: queues are empty, caches level, nothing is due.

        Returns what is pending, and when. An operator may still have to react to what it was shown:
        with `quiet`, programs outside that watch objects have also neither asked for anything nor
        been shown a change for so long, by the machine's clock. Raises UnsettledError after
        `timeout`, by the machine's clock, with the objects that keep changing.
        """
        rest = self._started.settle(to_seconds(timeout), to_seconds(quiet))
        self.check_invariants()
        return rest

    # --- waiting

    def eventually(
        self,
        holds: Callable[[], object],
        within: Duration = PATIENCE,
        what: str = "",
        *,
        grace: Duration | None = None,
    ) -> None:
        """Waits until `holds` returns a true value. It may raise ApiError, KeyError, IndexError,
        TypeError, AttributeError or AssertionError at what is not there yet.

        `within` is by the control plane's clock. If that stands still, it is moved from one thing
        that is due to the next, but not before programs outside were quiet for `grace`. Raises
        AssertionError afterwards, with what was awaited, the last error, and what the object waits
        for that was looked at last.
        """
        self._looked_at = None

        def look() -> object:
            self.check_invariants()
            return holds()

        patience = self._started.patience(self._grace_of(grace))
        patience.wait_until(look, to_seconds(within), what or name_of(holds), self._explain_wait)

    def _grace_of(self, grace: Duration | None) -> float:
        return self._grace if grace is None else to_seconds(grace)

    def _explain_wait(self) -> str:
        """Returns what the object waits for that was looked at last, "" if it is not known."""
        if self._looked_at is None:
            return ""
        with suppress(errors.KcmError, ValueError):
            explanation = self.explain(*self._looked_at)
            return "; ".join((f"{self._looked_at[0]}: {explanation.state}", *explanation.waits))
        return ""

    def wait_for(
        self,
        name: str,
        *,
        condition: str,
        status: str = "True",
        namespace: str = "default",
        within: Duration = PATIENCE,
        grace: Duration | None = None,
    ) -> Json:
        """Waits until the object `kind/name` has a condition, and returns the object.

        `within` and `grace` are as in `eventually`. Raises AssertionError afterwards, with the
        conditions that it has and what it waits for.
        """

        def look() -> Json:
            self.check_invariants()
            return self.get(name, namespace)

        patience = self._started.patience(self._grace_of(grace))
        wanted = condition, status
        return patience.wait_for(look, wanted, to_seconds(within), name, self._explain_wait)


def is_usable(node: Json) -> bool:
    """Reports whether a node is ready, and without taints."""
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions_of(node))
    return ready and not node.get("spec", {}).get("taints")
