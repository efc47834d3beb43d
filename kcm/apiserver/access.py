"""Who may speak to the server.

On a loopback address, requests must name this machine in their Host header, so
that no web page gets in by DNS rebinding. Everything but the health checks and
the version needs the bearer token, unless anonymous access was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kcm import errors
from kcm.apiserver.refusals import Unauthorized
from kcm.listening import bears, is_loopback_host

PUBLIC = ("/healthz", "/livez", "/readyz", "/version")  # upstream's system:public-info-viewer


@dataclass(frozen=True)
class Access:
    """The rules."""

    token: str = field(default="", repr=False)
    anonymous: bool = False
    loopback: bool = True

    def check(self, path: str, headers: Mapping[bytes, bytes]) -> None:
        """Let a request pass. Raises: Forbidden, Unauthorized."""
        if self.loopback and not is_loopback_host(headers.get(b"host", b"").decode("latin-1")):
            raise errors.Forbidden("Forbidden: the Host header does not name this machine")
        given = headers.get(b"authorization")
        if given is None:
            public = path.startswith(PUBLIC) and path.split("/")[1] in _PUBLIC_NAMES
            if self.anonymous or public:
                return
            raise Unauthorized
        if not bears(given.decode("latin-1"), self.token):
            raise Unauthorized


_PUBLIC_NAMES = frozenset(path[1:] for path in PUBLIC)
