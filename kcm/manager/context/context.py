"""The controller context: what all controllers of a process share.

Building it opens no connection and starts no thread; `start` does. Source: CreateControllerContext
in cmd/kube-controller-manager/app/controllermanager.go, Kubernetes 1.33.
"""

from __future__ import annotations

import os
import random
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

import structlog

from kcm import errors
from kcm.api.scheme import Resource
from kcm.clock import Clock, RealClock
from kcm.coordination import new_holder
from kcm.coordination.failovers import failover_loops
from kcm.coordination.lease import DURATION
from kcm.coordination.presence import Member, Presence
from kcm.coordination.workqueue import Renewer, Standby, WorkQueue
from kcm.interpreter import tune
from kcm.loops import Host, Loop, ThreadHost, contain
from kcm.manager.context.admission import NOBODY, CachedAdmissionRules
from kcm.manager.context.clients import Client, ClientBuilder, RemoteUse
from kcm.manager.context.discovery import Discovery
from kcm.manager.context.informing import build_caches, choose_options
from kcm.manager.context.observing import CountingObserver
from kcm.manager.context.selection import Selection, select
from kcm.manager.queues import TICKS_QUEUE
from kcm.options.manager import ManagerOptions
from kcm.reconcile.caches import Caches, list_declared_models
from kcm.reconcile.carrying import PlanCarrier
from kcm.reconcile.cloudprovider.caller import CloudCaller
from kcm.reconcile.cloudprovider.discovery import ProviderSettings, create_provider
from kcm.reconcile.consistency import KEPT, CacheChanges, Consistency, ExpectedChanges, FreshCaches
from kcm.reconcile.contract import Controller
from kcm.reconcile.events import EventRecorder
from kcm.reconcile.expectations import ControllerExpectations
from kcm.reconcile.metrics import SyncMetrics
from kcm.reconcile.runner import FRESHNESS_TIMEOUT, Runner, RunnerProcess
from kcm.redisio import RedisIO
from kcm.redisio.checks import check_server
from kcm.settings import Settings
from kcm.store import Store
from kcm.store.objects import ObjectStore
from kcm.store.remote.kubeconfig import connect

if TYPE_CHECKING:
    from kcm.store.remote.store import RemoteStore

log = structlog.get_logger("kcm.manager")

STORE_TIMEOUT = 10.0  # seconds, as upstream waits for the API server


class LoopMode(StrEnum):
    """Which of the core and cloud controllers run in this process."""

    INCLUDE_CLOUD_LOOPS = "IncludeCloudLoops"  # with --cloud-provider
    EXTERNAL_LOOPS = "ExternalLoops"


@dataclass(frozen=True)
class Embedding:
    """What a control plane inside another program provides for its context.

    All clients share `store`, and everything random is drawn from `rng`.
    """

    host: Host
    store: Store
    rng: random.Random
    lease_duration: float  # seconds; longer than any step of its clock


@dataclass
class ControllerContext:
    """The settings, clients, caches and loops that the controllers of one process share."""

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
    host: Host
    loop_mode: LoopMode = LoopMode.EXTERNAL_LOOPS
    # which writes go through the API server, None if none do
    admission: CachedAdmissionRules | None = None
    lease_duration: float = DURATION  # seconds
    cache_changes: CacheChanges = field(default_factory=CacheChanges)
    stop: threading.Event = field(default_factory=threading.Event)
    # Set once the informers of all controllers were requested and started. Before that, no
    # controller may start informers of its own. After that, `start_informers` starts those that are
    # requested late.
    informers_started: threading.Event = field(default_factory=threading.Event)
    # The runs that wait for keys, which the manager in the same process gives them.
    standby: Standby = field(default_factory=Standby)
    _runs_loops: bool = False

    @property
    def controllers(self) -> Sequence[Controller]:
        """The controllers that run: those that are enabled and whose kinds are served."""
        return self.selection.started

    def start(self) -> None:
        """Connects to the store, runs the loops that every process has, and fills the caches.

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
        if not self._runs_loops:
            self._runs_loops = True
            self.host.run(*self._loops(), self.caches.factory.loop)
        self.start_informers()
        self.informers_started.set()
        # Over another API server, each controller waits for its own caches: one kind that cannot be
        # listed must not stop the others.
        if self.clients.remote is None:
            self.caches.factory.wait_for_cache_sync(self.stop)

    def may_work(self) -> bool:
        """Reports whether syncs and passes may run now: unless another manager leads on the API
        server whose objects they change. Raises StoreUnavailable.
        """
        leadership = self.clients.leadership
        return leadership is None or leadership.leads()

    def start_informers(self) -> None:
        """Starts all informers that were requested and have not been started."""
        self.caches.factory.start()

    def _loops(self) -> Iterator[Loop]:
        forgets = self.member.kind == "manager"
        yield Presence(self.io, self.member, forgets=forgets)
        yield self.discovery
        yield self.renewer
        yield self.metrics
        yield self.recorder
        yield from failover_loops(self.io)

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
        process = RunnerProcess(
            self.renewer,
            self.clock,
            self.stop,
            self.host,
            self.metrics,
            self.store.observer,
            self.standby,
        )
        return Runner(
            controller,
            carrier=self.carrier(controller, client),
            caches=self.caches,
            consistency=self._consistency(controller, client),
            queue=self.queue(controller),
            process=process,
        )

    def carrier(self, controller: Controller, client: Client) -> PlanCarrier:
        """Returns what carries out the controller's plans with the store of a client."""
        store = self.admitted(client)
        return PlanCarrier(controller.name, store, self.recorder, self.metrics, self.cloud)

    def admitted(self, client: Client) -> ObjectStore:
        """Returns the store on which a controller works, which webhooks and policies guard."""
        if self.admission is None:
            return client.objects
        return self.clients.admitted(client, self.admission)

    def _consistency(self, controller: Controller, client: Client) -> Consistency:
        barrier = self.caches.factory.freshness_barrier()
        fresh = FreshCaches(barrier, partial(self._needed, controller))
        if self.clients.remote is None:
            return fresh
        expectations = ControllerExpectations(client.io, controller.short_name, KEPT)
        models = list_declared_models(controller, self.store.scheme)
        informers = [self.caches.informer(model) for model in models]
        return ExpectedChanges(
            expectations,
            informers,
            client.objects,
            self.clock,
            fresh,
            changes=self.cache_changes,
            hurrying=self.caches.factory.hurrying,
        )

    def _needed(self, controller: Controller) -> Sequence[Resource]:
        """Returns the kinds whose earlier writes a sync must have seen: those of the controller,
        and those that say which of its writes are admitted.
        """
        rules = self.admission.resources if self.admission is not None else ()
        return (*self.caches.present(controller), *rules)

    def stop_loops(self) -> None:
        """Stops every loop, within about a second."""
        self.stop.set()
        self.standby.close()
        self.host.stop()
        self.caches.factory.shutdown()

    def shutdown(self) -> None:
        """Stops the loops, which write what they have recorded, and closes the connections."""
        self.stop_loops()
        contain("kcm-events", self.recorder.end)  # what was recorded while the loops ended
        self.clients.close()


def build_context(
    settings: Settings | None = None,
    options: ManagerOptions | None = None,
    clock: Clock | None = None,
    *,
    kind: str = "worker",
    name: str = "",
    queues: Sequence[str] = (),
    embedding: Embedding | None = None,
) -> ControllerContext:
    """Returns a context for the controllers that run. Nothing is connected yet, except that another
    API server is asked which kinds it serves.

    `kind`, `name` (of the Celery node) and `queues`, which a manager has that is a worker, too, are
    shown by `kcm status`. Without an embedding, each loop has a thread. Raises ConfigurationError,
    and StoreUnavailable when the other server does not respond.
    """
    settings = settings or Settings()
    options = options or ManagerOptions.load()
    clock = clock or RealClock()
    rng = embedding.rng if embedding is not None else None
    stop = threading.Event()
    clients = _build_clients(settings, options, clock, embedding)
    shared = clients.client(kind)
    discovery = clients.discovery()
    remote = clients.remote is not None
    resync = options.generic.min_resync_period.total_seconds() if queues else 0.0
    if remote:
        retry_for_a_while(discovery.refresh, clock, stop)
    observer = CountingObserver()
    cloud = _build_cloud(clients, options, clock)
    identity = new_holder(f"{socket.gethostname()}-{os.getpid()}")
    selection = select(options, discovery, cloud.cloud if cloud else None)
    if embedding is not None:
        for controller in selection.started:
            controller.draw_from(embedding.rng)
        # It does what workers do elsewhere.
        queues = sorted({TICKS_QUEUE, *(controller.group for controller in selection.started)})
    return ControllerContext(
        settings=settings,
        options=options,
        selection=selection,
        discovery=discovery,
        clients=clients,
        io=shared.io,
        store=shared.store,
        objects=shared.objects,
        caches=build_caches(
            clients,
            shared,
            observer,
            discovery,
            options=choose_options(
                kind, remote=remote, embedded=embedding is not None, resync=resync
            ),
            rng=rng,
        ),
        observer=observer,
        renewer=Renewer(shared.io),
        recorder=EventRecorder(shared.objects, clock, rng),
        metrics=SyncMetrics(shared.io),
        clock=clock,
        cloud=cloud,
        admission=_admission_rules(settings, clients),
        loop_mode=LoopMode.INCLUDE_CLOUD_LOOPS if cloud else LoopMode.EXTERNAL_LOOPS,
        identity=identity,
        member=Member(identity, kind, name, tuple(queues)),
        lease_duration=embedding.lease_duration if embedding else DURATION,
        host=embedding.host if embedding else ThreadHost(clock, stop=stop),
        stop=stop,
    )


def _build_clients(
    settings: Settings, options: ManagerOptions, clock: Clock, embedding: Embedding | None
) -> ClientBuilder:
    generic, election = options.generic, options.leader_election
    use = RemoteUse(
        election.renew_deadline.total_seconds() if election.leader_elect else 0.0,
        generic.kube_api_qps,
        generic.kube_api_burst,
        generic.use_service_account_credentials,
    )
    return ClientBuilder(
        settings,
        clock,
        connect(generic.kubeconfig) if generic.kubeconfig else None,
        embedding.store if embedding is not None else None,
        use,
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


def require_store(context: ControllerContext) -> None:
    """Waits up to 10 s for the store, as upstream waits for the API server.

    Raises StoreUnavailable when the store does not respond in time.
    """
    retry_for_a_while(context.io.attach, context.clock, context.stop)


def retry_for_a_while(step: Callable[[], None], clock: Clock, stop: threading.Event) -> None:
    """Calls `step` until the store responds, for up to 10 s. Raises StoreUnavailable after that."""
    deadline = clock.monotonic() + STORE_TIMEOUT
    while True:
        try:
            step()
            return
        except errors.Temporary as error:
            if clock.monotonic() >= deadline or stop.is_set():
                raise errors.StoreUnavailable(
                    f"the store did not respond within {STORE_TIMEOUT:g} s: {error}"
                ) from error
            clock.wait(stop, 0.2)
