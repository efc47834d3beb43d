"""HTTP/1.1 messages for the transports of threads and event loops: heads of requests, and responses
taken apart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import httptools

from kcm.http.faults import CallFailed

END_OF_HEAD = b"\r\n\r\n"
MOST_HEAD = 64 * 1024  # bytes of a response's head
MOST_FIELDS = 500  # headers of a response, and heads that are only informational
SWITCHING = 101
_CONTINUE, _INFORMATIONAL = 100, range(102, 200)


def join_head(lines: Sequence[bytes]) -> bytes:
    """Returns the head that these lines make. Raises CallFailed if one of them has a line break."""
    head = b"\r\n".join([*lines, b"", b""])
    if head.count(b"\n") != len(lines) + 1 or head.count(b"\r") != len(lines) + 1:
        raise CallFailed("net/http: invalid header field value")
    return head


def read_status(head: bytes) -> int:
    """Returns the status code of a head, 0 if it has none."""
    code = head[9:12]
    return int(code) if code.isdigit() else 0


def is_informational(status: int) -> bool:
    """Reports whether another head follows one with this status."""
    return status == _CONTINUE or status in _INFORMATIONAL


class ResponseParser:
    """The response of one request, as far as it has come. httptools calls the methods `on_*`."""

    def __init__(self, method: str) -> None:
        """`method` is that of the request: a response to HEAD has no body, whatever it says."""
        self.status = 0
        self.fields: list[tuple[bytes, bytes]] = []  # with names in lower case
        self.pieces: deque[bytes] = deque()  # of the body, that have not been taken
        self.is_complete = False
        self.has_surplus = False  # whether something follows the response
        self.lasts = False  # whether the server keeps the connection
        # Whether the headers say where the body ends. If not, the end of the connection does.
        self.is_sized = False
        self._bodiless = method == "HEAD"
        self._parser = httptools.HttpResponseParser(self)

    @property
    def is_read(self) -> bool:
        """Whether nothing of the body is to come."""
        return self.is_complete or self._bodiless

    def feed(self, data: bytes) -> None:
        """Takes bytes of the response. Raises CallFailed if they are none."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            if not self.is_complete:
                raise CallFailed(f"malformed HTTP response: {error}") from None
            self.has_surplus = True

    def on_message_begin(self) -> None:
        self.has_surplus = self.is_complete

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self.fields) >= MOST_FIELDS or self.is_complete:
            return
        name = name.lower()
        if name in {b"content-length", b"transfer-encoding"}:
            self.is_sized = True
        self.fields.append((name, value))

    def on_headers_complete(self) -> None:
        if not self.has_surplus:
            self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        if not self.has_surplus:
            self.pieces.append(body)

    def on_message_complete(self) -> None:
        self.is_complete = True
        self.lasts = self._parser.should_keep_alive()  # forgotten with the next message
