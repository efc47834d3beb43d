"""Limits: on bodies, on answers that are being sent, and on time.

Source: staging/src/k8s.io/apiserver/pkg/server/filters/{maxinflight,timeout}.go and
staging/src/k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go, Kubernetes 1.36.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from kcm import errors
from kcm.apimachinery.durations import parse_fine_seconds
from kcm.apiserver.exchange import Exchange, Handler
from kcm.apiserver.http.limits import Answers, Bodies, InFlight, Limits
from kcm.apiserver.http.responses import Response
from kcm.apiserver.http_errors import RequestTimeout
from kcm.apiserver.request import Request, read_body


class RequestLimits:
    """Reads the body of a request, and counts it until its answer is sent, since it is in memory
    until then. Only the event loop's thread may use it.
    """

    def __init__(self, limits: Limits, in_flight: InFlight) -> None:
        self._timeout = limits.request_timeout or None
        self._in_flight = in_flight
        self._bodies = Bodies()
        self._answers = Answers()

    async def serve(self, exchange: Exchange, proceed: Handler) -> Response | None:
        """Raises: BadRequest, TooManyRequests, RequestTooLarge, RequestTimeout."""
        try:
            async with asyncio.timeout(self._seconds_for(exchange.request)):
                return await self._serve(exchange, proceed)
        except TimeoutError:
            raise RequestTimeout from None

    def _seconds_for(self, request: Request) -> float | None:
        """Returns how long a request may take: as long as its query says, and at most as long as
        the server allows. None is no limit. Raises BadRequest.
        """
        text = request.query.get("timeout", "")
        if not text:
            return self._timeout
        try:
            asked = parse_fine_seconds(text)
        except ValueError:
            raise errors.BadRequest(
                "invalid timeout specified in the request URL - time: invalid duration "
                f'"{errors.shorten(text)}"'
            ) from None
        return min(asked, self._timeout or asked) if asked > 0 else self._timeout

    async def _serve(self, exchange: Exchange, proceed: Handler) -> Response | None:
        payer, hold = exchange.payer, exchange.until_sent.enter_context
        with self._bodies.hold(payer) as held:
            with self._bodies.receive(payer):
                body = await read_body(exchange.receive, held.add)
            if body:
                exchange.request = replace(exchange.request, body=body)
            hold(self._in_flight.admit(exchange.request.method, payer))
            response = await proceed(exchange)
            if response is not None:
                hold(self._answers.hold(payer, len(response.body)))
            return response
