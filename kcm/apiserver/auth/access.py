"""The rules about who may connect to the server at all.

On a loopback address, the Host header of a request must name this machine, so that no web page gets
access by DNS rebinding. A client without credentials is `system:anonymous` if anonymous access is
enabled. Otherwise it may read what upstream's system:public-info-viewer may: health and version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from kcm import errors
from kcm.apiserver.auth.attributes import ADMIN, ANYBODY, User, as_authenticated
from kcm.apiserver.auth.authenticators import (
    Authenticator,
    Certificates,
    Chain,
    Credentials,
    PeerCertificate,
    Tokens,
)
from kcm.apiserver.request import Request
from kcm.http.listening import is_loopback_host

PUBLIC = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
# of two such headers, programs on the way might use different ones
_ONCE = (b"host", b"authorization")


@dataclass(frozen=True)
class AccessRules:
    """The rules by which users are authenticated.

    `token` is the administrator's token, `users` has other users by their tokens, and `loopback`
    says that the server listens on a loopback address only. `further` authenticators are tried
    after these.
    """

    token: str = field(default="", repr=False)
    anonymous: bool = False
    loopback: bool = True
    users: Mapping[str, User] = field(default_factory=dict, repr=False)
    further: tuple[Authenticator, ...] = ()

    @cached_property
    def tokens(self) -> Tokens:
        """Returns the authenticator for all tokens. The administrator's token takes precedence."""
        return Tokens(dict(chain(self.users.items(), [(self.token, ADMIN)])))

    @cached_property
    def _chain(self) -> Chain:
        return Chain((Certificates(), self.tokens, *self.further))

    def check(self, request: Request) -> None:
        """Raises BadRequest for repeated headers, and Forbidden for a wrong Host header."""
        for name in _ONCE:
            if request.count(name) > 1:
                raise errors.BadRequest(f"too many {name.decode()} headers")
        if self.loopback and not is_loopback_host(request.header(b"host")):
            raise errors.Forbidden("Forbidden: the Host header does not name this machine")

    def user(
        self, request: Request, certificate: PeerCertificate | None = None, peer: str = ""
    ) -> User | None:
        """Returns the sender of a request, None if it has no credentials and must have some.

        `peer` is the address that the request came from. Raises Unauthorized for wrong credentials.
        """
        given = request.headers.get(b"authorization")
        authorization = None if given is None else given.decode("latin-1")
        user = self._chain.authenticate(Credentials(authorization, certificate, peer))
        if user is not None:
            return as_authenticated(user)
        return ANYBODY if self.anonymous else None


def is_public(request: Request) -> bool:
    """Reports whether a request may be handled without authentication."""
    return request.method in {"GET", "HEAD"} and request.path in PUBLIC
