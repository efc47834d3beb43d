"""Aggregation: requests for APIs that other servers serve are passed on to them.

Source: staging/src/k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.apiserver.aggregation.aggregation import Aggregation, is_long
from kcm.apiserver.egress.relaying import ProxiedRequest
from kcm.apiserver.exchange import Exchange, Handler
from kcm.apiserver.http.responses import Response
from kcm.apiserver.metrics import ServerMetrics
from kcm.apiserver.streams import Streams


class AggregationFilter:
    """Answers with what another server answers."""

    def __init__(self, aggregation: Aggregation, streams: Streams, metrics: ServerMetrics) -> None:
        self._aggregation = aggregation
        self._streams = streams
        self._metrics = metrics

    async def serve(self, exchange: Exchange, proceed: Handler) -> Response | None:
        """Returns None once the other server's answer was passed on."""
        api = self._aggregation.find(exchange.request.path)
        if api is None:
            return await proceed(exchange)
        proxied = ProxiedRequest(
            exchange.request,
            exchange.user,
            exchange.scope,
            exchange.receive,
            exchange.send,
            began=lambda code: self._metrics.count(exchange, code),
        )
        work = self._aggregation.proxy.pass_on(api, proxied, long=is_long(exchange.asked))
        await self._streams.run(work)
        return None
