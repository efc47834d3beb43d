"""What every request passes before anything looks at it: who, as whom, and whether.

The order is upstream's: authentication, impersonation, authorization, and only
then whether there is such a thing at all.

Source: staging/src/k8s.io/apiserver/pkg/server/config.go (DefaultBuildHandlerChain),
Kubernetes 1.33.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from starlette.types import Scope

from kcm.apiserver.auth import attributes
from kcm.apiserver.auth.access import Access, is_public
from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.auth.authorizer import Authorizer, Caller
from kcm.apiserver.auth.certificates import PeerCertificate
from kcm.apiserver.auth.impersonation import impersonated
from kcm.apiserver.auth.users import ANYBODY, User
from kcm.apiserver.refusals import PathNotFound, Unauthorized
from kcm.apiserver.request import Request
from kcm.apiserver.target import Target

PEER = "kcm.peer_certificate"  # in the extensions of an ASGI scope


class Counts(Protocol):
    """Where decisions are counted; the metrics."""

    def authentication(self, result: str, user: str = "") -> None: ...

    def authorization(self, result: str) -> None: ...


@dataclass
class Case:
    """What is known of a request, as far as it came."""

    request: Request
    real: User | None = None  # who sent it
    user: User = ANYBODY  # on whose behalf
    asked: Attributes | None = None
    target: Target | None = None


class Gate:
    """Lets requests in."""

    def __init__(self, access: Access, authorizer: Authorizer, counts: Counts) -> None:
        self.access = access
        self.authorizer = authorizer
        self._counts = counts

    def admit(self, case: Case, scope: Scope) -> None:
        """Raises: BadRequest, Forbidden, StoreUnavailable, Unauthorized."""
        self.access.check(case.request)
        case.real = self._identify(case.request, scope)
        if case.real is None:
            if is_public(case.request):
                return
            raise Unauthorized
        case.user = case.real
        if is_public(case.request):
            return
        acting = impersonated(case.real, case.request.fields, self.authorizer)
        case.user = acting or case.real
        case.asked = attributes.of(case.request)
        try:
            self.caller(case).require(case.asked)
        except Exception:  # whatever it is, it is no leave; raised again
            self._counts.authorization("denied")
            raise
        self._counts.authorization("allowed")

    def caller(self, case: Case) -> Caller:
        """The case's user, for handlers."""
        return Caller(case.user, self.authorizer)

    def aim(self, case: Case, target: Target) -> None:
        """Note what will be served. Raises PathNotFound when that is not what was authorized."""
        if case.asked is None or not attributes.agree(case.asked, target):
            raise PathNotFound
        case.target = target

    def _identify(self, request: Request, scope: Scope) -> User | None:
        try:
            found = self.access.user(request, _peer(scope))
        except Unauthorized:
            self._counts.authentication("failure")
            raise
        if found is not None:
            self._counts.authentication("success", found.name)
        return found


def _peer(scope: Scope) -> PeerCertificate | None:
    found = scope.get("extensions", {}).get(PEER)
    return found if isinstance(found, PeerCertificate) else None
