"""The controller context: what all controllers of a process share.

Building it opens no connection and starts no thread; `start` does. Source: CreateControllerContext
in cmd/kube-controller-manager/app/controllermanager.go, Kubernetes 1.33.
"""

from __future__ import annotations

import os
import random
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from kcm import errors
from kcm.api.scheme import Resource
from kcm.clock import Clock, RealClock
from kcm.cloudprovider.caller import CloudCaller
from kcm.cloudprovider.discovery import ProviderSettings, create_provider
from kcm.component.admission import NOBODY, CachedAdmissionRules
from kcm.component.clients import Client, ClientBuilder
from kcm.component.discovery import Discovery
from kcm.component.observing import CountingObserver
from kcm.component.options import ManagerOptions
from kcm.component.selection import Selection, select
from kcm.coordination import new_holder
from kcm.coordination.lease import DURATION
from kcm.coordination.presence import Member, Presence
from kcm.informers.factory import SharedInformerFactory
from kcm.informers.level import LevelSource
from kcm.informers.options import InformerOptions
from kcm.informers.source import ListerWatcher
from kcm.interpreter import tune
from kcm.reconcile.caches import Caches, list_declared_models
from kcm.reconcile.consistency import KEPT, Consistency, ExpectedChanges, FreshCaches
from kcm.reconcile.contract import Controller
from kcm.reconcile.events import EventRecorder
from kcm.reconcile.expectations import ControllerExpectations
from kcm.reconcile.metrics import SyncMetrics
from kcm.reconcile.runner import FRESHNESS_TIMEOUT, Runner
from kcm.redisio import RedisIO
from kcm.redisio.checks import check_server
from kcm.settings import Settings
from kcm.store import Store
from kcm.store.definitions import Definitions
from kcm.store.objects import ObjectStore
from kcm.store.remote.kubeconfig import load as load_kubeconfig
from kcm.workqueue import Renewer, WorkQueue

if TYPE_CHECKING:
    from kcm.store.remote.store import RemoteStore

log = structlog.get_logger("kcm.manager")

STORE_TIMEOUT = 10.0  # seconds, as upstream waits for the API server
STOP_TIMEOUT = 2.0  # seconds to wait for each thread to end


class LoopMode(StrEnum):
    """Which of the core and cloud controllers run in this process."""

    INCLUDE_CLOUD_LOOPS = "IncludeCloudLoops"  # with --cloud-provider
    EXTERNAL_LOOPS = "ExternalLoops"


@dataclass(frozen=True)
class Stepped:
    """Makes a context whose owner calls every part itself: it starts no thread.

    All clients share `io`. Everything random is drawn from `rng`.
    """

    io: RedisIO
    rng: random.Random


# A lease of a stepped context outlasts every step that its clock makes.
STEPPED_DURATION = 1e10  # seconds


@dataclass
class ControllerContext:
    """The settings, clients, caches and threads that the controllers of one process share."""

    settings: Settings
    options: ManagerOptions
    selection: Selection
    discovery: Discovery
    clients: ClientBuilder
    io: RedisIO
    store: Store
    objects: Store | RemoteStore  # the store that controllers work on
    caches: Caches
    observer: CountingObserver
    renewer: Renewer
    recorder: EventRecorder
    metrics: SyncMetrics
    clock: Clock
    cloud: CloudCaller | None  # None without --cloud-provider
    identity: str
    member: Member
    loop_mode: LoopMode = LoopMode.EXTERNAL_LOOPS
    # which writes go through the API server, None if none do
    admission: CachedAdmissionRules | None = None
    threaded: bool = True  # False if the owner calls every part itself, see `Stepped`
    stop: threading.Event = field(default_factory=threading.Event)
    # Set once the informers of all controllers were requested and started. Before that, no
    # controller may start informers of its own. After that, `start_informers` starts those that are
    # requested late.
    informers_started: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    @property
    def controllers(self) -> Sequence[Controller]:
        """The controllers that run: those that are enabled and whose kinds are served."""
        return self.selection.started

    def start(self) -> None:
        """Connects to the store, fills the caches, and starts the threads other than the
        controllers'.

        Raises StoreUnavailable and ConfigurationError.
        """
        tune()
        for warning in check_server(self.io):
            log.warning("The server can lose data", reason=warning)
        self.io.attach()
        self.caches.ensure(list(self.controllers))
        if self.admission is not None:
            self.admission.follow(self.caches.factory)
        self.caches.follow()
        self._spawn_all()
        self.start_informers()
        self.informers_started.set()
        self.caches.factory.wait_for_cache_sync(self.stop)

    def start_informers(self) -> None:
        """Starts all informers that were requested and have not been started."""
        self.caches.factory.start()

    @property
    def lease_duration(self) -> float:
        """How long leases last, in seconds."""
        return DURATION if self.threaded else STEPPED_DURATION

    def _spawn_all(self) -> None:
        if self._threads or not self.threaded:
            return
        forgets = self.member.kind == "manager"
        presence = Presence(self.io, self.member, forgets=forgets, clock=self.clock)
        for run, name in (
            (self.renewer.run, "kcm-renewer"),
            (self.recorder.run, "kcm-events"),
            (self.metrics.run, "kcm-metrics"),
            (presence.run, "kcm-presence"),
            (self.discovery.run, "kcm-discovery"),
        ):
            self._spawn(run, name)

    def _spawn(self, target: Callable[[threading.Event], None], name: str) -> None:
        thread = threading.Thread(target=target, args=(self.stop,), name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def wait_fresh(self, resources: Sequence[Resource]) -> None:
        """Waits until the caches have every earlier write (design 0011). Raises CacheNotSynced."""
        barrier = self.caches.factory.freshness_barrier()
        barrier.wait(resources, FRESHNESS_TIMEOUT, self.stop)

    def queue(self, controller: Controller) -> WorkQueue:
        """Returns the controller's work queue."""
        io = self.clients.client(controller.name).io
        return WorkQueue(io, controller.short_name, clock=self.clock)

    def runner(self, controller: Controller) -> Runner:
        """Returns the runner of the controller's keys in this process."""
        client = self.clients.client(controller.name)
        return Runner(
            controller,
            store=self.admitted(client),
            caches=self.caches,
            consistency=self._consistency(controller, client),
            queue=self.queue(controller),
            renewer=self.renewer,
            recorder=self.recorder,
            clock=self.clock,
            stop=self.stop,
            metrics=self.metrics,
            cloud=self.cloud,
            threaded=self.threaded,
        )

    def admitted(self, client: Client) -> ObjectStore:
        """Returns the store on which a controller works, which webhooks and policies guard."""
        if self.admission is None:
            return client.objects
        return self.clients.admitted(client, self.admission)

    def _consistency(self, controller: Controller, client: Client) -> Consistency:
        if self.clients.remote is None:
            barrier = self.caches.factory.freshness_barrier()
            return FreshCaches(barrier, partial(self._needed, controller))
        expectations = ControllerExpectations(client.io, controller.short_name, KEPT)
        informers = [self.caches.informer(model) for model in list_declared_models(controller)]
        return ExpectedChanges(expectations, informers, client.objects, self.clock)

    def _needed(self, controller: Controller) -> Sequence[Resource]:
        """Returns the kinds whose earlier writes a sync must have seen: those of the controller,
        and those that say which of its writes are admitted.
        """
        rules = self.admission.resources if self.admission is not None else ()
        return (*self.caches.present(controller), *rules)

    def dead_threads(self) -> list[str]:
        """Returns the names of threads that have ended although the context was not stopped."""
        if self.stop.is_set():
            return []
        return [thread.name for thread in self._threads if not thread.is_alive()]

    def stop_informers(self) -> threading.Thread:
        """Stops the informers in a thread, since their last read may block for a second."""
        stopping = threading.Thread(target=self.caches.factory.shutdown, daemon=True)
        stopping.start()
        return stopping

    def shutdown(self) -> None:
        """Stops the threads, writes the Events recorded so far, and closes the connections."""
        self.stop.set()
        informers = self.stop_informers()
        for thread in (*self._threads, informers):
            thread.join(STOP_TIMEOUT)
        if self._threads or not self.threaded:
            self._write_last_events()
        self.clients.close()

    def _write_last_events(self) -> None:
        try:
            self.recorder.flush()
        except errors.KcmError as error:
            log.warning("Events were dropped", error=str(error))


def build_context(
    settings: Settings | None = None,
    options: ManagerOptions | None = None,
    clock: Clock | None = None,
    *,
    kind: str = "worker",
    name: str = "",
    queues: Sequence[str] = (),
    stepped: Stepped | None = None,
) -> ControllerContext:
    """Returns a context for the controllers that run. Nothing is connected yet.

    `kind`, `name` (of the Celery node) and `queues` are shown by `kcm status`.
    """
    settings = settings or Settings()
    options = options or ManagerOptions.load()
    clock = clock or RealClock()
    rng = stepped.rng if stepped is not None else None
    discovery = Discovery(clock=clock)
    kubeconfig = options.generic.kubeconfig
    clients = ClientBuilder(
        settings,
        clock,
        load_kubeconfig(Path(kubeconfig)) if kubeconfig else None,
        Store(stepped.io, clock, rng) if stepped is not None else None,
    )
    shared = clients.client(kind)
    observer = CountingObserver()
    cloud = _build_cloud(clients, options, clock)
    identity = new_holder(f"{socket.gethostname()}-{os.getpid()}")
    selection = select(options, discovery, cloud.cloud if cloud else None)
    if stepped is not None:
        for controller in selection.started:
            controller.draw_from(stepped.rng)
    return ControllerContext(
        settings=settings,
        options=options,
        selection=selection,
        discovery=discovery,
        clients=clients,
        io=shared.io,
        store=shared.store,
        objects=shared.objects,
        caches=_build_caches(
            clients, shared, observer, _informer_options(clients, kind, stepped), rng
        ),
        observer=observer,
        renewer=Renewer(shared.io, clock=clock),
        recorder=EventRecorder(shared.objects, clock, rng),
        metrics=SyncMetrics(shared.io, clock=clock),
        clock=clock,
        cloud=cloud,
        admission=_admission_rules(settings, clients),
        loop_mode=LoopMode.INCLUDE_CLOUD_LOOPS if cloud else LoopMode.EXTERNAL_LOOPS,
        identity=identity,
        member=Member(identity, kind, name, tuple(queues)),
        threaded=stepped is None,
    )


def _admission_rules(settings: Settings, clients: ClientBuilder) -> CachedAdmissionRules | None:
    """Returns the rules by which writes go through the API server, None if none do.

    Another API server decides about all writes itself.
    """
    if clients.remote is not None or settings.admission_kubeconfig == NOBODY:
        return None
    return CachedAdmissionRules()


def _build_cloud(
    clients: ClientBuilder, options: ManagerOptions, clock: Clock
) -> CloudCaller | None:
    """Returns the calls to the cloud provider, None if none is set. Raises ConfigurationError."""
    name = options.cloud.cloud_provider
    if not name:
        return None
    io = clients.client("cloud-provider").io
    provider = create_provider(name, ProviderSettings(io, clock, options.cloud.cloud_config))
    return CloudCaller(provider, options.cloud.cluster_name)


def _informer_options(
    clients: ClientBuilder, kind: str, stepped: Stepped | None
) -> InformerOptions:
    # Another API server is watched over connections of its own, and a manager has to dispatch
    # changes: both read changes at once. Workers read them when they have a key to sync.
    pull = (kind == "worker" or stepped is not None) and clients.remote is None
    is_test = stepped is not None
    return InformerOptions(pull=pull, threaded=not is_test, detect_mutations=is_test)


def _build_caches(
    clients: ClientBuilder,
    shared: Client,
    observer: CountingObserver,
    options: InformerOptions,
    rng: random.Random | None,
) -> Caches:
    source: ListerWatcher = clients.client("shared-informers").objects
    if not options.threaded and clients.remote is None:
        source = LevelSource(shared.store)
    clock = shared.store.clock
    factory = SharedInformerFactory(
        source, clock=clock, options=options, observer=observer, rng=rng
    )
    # kcm does not follow the custom kinds of another API server.
    kinds = None if clients.remote else Definitions(shared.store, clock).refresh
    return Caches(factory, shared.metrics, kinds)


def require_store(context: ControllerContext) -> None:
    """Waits up to 10 s for the store, as upstream waits for the API server.

    Raises StoreUnavailable when the store does not respond in time.
    """
    deadline = context.clock.monotonic() + STORE_TIMEOUT
    while True:
        try:
            context.io.attach()
            return
        except errors.Temporary as error:
            if context.clock.monotonic() >= deadline or context.stop.is_set():
                raise errors.StoreUnavailable(
                    f"the store did not respond within {STORE_TIMEOUT:g} s: {error}"
                ) from error
            context.clock.wait(context.stop, 0.2)
