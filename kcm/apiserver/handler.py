"""`RequestHandler`: handles the requests that have passed all filters.

No store call blocks the event loop: short requests run in greenlets (`kcm.redisio.greenlets`), all
others in threads (`kcm.apiserver.heavy.lanes`).
"""

from __future__ import annotations

from collections.abc import Callable

from kcm.apiextensions import conversion
from kcm.apiserver.auth.authorizer import Authorizer
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.egress.conversion.converter import WebhookConverter
from kcm.apiserver.exchange import Exchange
from kcm.apiserver.filters.observed import observed
from kcm.apiserver.filters.resources import learn_kinds
from kcm.apiserver.heavy.lanes import RequestLanes
from kcm.apiserver.http.responses import Response
from kcm.apiserver.http.sending import compress
from kcm.apiserver.http_errors import PathNotFound
from kcm.apiserver.objects import status
from kcm.apiserver.request import Request
from kcm.apiserver.routes import Routes
from kcm.store.writes.observing import Observer


class RequestHandler:
    """Runs the handlers of requests where they belong."""

    def __init__(
        self,
        routes: Routes,
        lanes: RequestLanes,
        cacher: Cacher,
        *,
        authorizer: Authorizer,
        converter: WebhookConverter,
        observer: Observer | None,
    ) -> None:
        """`observer` is told who writes, and what is refused."""
        self._routes = routes
        self._lanes = lanes
        self._cacher = cacher
        self._authorizer = authorizer
        self._converter = converter
        self._observer = observer

    async def handle(self, exchange: Exchange) -> Response:
        """Returns the response of a request, also for an error."""
        return await self._lanes.run(self._build(exchange), exchange, exchange.payer)

    def _build(self, exchange: Exchange) -> Callable[[], Response]:
        """Returns the handler of a request. It writes the response for an error, too, since that
        may take long as well.
        """

        def handle() -> Response:
            return self._handle(exchange)

        if self._observer is not None:
            handle = observed(self._observer, exchange, handle)

        def answer() -> Response:
            try:
                return handle()
            except Exception as error:  # noqa: BLE001 - no trace may leave the server
                return status.respond_failure(error, exchange.remarks.warnings)

        return answer

    def _handle(self, exchange: Exchange) -> Response:
        request, info = exchange.request, exchange.info
        if info is None:
            response = self._page(request)
        else:
            caller = exchange.caller(self._authorizer)
            with conversion.asking(self._converter):
                response = self._routes.objects(request, info, caller, exchange.remarks)
        return compress(response, request.header(b"accept-encoding"))

    def _page(self, request: Request) -> Response:
        try:
            return self._routes.page(request)
        except PathNotFound:
            if not request.path.startswith("/apis/"):
                raise
            learn_kinds(self._cacher)  # perhaps a group that was defined a moment ago
            return self._routes.page(request)
