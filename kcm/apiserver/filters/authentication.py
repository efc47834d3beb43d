"""Authentication: who sends a request.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/filters/authentication.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.apiserver.auth.access import AccessRules
from kcm.apiserver.auth.attributes import ANYBODY, User
from kcm.apiserver.auth.authenticators import PeerCertificate
from kcm.apiserver.exchange import Exchange, Handler
from kcm.apiserver.http.connection import AUTHENTICATED, PEER
from kcm.apiserver.http.responses import Response
from kcm.apiserver.http_errors import Unauthorized
from kcm.apiserver.metrics import ServerMetrics


class Authentication:
    """Sets the sender of a request."""

    def __init__(self, access: AccessRules, metrics: ServerMetrics) -> None:
        self._access = access
        self._metrics = metrics

    async def serve(self, exchange: Exchange, proceed: Handler) -> Response | None:
        """Raises: Unauthorized for wrong credentials, or none on a path that is not public."""
        exchange.sender = sender = self._identify(exchange)
        if sender is not None:
            exchange.user = sender
        elif exchange.asked is not None:
            raise Unauthorized
        return await proceed(exchange)

    def _identify(self, exchange: Exchange) -> User | None:
        scope, extensions = exchange.scope, exchange.scope.get("extensions", {})
        client, certificate = scope.get("client"), extensions.get(PEER)
        peer = certificate if isinstance(certificate, PeerCertificate) else None
        try:
            user = self._access.user(exchange.request, peer, str(client[0]) if client else "")
        except Unauthorized:
            self._metrics.authentication("failure")
            raise
        if user is not None:
            self._metrics.authentication("success", user.name)
            if user is not ANYBODY and (report := extensions.get(AUTHENTICATED)):
                report()
        return user
