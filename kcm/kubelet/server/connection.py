"""A connection to the node's HTTP API, which knows who its client is.

Source: cmd/kubelet/app/auth.go, Kubernetes 1.33. Departure: access is not asked of the API server;
clients in system:masters have it, others have not.
"""

from __future__ import annotations

import asyncio
import time
from ssl import cert_time_to_seconds

from starlette.types import Scope

from kcm.http.upgrades import UpgradableConnection

MASTERS = "system:masters"
_TRUSTED = "kcm.trusted"  # the key in the extensions of an ASGI scope


class NodeConnection(UpgradableConnection):
    """A connection whose requests carry until when its client's certificate gives access."""

    _trusted_until = 0.0  # seconds since 1970; 0 is never

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        peer = tls.getpeercert() if tls is not None else None
        if not peer:  # TLS has verified the signature of one that is there
            return
        pairs = [pair for part in peer.get("subject", ()) for pair in part]
        if ("organizationName", MASTERS) in pairs:
            self._trusted_until = float(cert_time_to_seconds(peer["notAfter"]))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {_TRUSTED: {"until": self._trusted_until}}


def is_trusted(scope: Scope) -> bool:
    """Reports whether the client has shown a certificate that gives access and is still valid."""
    until = ((scope.get("extensions") or {}).get(_TRUSTED) or {}).get("until", 0.0)
    return bool(until) and time.time() < until
