"""The gate that every request passes first: authentication, impersonation and authorization.

The order is upstream's. Only afterwards is it looked up whether there is such a path at all.

Source: staging/src/k8s.io/apiserver/pkg/server/config.go (DefaultBuildHandlerChain), Kubernetes
1.33.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from starlette.types import Scope

from kcm.apiserver.auth import attributes
from kcm.apiserver.auth.access import AccessRules, is_public
from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.auth.authorizer import Authorizer, Caller
from kcm.apiserver.auth.certificates import PeerCertificate
from kcm.apiserver.auth.impersonation import impersonate
from kcm.apiserver.auth.users import ANYBODY, User
from kcm.apiserver.refusals import PathNotFound, Unauthorized
from kcm.apiserver.request import Request
from kcm.apiserver.target import RequestTarget

PEER = "kcm.peer_certificate"  # the key in the extensions of an ASGI scope


class DecisionCounter(Protocol):
    """Counts decisions, for the metrics."""

    def authentication(self, result: str, user: str = "") -> None: ...

    def authorization(self, result: str) -> None: ...


@dataclass
class RequestState:
    """What is known of a request, as far as it has come."""

    request: Request
    real: User | None = None  # who sent it
    user: User = ANYBODY  # on whose behalf
    asked: Attributes | None = None
    target: RequestTarget | None = None


class Gate:
    """Decides whether a request is admitted: who sends it, and whether that user may do what it
    asks.
    """

    def __init__(
        self, access: AccessRules, authorizer: Authorizer, counts: DecisionCounter
    ) -> None:
        self.access = access
        self.authorizer = authorizer
        self._counts = counts

    def admit(self, case: RequestState, scope: Scope) -> None:
        """Admits a request. Raises BadRequest, Forbidden, StoreUnavailable and Unauthorized."""
        self.access.check(case.request)
        case.real = self._identify(case.request, scope)
        if case.real is None:
            if is_public(case.request):
                return
            raise Unauthorized
        case.user = case.real
        if is_public(case.request):
            return
        acting = impersonate(case.real, case.request.fields, self.authorizer)
        case.user = acting or case.real
        case.asked = attributes.of(case.request)
        try:
            self.caller(case).require(case.asked)
        except Exception:  # whatever it is, it is no permission; raised again
            self._counts.authorization("denied")
            raise
        self._counts.authorization("allowed")

    def caller(self, case: RequestState) -> Caller:
        """Returns the request's user, for handlers."""
        return Caller(case.user, self.authorizer)

    def set_target(self, case: RequestState, target: RequestTarget) -> None:
        """Notes what will be served. Raises PathNotFound when that is not what was authorized."""
        if case.asked is None or not attributes.agree(case.asked, target):
            raise PathNotFound
        case.target = target

    def _identify(self, request: Request, scope: Scope) -> User | None:
        try:
            user = self.access.user(request, _peer(scope))
        except Unauthorized:
            self._counts.authentication("failure")
            raise
        if user is not None:
            self._counts.authentication("success", user.name)
        return user


def _peer(scope: Scope) -> PeerCertificate | None:
    certificate = scope.get("extensions", {}).get(PEER)
    return certificate if isinstance(certificate, PeerCertificate) else None
