"""The ASGI app: authorizes a request, decodes it, runs its handler and sends the response.

Nothing is looked up for a request before the handler chain has admitted it. No store call blocks
the event loop: short requests run in greenlets (`kcm.redisio.greenlets`), all others in `THREADS`
threads. Clients that exceed the in-flight limits get 429 with `Retry-After`. A request's body is
read before the request counts as in flight, and one user can use neither the whole limit nor all
threads. Whatever fails, the client gets a Status.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import partial

from starlette.types import Receive, Scope, Send

from kcm import errors
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.apiextensions import conversion
from kcm.apiserver.admission.plugins import (
    WebhookCredentials,
    build_deciding_plugins,
    build_request_plugins,
)
from kcm.apiserver.aggregation.aggregation import Aggregation, AggregationOptions, is_long
from kcm.apiserver.aggregation.index import RemoteApi
from kcm.apiserver.auth.access import AccessRules
from kcm.apiserver.auth.attributes import ANYBODY
from kcm.apiserver.auth.authorizer import ALWAYS_ALLOW, DEFAULT_MODES, Authorizer
from kcm.apiserver.auth.bootstrap_tokens import BootstrapTokens
from kcm.apiserver.auth.handler_chain import HandlerChain, RequestState
from kcm.apiserver.auth.node.modes import build_authorizer
from kcm.apiserver.auth.node.restriction import NodeRestriction
from kcm.apiserver.auth.observed import observe_denial, observed
from kcm.apiserver.auth.service_accounts import ServiceAccountTokens, TokenOptions, find_in
from kcm.apiserver.auth.token_review import TokenReviewer
from kcm.apiserver.auth.token_tracking import TokenTracker
from kcm.apiserver.bootstrap.definitions import DefinitionLoop
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.conversion.converter import WebhookConverter
from kcm.apiserver.egress.kubelet import KubeletClient
from kcm.apiserver.egress.posting import BackendClient
from kcm.apiserver.egress.relaying import ProxiedRequest
from kcm.apiserver.egress.services import ServiceResolver
from kcm.apiserver.egress.waiting import LoopWaiter
from kcm.apiserver.faults.gate import ServerFaults
from kcm.apiserver.heavy.lanes import HeavyWriters, RequestLanes, refusal
from kcm.apiserver.heavy.processes import HeavyProcesses
from kcm.apiserver.http.accept import negotiate
from kcm.apiserver.http.limits import Answers, Bodies, InFlight, Limits, OpenWatches
from kcm.apiserver.http.notices import RefusalEvents
from kcm.apiserver.http.responses import Response
from kcm.apiserver.http.sending import compress, send_response
from kcm.apiserver.http.stalls import StallMeter
from kcm.apiserver.http.threads import Threads
from kcm.apiserver.http.unauthenticated import UnauthenticatedConnections
from kcm.apiserver.http_errors import PathNotFound, RequestTimeout
from kcm.apiserver.metrics import ServerMetrics
from kcm.apiserver.objects import status, watching
from kcm.apiserver.objects.watching import HttpWatch, WatchOptions, WatchResponse
from kcm.apiserver.request import Disconnected, Request, head_of, read_body
from kcm.apiserver.request_info import RequestInfo, parse
from kcm.apiserver.routes import Routes, is_page, is_watch
from kcm.apiserver.streams import Streams
from kcm.helpers.serviceaccount.issuing import DEFAULT_ISSUER
from kcm.http.connections import Pool
from kcm.loops import Loop, ThreadHost, contain
from kcm.options import feature_gates
from kcm.store import Store

THREADS = 8  # store calls at a time; more would only contend for the interpreter


class ApiServer:
    """The ASGI app.

    `start` starts its threads, which fill the watch caches. `stop_watches` and `stop` shut it down.
    """

    def __init__(
        self,
        store: Store,
        access: AccessRules,
        authorizer: Authorizer | None = None,
        limits: Limits | None = None,
        *,
        kubelet: KubeletClient | None = None,
        tokens: TokenOptions | None = None,
        bootstrap_tokens: bool = False,
        modes: Sequence[str] = DEFAULT_MODES,
        gates: Mapping[str, bool] = feature_gates.DEFAULTS,
        credentials: WebhookCredentials | None = None,
        aggregation: AggregationOptions | None = None,
        faults: ServerFaults | None = None,
        processes: HeavyProcesses | None = None,
    ) -> None:
        """`modes` are the modes of authorization; without AlwaysAllow, system:masters may do
        everything, and NodeRestriction checks the writes of nodes. An `authorizer` takes the place
        of the modes. `gates` are the feature gates. Without `tokens`, service account tokens are
        neither issued nor accepted. With `bootstrap_tokens`, bootstrap tokens are accepted.
        `credentials` identify the server to webhooks. `faults` are what a test has happen.
        `processes` make heavy writes.
        """
        self.cacher = Cacher(store)
        self._definitions = DefinitionLoop(store, self.cacher)
        self._host = ThreadHost(store.clock)
        self.limits = limits or Limits()
        self._in_flight = InFlight(self.limits)
        self._bodies = Bodies()
        self._answers = Answers()
        self._metrics = ServerMetrics(self.cacher, self._in_flight)
        self._stalls = StallMeter(self._metrics.registry)
        tell, registry = RefusalEvents(store).tell, self._metrics.registry
        self._open_watches = OpenWatches(self.limits.max_watches_per_user, registry, tell)
        self.unauthenticated = UnauthenticatedConnections(
            self.limits.max_unauthenticated_connections_per_address, registry, tell
        )
        decides = authorizer or build_authorizer(modes, self.cacher)
        restricts = authorizer is None and ALWAYS_ALLOW not in modes
        restriction = NodeRestriction(find_in(self.cacher)) if restricts else None
        self._token_tracker = TokenTracker(store)
        accounts: ServiceAccountTokens | None = None
        if tokens is not None:
            uses = self._token_tracker.note_use
            accounts = ServiceAccountTokens(
                tokens,
                find_in(self.cacher),
                uses,
                store.clock,
                count=self._metrics.token_use,
            )
            access = replace(access, further=(*access.further, accounts))
        joining = BootstrapTokens(find_in(self.cacher), store.clock) if bootstrap_tokens else None
        if joining is not None:
            access = replace(access, further=(joining, *access.further))
        audiences = tokens.audiences if tokens else (DEFAULT_ISSUER,)
        reviewer = TokenReviewer(access.tokens, accounts, audiences, joining)
        self._chain = HandlerChain(access, decides, self._metrics)
        self._observer = store.observer
        self._threads = Threads(THREADS, "kcm-api")
        self._waiter = LoopWaiter()
        self._gate = faults.gate(self.limits.request_timeout) if faults else None
        breaks = faults.rules if faults else None
        self._pool = Pool()
        self._backends = BackendClient(
            ServiceResolver(self.cacher), self._waiter, self._pool, breaks
        )
        self._converter = WebhookConverter(self._backends, self._waiter, self._metrics.registry)
        self.cacher.converter = self._converter
        deciding = build_deciding_plugins(
            self.cacher, self._backends, self._waiter, self._metrics.registry, credentials
        )
        self.store = store.with_plugins([*build_request_plugins(store, restriction), *deciding])
        writers = HeavyWriters(processes, self._chain, self.store.admission) if processes else None
        self._lanes = RequestLanes(self._threads, self._stalls, writers)
        self._aggregation = Aggregation(
            store,
            self.cacher,
            aggregation or AggregationOptions(),
            self.limits,
            self._metrics.registry,
            pool=self._pool,
        )
        self._routes = Routes(
            self.store,
            self.cacher,
            self._metrics,
            self._chain,
            remote=self._aggregation.documents,
            reviewer=reviewer,
            tokens=tokens,
        )
        self._issues_tokens = tokens is not None
        self._watches: set[HttpWatch] = set()
        self._streams = Streams(
            self.store,
            self.cacher,
            kubelet or KubeletClient(),
            chain=self._chain,
            threads=self._threads,
            metrics=self._metrics,
            gates=gates,
        )

    def start(self) -> None:
        """Starts the threads, which begin to fill the watch caches."""
        self._threads.start()
        self._lanes.start()
        if self._issues_tokens:
            contain(self._token_tracker.name, partial(self._token_tracker.turn, 0.0))
        self._host.run(self.cacher, *self._loops())
        self._aggregation.start()

    def _loops(self) -> Iterator[Loop]:
        yield self._definitions
        yield self._aggregation.registration
        if self._issues_tokens:
            yield self._token_tracker

    @property
    def busy(self) -> bool:
        """Reports whether requests are in flight, watches and other streams aside, or objects wait
        for the server's own loops.
        """
        return any(self._in_flight.now.values()) or any(loop.busy for loop in self._loops())

    @property
    def stream_count(self) -> int:
        """The number of open watches and other streams."""
        return len(self._watches) + len(self._streams)

    def stop_watches(self) -> None:
        """Stops all watches and other streams. It must be called in the event loop."""
        for watch in list(self._watches):
            watch.stop()
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
        state = RequestState(head_of(scope))
        self._waiter.attach()
        self._stalls.note_request()
        try:
            self._admit(state, scope)
            if self._gate is not None:
                receive = await self._gate.pass_through(state, scope, receive)
            if (remote := self._aggregation.find(state.request.path)) is not None:
                await self._aggregate(remote, state, scope, receive, send)
                return
            if not is_page(state.request.path):
                self._chain.set_info(state, await self._find_info(state))
            if is_watch(state):
                with self._open_watches.hold(state.sender or ANYBODY):
                    await self._watch(state, scope, receive, send)
                return
            if state.info is not None and await self._streams.serve(
                state, state.info, scope, receive, send
            ):
                return
        except Disconnected:
            return
        except Exception as error:  # noqa: BLE001 - no trace may leave the server
            response = status.respond_failure(error)
            self._metrics.count_rejected(state, response.code)
        else:
            await self._answer(state, receive, send)
            return
        await send_response(response, state.request.method, send)

    async def _answer(self, state: RequestState, receive: Receive, send: Send) -> None:
        """Handles a request. It is in flight until its response is sent, as upstream, since it
        is in memory until then.
        """
        with ExitStack() as sending:
            try:
                response = await self._respond_and_count(state, receive, sending)
            except Disconnected:
                return
            await send_response(response, state.request.method, send)

    def _admit(self, state: RequestState, scope: Scope) -> None:
        try:
            self._chain.admit(state, scope)
        except errors.Forbidden as error:
            if self._observer is not None:
                observe_denial(self._observer, state, error)
            raise

    async def _aggregate(
        self, api: RemoteApi, state: RequestState, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Passes a request on to the server that serves the API."""
        proxied = ProxiedRequest(
            state.request,
            state.user,
            scope,
            receive,
            send,
            began=lambda code: self._metrics.count_rejected(state, code),
        )
        work = self._aggregation.proxy.pass_on(api, proxied, long=is_long(state.asked))
        await self._streams.run(work)

    async def _find_info(self, state: RequestState) -> RequestInfo:
        path = state.request.path
        try:
            return parse(path, self.cacher.scheme)
        except PathNotFound:  # perhaps a custom kind that was defined a moment ago
            await self._threads.run(self._learn_kinds, state.sender or ANYBODY)
            return parse(path, self.cacher.scheme)

    async def _respond_and_count(
        self, state: RequestState, receive: Receive, sending: ExitStack
    ) -> Response:
        with self._metrics.request(state) as answered:
            try:
                response = await self._respond(state, receive, sending)
            except Disconnected:
                raise
            except Exception as error:  # noqa: BLE001 - no trace may leave the server
                response = refusal(error, state)
            answered(response.code)
            return response

    async def _respond(self, state: RequestState, receive: Receive, sending: ExitStack) -> Response:
        user = state.sender or ANYBODY
        try:
            async with asyncio.timeout(self.limits.request_timeout or None):
                with self._bodies.hold(user) as held:
                    with self._bodies.receive(user):
                        if body := await read_body(receive, held.add):
                            state = replace(state, request=replace(state.request, body=body))
                    sending.enter_context(self._in_flight.admit(state.request.method, user))
                    response = await self._lanes.run(self._handler(state), state, user)
                    sending.enter_context(self._answers.hold(user, len(response.body)))
                    return response
        except TimeoutError:
            raise RequestTimeout from None

    def _handler(self, state: RequestState) -> Callable[[], Response]:
        """Returns the handler of a request, which returns the response for an error as well: to
        write that may take long, too.
        """

        def handle() -> Response:
            return self._handle(state)

        if self._observer is not None:
            handle = observed(self._observer, state, handle)

        def answer() -> Response:
            try:
                return handle()
            except Exception as error:  # noqa: BLE001 - no trace may leave the server
                return refusal(error, state)

        return answer

    def _handle(self, state: RequestState) -> Response:
        request = state.request
        if state.info is None:
            response = self._page(request)
        else:
            with conversion.asking(self._converter):
                response = self._routes.objects(
                    request, state.info, self._chain.caller(state), state.remarks
                )
        return compress(response, request.header(b"accept-encoding"))

    def _page(self, request: Request) -> Response:
        try:
            return self._routes.page(request)
        except PathNotFound:
            if not request.path.startswith("/apis/"):
                raise
            self._learn_kinds()  # perhaps a group that was defined a moment ago
            return self._routes.page(request)

    def _learn_kinds(self) -> None:
        """Waits until every custom kind is known whose definition was written before this call.

        The cacher adds kinds to the scheme as it reads their definitions. Raises StoreUnavailable.
        """
        self.cacher.wait_until_fresh(CustomResourceDefinition.resource)

    async def _watch(self, state: RequestState, scope: Scope, receive: Receive, send: Send) -> None:
        request, info = state.request, state.info
        assert info is not None
        form = negotiate(request.header(b"accept"))
        options = WatchOptions.of(info, request.query, form)
        watch = HttpWatch(self.cacher, options, asyncio.get_running_loop())
        try:
            if self._gate is not None:
                self._gate.check_start(state)
            await self._threads.run(watch.subscribe, state.sender or ANYBODY)
        except errors.Gone as error:  # reported in the stream, as upstream's watch cache does
            await send_response(Response(watching.error_line(error)), "GET", send)
            return
        self._watches.add(watch)
        self._metrics.count(state, 200)
        with self._gate.follow(watch, state, scope) if self._gate else nullcontext():
            await WatchResponse(watch, form, self._watches.discard)(scope, receive, send)
