"""The one configuration of uvicorn that all of kcm's HTTP servers have."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

DEFAULT_KEEP_ALIVE = 5  # seconds; uvicorn's own


@dataclass(frozen=True)
class TLSFiles:
    """A certificate with its key, and whose client certificates tell who a client is."""

    certificate: Path | str
    key: Path | str
    client_authorities: Path | str | None = None


def build_config(
    app: Any,
    *,
    tls: TLSFiles | None = None,
    connection: type[asyncio.Protocol] | None = None,
    keep_alive: int = DEFAULT_KEEP_ALIVE,
    graceful_shutdown: int | None = None,
) -> uvicorn.Config:
    """Returns uvicorn's configuration for an ASGI app.

    Without `tls` the server speaks plain HTTP; a client certificate of another authority than
    `tls.client_authorities` ends the handshake. `connection` replaces uvicorn's protocol and
    then handles upgrades itself. `keep_alive` is the seconds that an idle connection stays open,
    `graceful_shutdown` those that requests have to end when the server stops.
    """
    authorities = tls.client_authorities if tls else None
    return uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,  # whoever connects is the client
        http=connection or "auto",
        ws="none",
        timeout_keep_alive=keep_alive,
        timeout_graceful_shutdown=graceful_shutdown,
        ssl_certfile=tls.certificate if tls else None,
        ssl_keyfile=str(tls.key) if tls else None,
        ssl_ca_certs=str(authorities) if authorities else None,
        ssl_cert_reqs=ssl.CERT_OPTIONAL if authorities else ssl.CERT_NONE,
    )
