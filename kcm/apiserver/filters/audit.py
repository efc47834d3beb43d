"""Audit: counts every request in the metrics, logs every write, and writes audit events.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/filters/audit.go and endpoints/metrics/metrics.go
(InstrumentHandlerFunc), Kubernetes 1.33.
"""

from __future__ import annotations

import time

from kcm.apiserver.exchange import Exchange, Handler
from kcm.apiserver.filters.auditing.trail import AuditTrail
from kcm.apiserver.http.responses import Response
from kcm.apiserver.metrics import ServerMetrics


class Audit:
    """Counts a request before its answer is sent. What answers by itself counts by itself."""

    def __init__(self, metrics: ServerMetrics, trail: AuditTrail | None = None) -> None:
        """`trail` writes audit events, if the server has an audit policy."""
        self._metrics = metrics
        self._trail = trail

    async def serve(self, exchange: Exchange, proceed: Handler) -> Response | None:
        """Returns the answer, which it counts."""
        started = time.perf_counter()
        received = self._trail.now() if self._trail is not None else None
        response = await proceed(exchange)
        if response is not None:
            self._metrics.count(exchange, response.code, time.perf_counter() - started)
        if self._trail is not None and received is not None:
            self._trail.note(exchange, response, received)
        return response
