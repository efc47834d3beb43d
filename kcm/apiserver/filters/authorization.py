"""Authorization: whether a user may do what a request asks for.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/filters/authorization.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm import errors
from kcm.apiserver.auth.authorizer import Authorizer
from kcm.apiserver.exchange import Exchange, Handler
from kcm.apiserver.filters.observed import observe_denial
from kcm.apiserver.http.responses import Response
from kcm.apiserver.metrics import ServerMetrics
from kcm.store.writes.observing import Observer


class Authorization:
    """Refuses what the user of a request may not do. `observer` is told of it."""

    def __init__(
        self, authorizer: Authorizer, metrics: ServerMetrics, observer: Observer | None
    ) -> None:
        self._authorizer = authorizer
        self._metrics = metrics
        self._observer = observer

    async def serve(self, exchange: Exchange, proceed: Handler) -> Response | None:
        """Raises: Forbidden, StoreUnavailable."""
        if exchange.asked is not None:
            try:
                exchange.caller(self._authorizer).require(exchange.asked)
            except Exception as error:  # every failure counts as a denial; raised again
                self._metrics.authorization("denied")
                if self._observer is not None and isinstance(error, errors.Forbidden):
                    observe_denial(self._observer, exchange, error)
                raise
            self._metrics.authorization("allowed")
        return await proceed(exchange)
