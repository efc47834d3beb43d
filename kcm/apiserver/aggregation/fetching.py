"""Fetches documents from the servers of other APIs: bounded in size and time."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from kcm.apiserver.aggregation.identity import identify
from kcm.apiserver.aggregation.index import RemoteApi
from kcm.apiserver.auth.attributes import User
from kcm.apiserver.egress.services import Address
from kcm.http.connections import Server
from kcm.http.faults import CallFailed
from kcm.http.fetching import Answer, fetch
from kcm.http.transport import Call, send
from kcm.http.trust import Trust, find_context

NOT_MODIFIED, OK, NOT_FOUND = 304, 200, 404


@dataclass(frozen=True)
class Wanted:
    """A document to fetch, as which user, in `timeout` seconds and `most` bytes at most.

    With `etag`, the status is 304 if the document is still that one.
    """

    path: str
    user: User
    timeout: float
    most: int
    accept: str = "application/json"
    etag: str = ""

    @property
    def call(self) -> Call:
        """The request."""
        fields = [(b"accept", self.accept.encode()), *identify(self.user)]
        if self.etag:
            fields.append((b"if-none-match", self.etag.encode("latin-1")))
        return Call("GET", self.path, fields, head_timeout=None)


async def get(api: RemoteApi, address: Address, trust: Trust, wanted: Wanted) -> Answer:
    """Returns what an API's server has at a path. Raises CallFailed."""
    try:
        async with asyncio.timeout(wanted.timeout):
            return await fetch(_server(api, address, trust), wanted.call, most=wanted.most)
    except TimeoutError:
        raise CallFailed("context deadline exceeded", timed_out=True) from None


async def get_status(api: RemoteApi, address: Address, trust: Trust, wanted: Wanted) -> int:
    """Returns the status of the response, whose body is not read. Raises CallFailed."""
    try:
        async with (
            asyncio.timeout(wanted.timeout),
            send(_server(api, address, trust), wanted.call) as response,
        ):
            return response.status
    except TimeoutError:
        raise CallFailed("context deadline exceeded", timed_out=True) from None


def _server(api: RemoteApi, address: Address, trust: Trust) -> Server:
    return Server(address.host, address.port, find_context(trust), api.service.server_name)


def parse_json(answer: Answer) -> Any:
    """Returns the JSON of a document. Raises ValueError."""
    try:
        return json.loads(answer.body)
    except RecursionError:
        raise ValueError("the document is nested too deeply") from None
