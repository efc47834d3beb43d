"""Answers that last as long as their client reads: logs, connections to kubelets, proxied requests.

They run in the event loop, one task each, until they end or the server stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any

from starlette.types import Receive, Scope, Send

from kcm.apiserver.admission.connections import admit_connection
from kcm.apiserver.auth.authorizer import Authorizer
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.egress.kubelet import KubeletAddress, KubeletClient
from kcm.apiserver.egress.logs import Logs, is_log
from kcm.apiserver.egress.object_proxy import ObjectProxy, is_proxy
from kcm.apiserver.egress.relaying import ProxiedRequest
from kcm.apiserver.egress.simulated import SimulatedAttach
from kcm.apiserver.egress.streams import NodeStreams, is_stream
from kcm.apiserver.egress.targets import Target
from kcm.apiserver.exchange import Exchange
from kcm.apiserver.http.threads import Threads
from kcm.apiserver.http.websockets import LOG_PROTOCOLS, find_channels
from kcm.apiserver.metrics import ServerMetrics
from kcm.apiserver.request_info import RequestInfo
from kcm.options.feature_gates import AUTHORIZE_CREATE_OF_STREAMS
from kcm.store import Store


class Streams:
    """Serves what lasts. All methods are for the event loop's thread."""

    def __init__(
        self,
        store: Store,
        cacher: Cacher,
        kubelet: KubeletClient,
        *,
        authorizer: Authorizer,
        threads: Threads,
        metrics: ServerMetrics,
        gates: Mapping[str, bool],
    ) -> None:
        self._authorizer = authorizer
        self._store = store
        self._threads = threads
        self._metrics = metrics
        self._gates = gates
        self._logs = Logs(store, kubelet)
        self._node_streams = NodeStreams(store, kubelet)
        self._proxy = ObjectProxy(store, cacher, kubelet)
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Returns how many streams are open."""
        return len(self._tasks)

    async def serve(
        self, exchange: Exchange, info: RequestInfo, scope: Scope, receive: Receive, send: Send
    ) -> bool:
        """Serves a request that is for a stream. Returns False for any other."""
        if is_log(exchange.request.method, info):
            await self._log(exchange, info, receive, send)
        elif is_stream(info):
            await self._connect(exchange, info, scope)
        elif is_proxy(info):
            await self._pass_on(exchange, info, scope, receive, send)
        else:
            return False
        return True

    async def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs other work until it ends or the server stops."""
        stream = asyncio.ensure_future(work)
        self._tasks.add(stream)
        stream.add_done_callback(self._tasks.discard)
        await stream

    def cancel(self) -> None:
        """Ends all streams."""
        for stream in list(self._tasks):
            stream.cancel()

    async def _log(
        self, exchange: Exchange, info: RequestInfo, receive: Receive, send: Send
    ) -> None:
        receive, send = find_channels(exchange.scope, receive, send, LOG_PROTOCOLS)
        where = await self._threads.run(
            lambda: self._logs.find(info, exchange.request), exchange.payer
        )
        await self.run(
            self._logs.pass_on(where, receive, send, lambda: self._metrics.count(exchange, 200))
        )

    async def _connect(self, exchange: Exchange, info: RequestInfo, scope: Scope) -> None:
        request = exchange.request

        def find() -> KubeletAddress | SimulatedAttach:
            self._admit(exchange, info)
            if self._gates[AUTHORIZE_CREATE_OF_STREAMS] and exchange.asked is not None:
                # a WebSocket is a GET, and the right to get must not be one to run commands
                exchange.caller(self._authorizer).require(replace(exchange.asked, verb="create"))
            return self._node_streams.find(info, request)

        where = await self._threads.run(find, exchange.payer)
        await self.run(
            self._node_streams.connect(
                where, request, scope, lambda: self._metrics.count(exchange, 101, 0.0)
            )
        )

    async def _pass_on(
        self, exchange: Exchange, info: RequestInfo, scope: Scope, receive: Receive, send: Send
    ) -> None:
        request, user = exchange.request, exchange.payer

        def find() -> Target:
            self._admit(exchange, info)
            return self._proxy.find(info, request)

        target = await self._threads.run(find, user)
        proxied = ProxiedRequest(
            request,
            user,
            scope,
            receive,
            send,
            began=lambda code: self._metrics.count(exchange, code, 0.0),
        )
        work = self._proxy.pass_on(
            target, info, proxied, lambda work: self._threads.run(work, user)
        )
        await self.run(work)

    def _admit(self, exchange: Exchange, info: RequestInfo) -> None:
        """Asks webhooks and policies. Raises the error of what refuses the connection."""
        caller = exchange.caller(self._authorizer)
        admit_connection(self._store, info, exchange.request, caller, exchange.remarks)
