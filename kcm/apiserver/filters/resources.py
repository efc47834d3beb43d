"""Resources: which resource is served at the path of a request, if it is the path of one."""

from __future__ import annotations

from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.apiserver.auth import attributes
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.exchange import Exchange, Handler
from kcm.apiserver.http.responses import Response
from kcm.apiserver.http.threads import Threads
from kcm.apiserver.http_errors import PathNotFound
from kcm.apiserver.pages import is_page
from kcm.apiserver.request_info import RequestInfo, parse


class Resources:
    """Sets the resource of a request."""

    def __init__(self, cacher: Cacher, threads: Threads) -> None:
        self._cacher = cacher
        self._threads = threads

    async def serve(self, exchange: Exchange, proceed: Handler) -> Response | None:
        """Raises: PathNotFound unless what is served is what was authorized, StoreUnavailable."""
        if not is_page(exchange.request.path):
            info = await self._find(exchange)
            if exchange.asked is None or not attributes.agree(exchange.asked, info):
                raise PathNotFound
            exchange.info = info
        return await proceed(exchange)

    async def _find(self, exchange: Exchange) -> RequestInfo:
        path = exchange.request.path
        try:
            return parse(path, self._cacher.scheme)
        except PathNotFound:  # perhaps a custom kind that was defined a moment ago
            await self._threads.run(lambda: learn_kinds(self._cacher), exchange.payer)
            return parse(path, self._cacher.scheme)


def learn_kinds(cacher: Cacher) -> None:
    """Waits until every custom kind is there whose definition was written before this call.

    The cacher adds kinds to the scheme as it reads their definitions. Raises StoreUnavailable.
    """
    cacher.wait_until_fresh(CustomResourceDefinition.resource)
