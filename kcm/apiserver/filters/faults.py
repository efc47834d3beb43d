"""Acts out the faults of `FaultRules` on requests and watches, in the event loop.

Latency and timeouts are in real seconds, since clients measure theirs so.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from starlette.types import Message, Receive, Scope

from kcm import errors
from kcm.apimachinery.durations import parse_seconds
from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.exchange import Exchange, Handler
from kcm.apiserver.filters.fault_rules import FaultRules, OpenWatch, RequestFacts, WatchRegister
from kcm.apiserver.http.bodies.reading import to_json
from kcm.apiserver.http.connection import RELAY, LimitedConnection
from kcm.apiserver.http.responses import Response
from kcm.apiserver.http_errors import RequestTimeout
from kcm.apiserver.request import Disconnected, Request, read_body

_READS = frozenset({"get", "list"})
_NO_LIMIT = 60.0  # seconds that a request is held where the server has no request timeout


class ExpiringStream(Protocol):
    """A watch's stream, as `kcm.apiserver.objects.watching.HttpWatch` is one."""

    def expire(self) -> None: ...


@dataclass(frozen=True)
class ServerFaults:
    """What a test gives a server that is to fail at its word."""

    rules: FaultRules
    watches: WatchRegister

    def gate(self, request_timeout: float) -> FaultGate:
        """Returns the gate of a server with this request timeout in seconds; 0 means none."""
        return FaultGate(self, request_timeout)


class FaultGate:
    """What every request passes on a server with fault rules. Only the event loop may use it."""

    def __init__(self, faults: ServerFaults, request_timeout: float) -> None:
        self._rules = faults.rules
        self._watches = faults.watches
        self._timeout = request_timeout or _NO_LIMIT
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ends the requests that are held."""
        self._stopping.set()

    async def serve(self, exchange: Exchange, proceed: Handler) -> Response | None:
        """Lets a request pass, or fail as a fault says.

        Raises the error that the client gets, and Disconnected if it gets none.
        """
        if exchange.asked is not None:
            await self._strike(exchange, exchange.asked)
        return await proceed(exchange)

    async def _strike(self, exchange: Exchange, asked: Attributes) -> None:
        receive = exchange.receive
        facts = _facts_of(asked, exchange)
        self._watches.requests[facts.verb, facts.qualified_resource, facts.agent] += 1
        if not self._rules.active:
            return
        if facts.verb == "create" and not facts.name:
            body = await read_body(receive, lambda _: None)
            exchange.receive = receive = _replay(body, receive)
            facts = replace(facts, name=_find_name(exchange.request, body))
        outcome = self._rules.find_outcome(facts)
        if outcome is not None:
            await asyncio.sleep(outcome.latency)
            if outcome.end == "cut":
                _connection(exchange.scope).abort()
                await _wait_for_disconnect(receive)
                raise Disconnected
            if outcome.end == "timeout":
                await self._hold(self._limit(exchange.request), receive)
                raise RequestTimeout
            if outcome.end is not None:
                raise outcome.end
        if facts.verb in _READS and facts.version == "0":
            stale = self._rules.find_staleness(facts)
            exchange.request = replace(exchange.request, stale=stale)

    def check_start(self, exchange: Exchange) -> None:
        """Raises Gone if a watch that is about to begin has an expired resourceVersion."""
        if exchange.asked is not None and self._rules.active:
            facts = _facts_of(exchange.asked, exchange)
            oldest = self._rules.find_expiry(facts)
            if oldest is not None:
                raise errors.Gone(f"too old resource version: {facts.version} ({oldest})")

    @contextmanager
    def follow(self, stream: ExpiringStream, exchange: Exchange) -> Iterator[None]:
        """Lists a watch among the open ones while the block runs."""
        assert exchange.asked is not None
        loop, connection = asyncio.get_running_loop(), _connection(exchange.scope)
        watch = OpenWatch(
            _facts_of(exchange.asked, exchange),
            cut=lambda: _call_soon(loop, connection.abort),
            expire=lambda: _call_soon(loop, stream.expire),
        )
        self._watches.add(watch)
        try:
            yield
        finally:
            self._watches.discard(watch)

    def _limit(self, request: Request) -> float:
        """Returns how many seconds a request may take: its own timeout, or the server's."""
        given = request.query.get("timeout", "")
        try:
            seconds = parse_seconds(given) if given else self._timeout
        except ValueError:
            seconds = self._timeout
        return min(seconds, self._timeout)

    async def _hold(self, seconds: float, receive: Receive) -> None:
        """Waits until the time is over or the server stops. Raises Disconnected if the client
        leaves.
        """
        leaving = asyncio.ensure_future(_wait_for_disconnect(receive))
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait(
                {leaving, stopping}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if leaving.done():
                raise Disconnected
        finally:
            leaving.cancel()
            stopping.cancel()


def _facts_of(asked: Attributes, exchange: Exchange) -> RequestFacts:
    request = exchange.request
    return RequestFacts(
        verb=asked.verb,
        group=asked.group,
        resource=asked.resource,
        subresource=asked.subresource,
        namespace=asked.namespace,
        name=asked.name,
        user=exchange.user.name,
        agent=request.header(b"user-agent"),
        version=request.query.get("resourceVersion", ""),
    )


def _find_name(request: Request, body: bytes) -> str:
    """Returns the name in the body of a create, "" if there is none that can be read."""
    try:
        obj = json.loads(to_json(request.content_type, body))
        meta = obj["metadata"]
        name = meta.get("name") or meta.get("generateName") or ""
    except (errors.ApiError, ValueError, LookupError, TypeError, AttributeError):
        return ""  # the handler tells the client what is wrong with it
    return name if isinstance(name, str) else ""


def _replay(body: bytes, receive: Receive) -> Receive:
    """Returns a function that receives a body that was read, and then what comes after it."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return left.pop() if left else await receive()

    return receive_again


def _connection(scope: Scope) -> LimitedConnection:
    connection = scope["extensions"][RELAY]
    assert isinstance(connection, LimitedConnection)  # the server puts it there
    return connection


def _call_soon(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(work)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
