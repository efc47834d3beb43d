"""Responds with files: the baseline, on the HTTP server that the API server uses.

    python -m bench.api.constant_app FOLDER STATE

The last part of a request's path is the name of the file in FOLDER; STATE has the API server's
certificate. The program prints its URL and serves until it is killed.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from kcm.apiserver import credentials
from kcm.apiserver.http.limits import Limits
from kcm.apiserver.http.unauthenticated import UnauthenticatedConnections
from kcm.apiserver.request import read_body
from kcm.apiserver.serving import Address, ApiHttpServer, bind, url_of


class Constant:
    """An app that reads each request whole and responds with the bytes of a file."""

    def __init__(self, folder: Path) -> None:
        self.limits = Limits()
        self.unauthenticated = UnauthenticatedConnections(0, CollectorRegistry())
        self._folder = folder
        self._bodies: dict[str, bytes] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await read_body(receive, lambda size: None)
        body = self._body(scope["path"].rpartition("/")[2])
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _body(self, name: str) -> bytes:
        if name not in self._bodies:
            self._bodies[name] = (self._folder / name).read_bytes()
        return self._bodies[name]

    def begin_shutdown(self) -> None:
        """Does nothing; nobody asks this app."""

    def stop_watches(self) -> None:
        """Does nothing; this app has no watches."""


def main() -> None:
    listener = bind(Address(port=0))
    certificate = credentials.certificate(Path(sys.argv[2]))
    server = ApiHttpServer(Constant(Path(sys.argv[1])), certificate)
    sys.stdout.write(url_of(listener, certificate) + "\n")
    sys.stdout.flush()
    asyncio.run(server.serve(sockets=[listener]))


if __name__ == "__main__":
    main()
