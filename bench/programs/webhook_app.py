"""Admits every request, and adds a label where the path is `/mutate`.

    python -m bench.programs.webhook_app STATE

STATE has the certificate. The program prints its URL and serves until it is killed.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from kcm.apiserver import credentials
from kcm.apiserver.http.limits import Limits
from kcm.apiserver.http.unauthenticated import UnauthenticatedConnections
from kcm.apiserver.request import read_body
from kcm.apiserver.serving import Address, ApiHttpServer, bind, url_of

_ADD = [{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}]
_PATCH = {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(_ADD).encode()).decode()}


class Webhook:
    """An app that answers AdmissionReviews."""

    def __init__(self) -> None:
        self.limits = Limits()
        self.unauthenticated = UnauthenticatedConnections(0, CollectorRegistry())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        review = json.loads(await read_body(receive, lambda size: None))
        asked = review.pop("request")
        more = _PATCH if scope["path"] == "/mutate" else {}
        review["response"] = {"uid": asked["uid"], "allowed": True, **more}
        body = json.dumps(review).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def begin_shutdown(self) -> None:
        """Does nothing; nobody asks this app."""

    def stop_watches(self) -> None:
        """Does nothing; this app has no watches."""


def main() -> None:
    listener = bind(Address(port=0))
    certificate = credentials.certificate(Path(sys.argv[1]))
    server = ApiHttpServer(Webhook(), certificate)
    sys.stdout.write(url_of(listener, certificate) + "\n")
    sys.stdout.flush()
    asyncio.run(server.serve(sockets=[listener]))


if __name__ == "__main__":
    main()
