"""Who may speak to the server.

On a loopback address, requests must name this machine in their Host header, so
that no web page gets in by DNS rebinding. Whoever brings no credentials is
`system:anonymous` where anonymous access was asked for, and else sees no more
than upstream's system:public-info-viewer: health and version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from kcm import errors
from kcm.apiserver.auth.authenticators import Certificates, Chain, Credentials, Tokens
from kcm.apiserver.auth.certificates import PeerCertificate
from kcm.apiserver.auth.users import ADMIN, ANYBODY, User, authenticated
from kcm.apiserver.request import Request
from kcm.http.listening import is_loopback_host

PUBLIC = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
_ONCE = (b"host", b"authorization")  # of two, one reader might see the first, another the last


@dataclass(frozen=True)
class Access:
    """The rules: `token` is the administrator's, `users` are others by their tokens."""

    token: str = field(default="", repr=False)
    anonymous: bool = False
    loopback: bool = True
    users: Mapping[str, User] = field(default_factory=dict, repr=False)

    @cached_property
    def tokens(self) -> Tokens:
        """The bearer tokens that are known; the administrator's wins."""
        return Tokens(dict(chain(self.users.items(), [(self.token, ADMIN)])))

    @cached_property
    def _chain(self) -> Chain:
        return Chain((Certificates(), self.tokens))

    def check(self, request: Request) -> None:
        """Let a request come near. Raises: BadRequest, Forbidden."""
        for name in _ONCE:
            if request.count(name) > 1:
                raise errors.BadRequest(f"too many {name.decode()} headers")
        if self.loopback and not is_loopback_host(request.header(b"host")):
            raise errors.Forbidden("Forbidden: the Host header does not name this machine")

    def user(self, request: Request, certificate: PeerCertificate | None = None) -> User | None:
        """Who sent it; None for somebody unknown. Raises Unauthorized for wrong credentials."""
        given = request.headers.get(b"authorization")
        authorization = None if given is None else given.decode("latin-1")
        found = self._chain.authenticate(Credentials(authorization, certificate))
        if found is not None:
            return authenticated(found)
        return ANYBODY if self.anonymous else None


def is_public(request: Request) -> bool:
    """Whether anybody may see this."""
    return request.method in {"GET", "HEAD"} and request.path in PUBLIC
