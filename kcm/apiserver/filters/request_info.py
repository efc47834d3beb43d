"""Request info: what a request asks for, by its path and its method alone.

So nothing is revealed about a path before its request was authorized.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/filters/requestinfo.go, Kubernetes 1.33. The
checks of its headers are kcm's: a web page must not get access by DNS rebinding.
"""

from __future__ import annotations

from kcm.apiserver.auth import attributes
from kcm.apiserver.auth.access import AccessRules, is_public
from kcm.apiserver.exchange import Exchange, Handler
from kcm.apiserver.http.responses import Response


class RequestInfoFilter:
    """Sets what is asked for, unless the path is public."""

    def __init__(self, access: AccessRules) -> None:
        self._access = access

    async def serve(self, exchange: Exchange, proceed: Handler) -> Response | None:
        """Raises: BadRequest for what cannot be read, Forbidden for a wrong Host header."""
        request = exchange.request
        self._access.check(request)
        if not is_public(request):
            exchange.asked = attributes.of(request)
        return await proceed(exchange)
