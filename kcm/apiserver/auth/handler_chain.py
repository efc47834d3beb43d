"""The handler chain that every request passes first: authentication, impersonation, authorization.

The order is upstream's. Whether the path exists is looked up only afterwards.

Source: staging/src/k8s.io/apiserver/pkg/server/config.go (DefaultBuildHandlerChain), Kubernetes
1.33.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from starlette.types import Scope

from kcm.apiserver.auth import attributes
from kcm.apiserver.auth.access import AccessRules, is_public
from kcm.apiserver.auth.attributes import ANYBODY, Attributes, User
from kcm.apiserver.auth.authorizer import Authorizer, Caller
from kcm.apiserver.auth.certificates import PeerCertificate
from kcm.apiserver.auth.impersonation import impersonate
from kcm.apiserver.http_errors import PathNotFound, Unauthorized
from kcm.apiserver.remarks import Remarks
from kcm.apiserver.request import Request
from kcm.apiserver.request_info import RequestInfo

# Keys in the extensions of an ASGI scope.
PEER = "kcm.peer_certificate"
AUTHENTICATED = "kcm.authenticated"  # a function, called when a request had valid credentials


class DecisionCounter(Protocol):
    """Counts the decisions of the handler chain for the metrics."""

    def authentication(self, result: str, user: str = "") -> None: ...

    def authorization(self, result: str) -> None: ...


@dataclass
class RequestState:
    """A request, and what the handler chain has found out about it so far.

    `sender` is who authenticated, `user` is on whose behalf the request acts; they differ when the
    sender impersonates another user. `asked` is None for public paths, `info` until it is looked
    up.
    """

    request: Request
    sender: User | None = None
    user: User = ANYBODY  # on whose behalf the request acts
    asked: Attributes | None = None
    info: RequestInfo | None = None
    remarks: Remarks = field(default_factory=Remarks)


class HandlerChain:
    """Authenticates and authorizes requests."""

    def __init__(
        self, access: AccessRules, authorizer: Authorizer, counts: DecisionCounter
    ) -> None:
        self.access = access
        self.authorizer = authorizer
        self._counts = counts

    def admit(self, state: RequestState, scope: Scope) -> None:
        """Authenticates and authorizes a request, and fills in `state` accordingly.

        Raises BadRequest, Forbidden, StoreUnavailable and Unauthorized.
        """
        self.access.check(state.request)
        state.sender = self._identify(state.request, scope)
        if state.sender is None:
            if is_public(state.request):
                return
            raise Unauthorized
        state.user = state.sender
        if is_public(state.request):
            return
        acting = impersonate(state.sender, state.request.fields, self.authorizer)
        state.user = acting or state.sender
        state.asked = attributes.of(state.request)
        try:
            self.caller(state).require(state.asked)
        except Exception:  # every failure counts as a denial; raised again
            self._counts.authorization("denied")
            raise
        self._counts.authorization("allowed")

    def caller(self, state: RequestState) -> Caller:
        """Returns the user of a request together with the authorizer, for handlers."""
        return Caller(state.user, self.authorizer)

    def set_info(self, state: RequestState, info: RequestInfo) -> None:
        """Sets the request info. Raises PathNotFound unless it is what was authorized."""
        if state.asked is None or not attributes.agree(state.asked, info):
            raise PathNotFound
        state.info = info

    def _identify(self, request: Request, scope: Scope) -> User | None:
        try:
            peer = scope.get("client")
            address = str(peer[0]) if peer else ""
            user = self.access.user(request, _peer(scope), address)
        except Unauthorized:
            self._counts.authentication("failure")
            raise
        if user is not None:
            self._counts.authentication("success", user.name)
            if user is not ANYBODY and (note := scope.get("extensions", {}).get(AUTHENTICATED)):
                note()
        return user


def _peer(scope: Scope) -> PeerCertificate | None:
    certificate = scope.get("extensions", {}).get(PEER)
    return certificate if isinstance(certificate, PeerCertificate) else None
