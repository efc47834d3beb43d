"""The uvicorn configuration of all HTTP servers of kcm."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

DEFAULT_KEEP_ALIVE = 5  # seconds; uvicorn's own


@dataclass(frozen=True)
class TLSFiles:
    """A certificate and its key, and the authorities of client certificates."""

    certificate: Path | str
    key: Path | str
    client_authorities: Path | str | None = None


def build_config(
    app: Any,
    *,
    tls: TLSFiles | None = None,
    connection: Callable[..., asyncio.Protocol] | None = None,
    keep_alive: int = DEFAULT_KEEP_ALIVE,
    graceful_shutdown: int | None = None,
) -> uvicorn.Config:
    """Returns uvicorn's configuration for an ASGI app.

    Without `tls` the server uses plain HTTP. A client certificate that none of
    `tls.client_authorities` signed fails the handshake. `connection` replaces uvicorn's protocol
    and must then handle upgrades itself. `keep_alive` is the seconds for which an idle connection
    stays open, `graceful_shutdown` the seconds that requests get to finish when the server stops.
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
        proxy_headers=False,  # the peer of the connection is the client
        http=connection or "auto",  # type: ignore[arg-type] # only called, so no class is needed
        ws="none",
        timeout_keep_alive=keep_alive,
        timeout_graceful_shutdown=graceful_shutdown,
        ssl_certfile=tls.certificate if tls else None,
        ssl_keyfile=str(tls.key) if tls else None,
        ssl_ca_certs=str(authorities) if authorities else None,
        ssl_cert_reqs=ssl.CERT_OPTIONAL if authorities else ssl.CERT_NONE,
    )
