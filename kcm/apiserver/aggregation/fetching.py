"""Fetches documents from the servers of other APIs: bounded in size and time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kcm.apiserver.aggregation.connections import (
    BrokenResponse,
    Call,
    ServerConnections,
    ServerResponse,
    ServerTrust,
    UntrustedServer,
)
from kcm.apiserver.aggregation.identity import identify
from kcm.apiserver.aggregation.index import RemoteApi
from kcm.apiserver.auth.users import User
from kcm.apiserver.backends.faults import CallFailed
from kcm.apiserver.backends.services import Address

NOT_MODIFIED, OK, NOT_FOUND = 304, 200, 404


@dataclass(frozen=True)
class Document:
    """The response to a fetch."""

    code: int
    body: bytes = field(default=b"", repr=False)
    content_type: str = ""
    etag: str = ""


class Fetcher:
    """Fetches documents. It belongs to one event loop."""

    def __init__(self, connections: ServerConnections) -> None:
        self._connections = connections

    async def get(
        self,
        api: RemoteApi,
        address: Address,
        path: str,
        user: User,
        *,
        accept: str = "application/json",
        etag: str = "",
        timeout: float,
        most: int,
        trust: ServerTrust | None = None,
    ) -> Document:
        """Returns what an API's server has at a path, as `user`.

        With `etag`, the code is 304 if the document is still that one. `timeout` is in seconds, for
        all of it, `most` in bytes; for 0 the body is not read. Raises CallFailed.
        """
        to = trust or ServerTrust(api.service.server_name, api.authority, api.insecure)
        headers = [(b"accept", accept.encode()), *identify(user)]
        if etag:
            headers.append((b"if-none-match", etag.encode()))
        call = Call("GET", path.encode(), headers, keep=False)
        try:
            async with (
                asyncio.timeout(timeout),
                self._connections.request(to, address, call) as response,
            ):
                return await _read(response, most)
        except TimeoutError:
            raise CallFailed("context deadline exceeded", timed_out=True) from None
        except (UntrustedServer, BrokenResponse) as error:
            raise CallFailed(error.message) from None


async def _read(response: ServerResponse, most: int) -> Document:
    body = bytearray()
    if not most:
        return Document(response.status)
    async for part in response.body:
        body += part
        if len(body) > most:
            raise CallFailed(f"the response is larger than {most} bytes")
    headers: Mapping[bytes, bytes] = {name.lower(): value for name, value in response.headers}
    return Document(
        response.status,
        bytes(body),
        headers.get(b"content-type", b"").decode("latin-1"),
        headers.get(b"etag", b"").decode("latin-1"),
    )


def parse_json(document: Document) -> Any:
    """Returns the JSON of a document. Raises ValueError."""
    try:
        return json.loads(document.body)
    except RecursionError:
        raise ValueError("the document is nested too deeply") from None
