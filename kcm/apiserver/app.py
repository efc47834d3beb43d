"""`ApiServer`: the ASGI app, and how it is put together.

A request passes the filters of `kcm.apiserver.filters.chain`, and is handled in
`kcm.apiserver.handler`. No store call blocks the event loop: `kcm.apiserver.heavy.lanes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from starlette.types import Receive, Scope, Send

from kcm.apiserver.admission.plugins import (
    WebhookCredentials,
    build_deciding_plugins,
    build_request_plugins,
)
from kcm.apiserver.aggregation.aggregation import Aggregation, AggregationOptions
from kcm.apiserver.auth.access import AccessRules
from kcm.apiserver.auth.control import AccessControl, AuthOptions
from kcm.apiserver.bootstrap.definitions import DefinitionLoop
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.cache.recent_writes import RecentWrites
from kcm.apiserver.egress.conversion.converter import WebhookConverter
from kcm.apiserver.egress.kubelet import KubeletClient
from kcm.apiserver.egress.posting import BackendClient
from kcm.apiserver.egress.scraping.loop import UsageScraper
from kcm.apiserver.egress.services import ServiceResolver
from kcm.apiserver.egress.waiting import LoopWaiter
from kcm.apiserver.exchange import Exchange
from kcm.apiserver.filters.aggregation import AggregationFilter
from kcm.apiserver.filters.audit import Audit
from kcm.apiserver.filters.auditing.trail import AuditTrail
from kcm.apiserver.filters.authentication import Authentication
from kcm.apiserver.filters.authorization import Authorization
from kcm.apiserver.filters.chain import FilterChain
from kcm.apiserver.filters.faults import ServerFaults
from kcm.apiserver.filters.impersonation import Impersonation
from kcm.apiserver.filters.limits import RequestLimits
from kcm.apiserver.filters.panic_recovery import PanicRecovery
from kcm.apiserver.filters.priority_and_fairness import PriorityAndFairness
from kcm.apiserver.filters.request_info import RequestInfoFilter
from kcm.apiserver.filters.resources import Resources
from kcm.apiserver.filters.streams import StreamFilter
from kcm.apiserver.filters.watches import Watches
from kcm.apiserver.flowcontrol.control import FlowControl
from kcm.apiserver.handler import RequestHandler
from kcm.apiserver.heavy.lanes import HeavyWriters, RequestLanes
from kcm.apiserver.heavy.processes import HeavyProcesses
from kcm.apiserver.http.limits import InFlight, Limits, OpenWatches
from kcm.apiserver.http.notices import RefusalEvents
from kcm.apiserver.http.sending import send_response
from kcm.apiserver.http.stalls import StallMeter
from kcm.apiserver.http.threads import Threads
from kcm.apiserver.http.unauthenticated import UnauthenticatedConnections
from kcm.apiserver.metrics import ServerMetrics
from kcm.apiserver.objects.metrics_apis import MetricsApis
from kcm.apiserver.pages import Pages
from kcm.apiserver.request import head_of
from kcm.apiserver.routes import Routes
from kcm.apiserver.streams import Streams
from kcm.http.connections import Pool
from kcm.loops import Loop, ThreadHost, contain
from kcm.options import feature_gates
from kcm.store import Store
from kcm.store.resource_metrics.answers import StoredMetrics
from kcm.store.resource_metrics.usage import UsageBoard

THREADS = 8  # store calls at a time; more would only contend for the interpreter


@dataclass(frozen=True)
class ApiServerOptions:
    """How an API server works; each default is that of the flag of this name."""

    auth: AuthOptions = field(default_factory=AuthOptions)
    limits: Limits = field(default_factory=Limits)
    gates: Mapping[str, bool] = field(default_factory=lambda: feature_gates.DEFAULTS)
    kubelet: KubeletClient = field(default_factory=KubeletClient)
    credentials: WebhookCredentials | None = None  # identify the server to webhooks
    aggregation: AggregationOptions = field(default_factory=AggregationOptions)
    faults: ServerFaults | None = None  # what a test wants to fail
    processes: HeavyProcesses | None = None  # make heavy writes
    audit: AuditTrail | None = None  # writes audit events


class ApiServer:
    """The ASGI app.

    `start` starts its threads, which fill the watch caches. `stop_watches` and `stop` shut it down.
    """

    def __init__(
        self, store: Store, access: AccessRules, options: ApiServerOptions | None = None
    ) -> None:
        options = options or ApiServerOptions()
        self.limits = limits = options.limits
        self._threads, self._waiter = Threads(THREADS, "kcm-api"), LoopWaiter()

        # What is read, and what is counted.
        recent = RecentWrites()
        self.cacher = cacher = Cacher(store, recent=recent)
        self._in_flight = InFlight()
        self._metrics = metrics = ServerMetrics(cacher, self._in_flight)
        registry, tell = metrics.registry, RefusalEvents(store).tell
        self._stalls = StallMeter(registry)
        self.unauthenticated = UnauthenticatedConnections(
            limits.max_unauthenticated_connections_per_address, registry, tell
        )
        open_watches = OpenWatches(limits.max_watches_per_user, registry, tell)
        self._gate = options.faults.gate(limits.request_timeout) if options.faults else None

        # Who may do what.
        self._control = AccessControl(store, cacher, access, options.auth, metrics.token_use)
        access, authorizer = self._control.access, self._control.authorizer

        # Other servers: webhooks, and servers of other APIs.
        breaks = options.faults.rules if options.faults else None
        self._pool = pool = Pool()
        backends = BackendClient(ServiceResolver(cacher), self._waiter, pool, breaks)
        converter = cacher.converter = WebhookConverter(backends, self._waiter, registry)
        self._aggregation = Aggregation(
            store, cacher, options.aggregation, limits, registry, pool=pool
        )

        # What a write passes.
        self.store = store.with_plugins(
            [
                *build_request_plugins(store, self._control.restriction),
                *build_deciding_plugins(
                    cacher, backends, self._waiter, registry, options.credentials
                ),
            ],
            recent.note,
        )

        # What answers.
        tokens, reviewer = self._control.tokens, self._control.reviewer
        metrics_apis = MetricsApis(cacher, StoredMetrics(UsageBoard(store.io), store.clock))
        self._pages = pages = Pages(
            self.store,
            cacher,
            metrics,
            authorizer,
            metrics_apis=metrics_apis,
            tokens=tokens,
            remote=self._aggregation.documents,
        )
        routes = Routes(self.store, cacher, metrics_apis, reviewer=reviewer, tokens=tokens)
        handler = RequestHandler(
            pages,
            routes,
            cacher,
            authorizer=authorizer,
            converter=converter,
            observer=store.observer,
        )
        writers = None
        if options.processes is not None:
            writers = HeavyWriters(options.processes, authorizer, self.store.admission)
        seats = limits.max_requests_inflight + limits.max_mutating_requests_inflight
        control = FlowControl(cacher, seats, registry)
        self._lanes = RequestLanes(
            self._threads, self._stalls, handler.handle, control.turns, writers
        )
        self._watches = Watches(cacher, self._threads, metrics, open_watches, self._gate)
        self._streams = Streams(
            self.store,
            cacher,
            options.kubelet,
            authorizer=authorizer,
            threads=self._threads,
            metrics=metrics,
            gates=options.gates,
        )

        # What a request passes: see `FilterChain`.
        self._chain = FilterChain(
            Audit(metrics, options.audit),
            PanicRecovery(),
            RequestInfoFilter(access),
            Authentication(access, metrics),
            Impersonation(authorizer),
            Authorization(authorizer, metrics, store.observer),
            self._gate,
            AggregationFilter(self._aggregation, self._streams, metrics),
            Resources(cacher, self._threads),
            self._watches,
            StreamFilter(self._streams),
            RequestLimits(limits, self._in_flight),
            PriorityAndFairness(control, limits, cacher),
        ).compose(self._lanes.run)

        # What runs beside requests.
        self._definitions = DefinitionLoop(store, cacher)
        self._scraper = UsageScraper(store, cacher, options.kubelet, registry)
        self._host = ThreadHost(store.clock)

    def start(self) -> None:
        """Starts the threads, which begin to fill the watch caches."""
        self._threads.start()
        self._lanes.start()
        tracker = self._control.token_tracker
        if self._control.tokens is not None:
            contain(tracker.name, partial(tracker.turn, 0.0))
        self._host.run(self.cacher, self._scraper, *self._loops())
        self._aggregation.start()

    def _loops(self) -> Iterator[Loop]:
        yield self._definitions
        yield self._aggregation.registration
        if self._control.tokens is not None:
            yield self._control.token_tracker

    @property
    def busy(self) -> bool:
        """Reports whether requests are in flight, watches and other streams aside, or objects wait
        for the server's own loops.
        """
        return any(self._in_flight.now.values()) or any(loop.busy for loop in self._loops())

    def begin_shutdown(self) -> None:
        """Makes /readyz fail from now on."""
        self._pages.shutting_down.set()

    def stop_watches(self) -> None:
        """Stops all watches and other streams. It must be called in the event loop."""
        self._watches.stop()
        self._streams.cancel()
        if self._gate is not None:
            self._gate.stop()
        self._pool.close()

    def stop(self) -> None:
        """Stops the threads."""
        self._aggregation.stop()
        self._host.stop()
        self._lanes.stop()
        self._threads.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self._waiter.attach()
        self._stalls.note_request()
        exchange = Exchange(head_of(scope), scope, receive, send)
        with exchange.until_sent:
            response = await self._chain(exchange)
            if response is not None:
                await send_response(response, exchange.request.method, send, exchange.headers)
