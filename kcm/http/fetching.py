"""Fetches whole responses: what most calls of other servers do, such as those of webhooks.

It guarantees what `transport` does, and takes a third of the time: what comes from the server goes
to the parser at once, not through a stream.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from kcm.http.connections import Connection, Pool, Receiver, Server, connect
from kcm.http.faults import CallFailed, connection_fault
from kcm.http.messages import (
    END_OF_HEAD,
    MOST_FIELDS,
    MOST_HEAD,
    SWITCHING,
    ResponseParser,
    is_informational,
    read_status,
)
from kcm.http.transport import Call, Fields, build_head, find_field


@dataclass(frozen=True)
class Answer:
    """A response that has been read."""

    status: int
    fields: Fields
    body: bytes

    def header(self, name: bytes) -> str:
        """Returns the value of a header, "" if it is absent. `name` is in lower case."""
        return find_field(self.fields, name)


async def fetch(server: Server, call: Call, pool: Pool | None = None, *, most: int) -> Answer:
    """Returns a whole response, whose body has at most `most` bytes.

    The request's body must not be a stream. Raises BadRequest for an address that is not allowed,
    and CallFailed.
    """
    assert call.body is None or isinstance(call.body, bytes)
    request = build_head(call, server) + (call.body or b"")
    while True:
        kept = pool.take(server) if pool is not None else None
        connection = kept or await connect(server)
        gathering = _Gathering(connection, call, server, most)
        try:
            answer = await gathering.exchange(request)
        except BaseException as error:
            connection.abort()
            if kept is None or not isinstance(error, CallFailed):
                raise
            # The server may just have closed it, as the request came.
            if not (call.repeats and gathering.is_silent):
                raise
        else:
            if pool is not None and gathering.is_reusable:
                pool.keep(server, connection)
            else:
                connection.close()
            return answer


class _Gathering(Receiver):
    """Gathers the response to one request."""

    def __init__(self, connection: Connection, call: Call, server: Server, most: int) -> None:
        self.is_silent = True  # whether no byte of a response has come
        self._connection = connection
        self._call = call
        self._server = server
        self._most = most
        self._head = bytearray()  # as far as it has come
        self._is_headed = False
        self._informational = 0  # heads that were passed over
        self._body = bytearray()
        self._response = ResponseParser(call.method)
        self._has_surplus = False
        self._end = asyncio.get_running_loop().create_future()

    @property
    def is_reusable(self) -> bool:
        """Whether the connection may be used again."""
        response = self._response
        return (
            response.is_complete
            and not (self._has_surplus or response.has_surplus)
            and self._connection.is_quiet
            and response.lasts
        )

    async def exchange(self, request: bytes) -> Answer:
        """Sends a request and returns its response. Raises CallFailed."""
        connection, timeout = self._connection, self._call.head_timeout
        limit = None
        if timeout is not None:
            limit = asyncio.get_running_loop().call_later(timeout, self._give_up)
        connection.reader.pass_to(self)
        try:
            connection.writer.write(request)
            await self._end
        finally:
            connection.reader.pass_to(None)
            if limit is not None:
                limit.cancel()
        return Answer(self._response.status, self._response.fields, bytes(self._body))

    def _give_up(self) -> None:
        if not self._is_headed:
            why = "net/http: timeout awaiting response headers"
            self._fail(CallFailed(why, timed_out=True))

    # --- what comes

    def feed(self, data: bytes) -> None:
        self.is_silent = False
        if self._end.done():
            self._has_surplus = True
            return
        try:
            rest = data if self._is_headed else self._pass_head(data)
            if self._is_headed:
                self._take(rest)
        except CallFailed as error:
            self._fail(error)

    def _pass_head(self, data: bytes) -> bytes:
        """Returns what has come from the head of the response proper on, b"" if not all of the
        head has. What is only informational is passed over. Raises CallFailed.
        """
        head = self._head
        searched = max(0, len(head) + 1 - len(END_OF_HEAD))
        head += data
        while (end := head.find(END_OF_HEAD, searched)) >= 0 and end <= MOST_HEAD:
            status = read_status(bytes(head[:end]))
            if status == SWITCHING:
                raise CallFailed("unexpected upgrade")
            if not is_informational(status):
                self._is_headed = True
                return bytes(head)
            self._informational += 1
            if self._informational >= MOST_FIELDS:
                raise CallFailed("net/http: too many 1xx informational responses")
            del head[: end + len(END_OF_HEAD)]
            searched = 0
        if len(head) > MOST_HEAD:
            why = f"net/http: server response headers exceeded {MOST_HEAD} bytes; aborted"
            raise CallFailed(why)
        return b""

    def _take(self, data: bytes) -> None:
        """Takes bytes of the response proper. Raises CallFailed."""
        response, body = self._response, self._body
        response.feed(data)
        while response.pieces:
            body += response.pieces.popleft()
        if len(body) > self._most:
            raise CallFailed(f"the response is larger than {self._most} bytes")
        if response.is_read:
            self._end.set_result(None)

    def end(self) -> None:
        failure = self._connection.reader.failure
        if self._end.done():
            return
        if failure is not None:
            self._fail(connection_fault(failure, self._server.netloc))
        elif not self._is_headed:
            self._fail(CallFailed("unexpected EOF" if self._head else "EOF"))
        elif self._response.is_sized:
            self._fail(CallFailed("unexpected EOF"))
        else:
            self._end.set_result(None)

    def _fail(self, error: CallFailed) -> None:
        if not self._end.done():
            self._end.set_exception(error)
