"""The agent: a node's kubelet, put together, in one process of threads. It knows no Celery.

    config sources ─┐
    PLEG ───────────┤                      ┌─ pod workers ── syncer ── runtime
    probes ─────────┼─ sync loop ─ handlers┤
    tickers ────────┘                      └─ clean-up
    status manager, node keeper, Events: each in a thread of its own, towards the store

Guarantees: nothing but those last three waits for the store; stopping the agent stops
no container. Does not guarantee that two agents of one node do not fight: one at a
time uses a root folder.

Where others plug in: `prober` (prober/interface.py; results through `channel`),
`admit_handlers`, `conditions` of the node, `runtime_state.add_check`, `threads`.

Source: NewMainKubelet and Run in pkg/kubelet/kubelet.go, Kubernetes 1.33.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import IO, Protocol

import structlog

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.apimachinery.quantity import Quantity
from kcm.clock import Clock, RealClock
from kcm.informers.source import ListerWatcher
from kcm.kubelet.channels import Channel, Channels
from kcm.kubelet.config.api import ApiSource
from kcm.kubelet.config.file import FileSource
from kcm.kubelet.config.http import HttpSource
from kcm.kubelet.config.podconfig import PodConfig, SourcesReady
from kcm.kubelet.cri import Runtime
from kcm.kubelet.environment.lookups import Place
from kcm.kubelet.environment.store_lookups import StoreLookups
from kcm.kubelet.kuberuntime.actions import Health
from kcm.kubelet.kuberuntime.backoff import Backoff
from kcm.kubelet.kuberuntime.images import ImageManager, ImageService
from kcm.kubelet.kuberuntime.manager import RuntimeManager
from kcm.kubelet.loop import syncloop
from kcm.kubelet.loop.cleanup import Cleanup
from kcm.kubelet.loop.handlers import Handlers
from kcm.kubelet.loop.pleg import GenericPLEG
from kcm.kubelet.loop.runtime_state import RuntimeState
from kcm.kubelet.metrics import Metrics
from kcm.kubelet.node.keeper import Conditions, NodeKeeper, Report, no_pressure
from kcm.kubelet.node.objects import Machine, machine
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.pod_workers.pod_cache import PodCache
from kcm.kubelet.pod_workers.pod_workers import PodWorkers
from kcm.kubelet.pod_workers.syncer import Means, Syncer
from kcm.kubelet.pods.mirror_client import MirrorClient
from kcm.kubelet.pods.pod_manager import PodManager
from kcm.kubelet.prober.interface import NoProber, Prober
from kcm.kubelet.recorder import Recorder, Sink
from kcm.kubelet.runtime.ending import end_containers
from kcm.kubelet.status.manager import StatusManager
from kcm.kubelet.types import API, FILE, HTTP
from kcm.kubelet.volumes.volumes import Volumes
from kcm.store.objects import ObjectStore

log = structlog.get_logger("kcm.kubelet")

Work = Callable[[threading.Event], None]
MACHINE_EVERY = 10.0  # seconds for which one look at the machine is good


class KubeletStore(ObjectStore, ListerWatcher, Protocol):
    """What the kubelet asks of a store: the local one has it, and the remote one."""


@dataclass
class Stores:
    """One store per kind of caller: who waits for one does not hold up the others."""

    main: KubeletStore  # lookups, mirrors
    watch: KubeletStore
    status: KubeletStore
    node: KubeletStore


@dataclass
class Plugs:
    """What may be given to an agent, instead of what it has by itself."""

    prober: Callable[[Agent], Prober] = lambda _: NoProber()
    conditions: Conditions = no_pressure
    faults: Callable[[], Sequence[str]] = list  # why the node is not ready, beside its runtime
    reserved: Mapping[str, Quantity] = field(default_factory=dict)
    # Tells a worker elsewhere that a pod (its uid) waits; without it the agent works alone.
    wake: Callable[[str], None] | None = None
    events: Sink | None = None
    images: ImageService | None = None  # of a runtime that has any


class Agent:
    """See the module."""

    def __init__(
        self,
        options: KubeletOptions,
        stores: Stores,
        runtime: Runtime,
        *,
        plugs: Plugs | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises ConfigurationError when another kubelet uses the root folder."""
        self.options = options
        self.runtime = runtime
        self.clock: Clock = clock or RealClock()
        self._lock_file = hold_root(options)
        self._plugs = plugs or Plugs()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._later = ThreadPoolExecutor(2, thread_name_prefix="kcm-later")
        self.channels = Channels(self.clock)
        self.metrics = Metrics()
        self.recorder = Recorder(self._plugs.events, options.node_name)
        self.pods = PodManager()
        self.cache = PodCache()
        self.runtime_state = RuntimeState(runtime, self.clock)
        self.config = PodConfig(self.channel(syncloop.CONFIG), self.clock)
        self.lookups = StoreLookups(stores.main, self.clock)
        self.volumes = Volumes(options.pods_dir, options.allowed_host_paths)
        self.node = NodeKeeper(stores.node, options, self._report(), self.recorder, self.clock)
        self.statuses = StatusManager(stores.status, self.pods, self.clock)
        self.mirrors = MirrorClient(stores.main, self.node.registered)
        self._assemble()
        self.work: list[tuple[str, Work]] = self._works(stores)

    def _assemble(self) -> None:
        """What knows each other."""
        options, clock, service = self.options, self.clock, self._plugs.images
        images = ImageManager(service, self.recorder, clock) if service is not None else None
        self.manager = RuntimeManager(
            self.runtime,
            recorder=self.recorder,
            volumes=self.volumes,
            lookups=self.lookups,
            logs=options.logs_dir,
            clock=clock,
            place=self._place,
            backoff=Backoff(clock, options.crash_loop_initial, options.crash_loop_longest),
            images=images,
        )
        self.pleg = GenericPLEG(
            self.manager, self.cache, self.channel(syncloop.PLEG, 1000), clock, self.metrics
        )
        self.prober = self._plugs.prober(self)
        self.manager.health = Health(self.prober.liveness, self.prober.startup)
        means = Means(
            self.manager, self.statuses, self.volumes, self.lookups, self.mirrors, self.prober,
            self.recorder, clock, self._place, lambda: (options.node_ip,), self.pleg.request,
        )  # fmt: skip
        self.syncer = Syncer(means)
        self.workers = PodWorkers(
            self.syncer,
            self.cache,
            self.recorder,
            clock,
            metrics=self.metrics,
            wake=self._plugs.wake,
            resync_interval=options.sync_frequency,
            back_off_period=options.back_off_period,
        )
        self.statuses.containers_may_run = self.workers.could_have_running_containers
        self.handlers = self._handlers()
        self.sync_loop = syncloop.SyncLoop(
            self.channels,
            self.handlers,
            self.pods,
            SourcesReady(self.config),
            state=self.runtime_state,
            clock=clock,
            set_container=lambda uid, container, what, value: self.statuses.set_container(
                uid, container, **{what: value}
            ),
        )
        self.ticker = syncloop.Ticker(self.channels, clock)
        self.runtime_state.add_check("PLEG", self.pleg.healthy)

    def _handlers(self) -> Handlers:
        cleanup = Cleanup(
            pods=self.pods,
            workers=self.workers,
            statuses=self.statuses,
            manager=self.manager,
            prober=self.prober,
            volumes=self.volumes,
            mirrors=self.mirrors,
            reasons=self.syncer.reasons,
            clock=self.clock,
            later=self._do_later,
        )
        return Handlers(
            pods=self.pods,
            workers=self.workers,
            statuses=self.statuses,
            cache=self.cache,
            manager=self.manager,
            cleanup=cleanup,
            recorder=self.recorder,
            metrics=self.metrics,
            clock=self.clock,
            node=lambda: self.node.node,
            lookups=self.lookups,
        )

    def _works(self, stores: Stores) -> list[tuple[str, Work]]:
        """The threads, in the order of their start."""
        return [
            ("runtime", self.runtime_state.run),
            ("pleg", self.pleg.run),
            ("status", self.statuses.run),
            ("node", self.node.run),
            ("workers", self.workers.threads.run_own),
            *self._sources(stores),
            ("ticker", self.ticker.run),
            ("syncloop", self.sync_loop.run),
        ]

    def _sources(self, stores: Stores) -> list[tuple[str, Work]]:
        options, config, clock, node = self.options, self.config, self.clock, self.options.node_name
        found: list[tuple[str, Work]] = []
        if options.pod_manifest_path is not None:
            files = FileSource(
                options.pod_manifest_path,
                node,
                config.source(FILE),
                clock,
                frequency=options.file_check_frequency,
                complain=self._complain,
            )
            found.append((FILE, files.run))
        if options.manifest_url:
            url = HttpSource(
                options.manifest_url,
                node,
                config.source(HTTP),
                clock,
                frequency=options.http_check_frequency,
                headers=options.manifest_url_headers,
            )
            found.append((HTTP, url.run))
        api = ApiSource(stores.watch, node, config.source(API), clock)
        return [*found, (API, api.run)]

    # --- its life

    def start(self) -> None:
        """Start all threads."""
        self.runtime_state.update()
        for name, work in self.work:
            thread = threading.Thread(
                target=work, args=(self._stop,), name=f"kcm-{name}", daemon=True
            )
            thread.start()
            self._threads.append(thread)

    def stop(self, timeout: float = 5.0) -> None:
        """Stop all threads; containers run on, unless the options say otherwise."""
        self._stop.set()
        self.channels.close()
        self.cache.stop()
        self.statuses.wake()
        self.node.report_soon()
        self.pleg.request()
        until = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))
        self._later.shutdown(wait=False, cancel_futures=True)
        if self.options.end_containers:
            end_containers(self.runtime)
        self._lock_file.close()

    def wait(self) -> None:
        """Until it is stopped."""
        self._stop.wait()

    def healthy(self) -> str:
        """ "" or what is wrong; behind /healthz."""
        return self.sync_loop.healthy()

    # --- for others

    def channel(self, name: str, capacity: int = 0) -> Channel:
        """A channel of the sync loop: `liveness`, `readiness` and `startup` take prober Updates."""
        return self.channels.channel(name, capacity)

    def sync_pod(self, uid: str) -> bool:
        """Do a waiting pod's work in this thread; False if there was none. See `WorkThreads`."""
        return self.workers.threads.run(uid)

    def housekeeping(self) -> None:
        """It is time to clean up."""
        self.ticker.housekeeping()

    def pod_named(self, uid: str) -> Pod | None:
        return self.pods.by_uid(uid)

    # --- parts

    def _place(self, pod_ips: tuple[str, ...]) -> Place:
        allocatable = self.node.node.status.allocatable or {}
        return Place(pod_ips, (self.options.node_ip,), allocatable)

    def _report(self) -> Report:
        version = self.runtime.version()
        seen: list[tuple[float, Machine]] = []

        def look() -> Machine:
            now = self.clock.monotonic()
            if not seen or now - seen[0][0] > MACHINE_EVERY:
                found = machine(self.options.root_dir, f"{version.name}://{version.version}")
                seen[:] = [(now, found)]
            return seen[0][1]

        def faults() -> list[str]:
            return [*self.runtime_state.errors(), *self._plugs.faults()]

        return Report(look, faults, self._plugs.conditions, self._plugs.reserved)

    def _complain(self, file: str, words: str) -> None:
        self.recorder.of_node("Warning", "InvalidManifest", f"{file}: {words}")

    def _do_later(self, work: Callable[[], None]) -> None:
        def contained() -> None:
            try:
                work()
            except errors.KcmError as error:
                log.warning("clean-up goes on next time", error=str(error))

        if not self._stop.is_set():
            self._later.submit(contained)


def hold_root(options: KubeletOptions) -> IO[str]:
    """Hold the root folder until the file is closed. Raises ConfigurationError."""
    options.root_dir.mkdir(parents=True, exist_ok=True, mode=0o711)
    file = (options.root_dir / "kubelet.lock").open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise errors.ConfigurationError(
            f"another kubelet uses {options.root_dir}; --root-dir names another folder"
        ) from None
    os.set_inheritable(file.fileno(), False)
    return file
