"""Watches: a stream of changes, for as long as the client reads it.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/watch.go, Kubernetes 1.33.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

from kcm import errors
from kcm.api.custom.kinds import CustomResource
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.computed_kinds import is_computed
from kcm.apiserver.exchange import Exchange, Handler
from kcm.apiserver.filters.faults import FaultGate
from kcm.apiserver.http.bodies import protobuf_watch
from kcm.apiserver.http.bodies.protobuf_watch import ProtobufWatch
from kcm.apiserver.http.limits import OpenWatches
from kcm.apiserver.http.responses import Response, negotiate, prefers_protobuf
from kcm.apiserver.http.threads import Threads
from kcm.apiserver.http.websockets import WATCH_PROTOCOLS, find_channels
from kcm.apiserver.metrics import ServerMetrics
from kcm.apiserver.objects import watching
from kcm.apiserver.objects.watching import HttpWatch, WatchOptions, WatchResponse
from kcm.apiserver.request_info import RequestInfo


class Watches:
    """Answers watches. Only the event loop's thread may use it."""

    def __init__(
        self,
        cacher: Cacher,
        threads: Threads,
        metrics: ServerMetrics,
        limit: OpenWatches,
        gate: FaultGate | None,
    ) -> None:
        self._cacher = cacher
        self._threads = threads
        self._metrics = metrics
        self._limit = limit
        self._gate = gate
        self._open: set[HttpWatch] = set()

    def __len__(self) -> int:
        """Returns how many watches are open."""
        return len(self._open)

    def stop(self) -> None:
        """Ends all watches."""
        for watch in list(self._open):
            watch.stop()

    async def serve(self, exchange: Exchange, proceed: Handler) -> Response | None:
        """Returns None once a watch has ended. Raises: TooManyRequests and what a watch raises
        before it begins.
        """
        asked, info = exchange.asked, exchange.info
        if asked is None or info is None or asked.verb != "watch" or is_computed(info.resource):
            return await proceed(exchange)
        with self._limit.hold(exchange.payer):
            return await self._watch(exchange, info)

    async def _watch(self, exchange: Exchange, info: RequestInfo) -> Response | None:
        receive, send = find_channels(
            exchange.scope, exchange.receive, exchange.send, WATCH_PROTOCOLS
        )
        accept = exchange.request.header(b"accept")
        # Sockets carry text, and custom objects have no protobuf form.
        is_possible = send is exchange.send and not isinstance(info.resource, CustomResource)
        form = negotiate(accept, streams=True, protobuf=is_possible)
        is_protobuf = is_possible and prefers_protobuf(accept)
        options = WatchOptions.of(info, exchange.request.query, form)
        watch = HttpWatch(self._cacher, options, asyncio.get_running_loop())
        try:
            if self._gate is not None:
                self._gate.check_start(exchange)
            await self._threads.run(watch.subscribe, exchange.payer)
        except errors.Gone as error:  # reported in the stream, as upstream's watch cache does
            line = watching.error_line(error)
            if is_protobuf:
                body = protobuf_watch.frame_lines([line])
                return Response(body, content_type=protobuf_watch.CONTENT_TYPE)
            return Response(line)
        self._open.add(watch)
        self._metrics.count(exchange, 200)
        with self._gate.follow(watch, exchange) if self._gate else nullcontext():
            answer = WatchResponse(watch, form, self._open.discard)
            await answer(exchange.scope, receive, ProtobufWatch(send) if is_protobuf else send)
        return None
