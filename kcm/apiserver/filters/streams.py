"""Streams: logs, connections to containers, and requests that are proxied to pods, Services and
nodes.
"""

from __future__ import annotations

from kcm.apiserver.exchange import Exchange, Handler
from kcm.apiserver.http.responses import Response
from kcm.apiserver.streams import Streams


class StreamFilter:
    """Answers what lasts as long as its client reads."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    async def serve(self, exchange: Exchange, proceed: Handler) -> Response | None:
        """Returns None once a stream has ended."""
        info = exchange.info
        if info is not None and await self._streams.serve(
            exchange, info, exchange.scope, exchange.receive, exchange.send
        ):
            return None
        return await proceed(exchange)
