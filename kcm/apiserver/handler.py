"""`RequestHandler`: handles the requests that have passed all filters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kcm.apiextensions import conversion
from kcm.apiserver.auth.authorizer import Authorizer
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.egress.conversion.converter import WebhookConverter
from kcm.apiserver.exchange import Exchange
from kcm.apiserver.filters.observed import observed
from kcm.apiserver.filters.resources import learn_kinds
from kcm.apiserver.http.bodies import protobuf
from kcm.apiserver.http.responses import Response
from kcm.apiserver.http.sending import present
from kcm.apiserver.http_errors import PathNotFound
from kcm.apiserver.objects import status
from kcm.apiserver.pages import Pages
from kcm.apiserver.request import Request
from kcm.apiserver.routes import Routes
from kcm.store.writes.observing import Observer


class RequestHandler:
    """Handles requests. It may block, so `kcm.apiserver.heavy.lanes` decides where it runs."""

    def __init__(
        self,
        pages: Pages,
        routes: Routes,
        cacher: Cacher,
        *,
        authorizer: Authorizer,
        converter: WebhookConverter,
        observer: Observer | None,
    ) -> None:
        """`observer` is told who writes, and what is refused."""
        self._pages = pages
        self._routes = routes
        self._cacher = cacher
        self._authorizer = authorizer
        self._converter = converter
        self._observer = observer

    def handle(self, exchange: Exchange) -> Response:
        """Returns the response to a request. It writes that for an error, too, since it may take
        long as well.
        """
        handle: Callable[[], Response] = partial(self._handle, exchange)
        try:
            if self._observer is not None:
                handle = observed(self._observer, exchange, handle)
            response = handle()
        except Exception as error:  # noqa: BLE001 - no trace may leave the server
            response = status.respond_failure(error, exchange.remarks.warnings)
        request = exchange.request
        return present(protobuf.respond(response, request), request)

    def _handle(self, exchange: Exchange) -> Response:
        request, info = exchange.request, exchange.info
        if info is None:
            return self._page(request)
        caller = exchange.caller(self._authorizer)
        with conversion.asking(self._converter):
            return self._routes.objects(request, info, caller, exchange.remarks)

    def _page(self, request: Request) -> Response:
        try:
            return self._pages.page(request)
        except PathNotFound:
            if not request.path.startswith("/apis/"):
                raise
            learn_kinds(self._cacher)  # perhaps a group that was defined a moment ago
            return self._pages.page(request)
