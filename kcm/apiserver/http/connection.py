"""uvicorn's HTTP protocol for one connection, with limits and the client's certificate.

uvicorn limits neither the size of a request's head nor the time that a client may take to send it
or to read a response, so a slow client could occupy memory for any time.
"""

from __future__ import annotations

import asyncio
import weakref
from typing import Any

from kcm.apiserver.auth.authenticators import peer_of
from kcm.apiserver.http.tls import forget_reader
from kcm.apiserver.http.unauthenticated import Newcomer
from kcm.http.upgrades import Taken, UpgradableConnection

MAX_HEAD = 256 * 1024  # bytes; upstream allows 1 MiB
MAX_FIELDS = 500  # headers
MAX_MESSAGE = 32 * 1024 * 1024  # bytes of a body, also if it comes in the smallest chunks
# Keys in the extensions of an ASGI scope.
RELAY = "kcm.relay"
PEER = "kcm.peer_certificate"
AUTHENTICATED = "kcm.authenticated"  # a function, called when a request had valid credentials
HEAD_TIMEOUT = 32.0  # seconds for sending a request's head, as upstream
_PIECE = 16 * 1024
READ_TIMEOUT = 60.0  # seconds for which a client may read nothing
_FIELD_MARKS = len(b": \r\n")
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain\r\n"
    b"content-length: 31\r\nconnection: close\r\n\r\nRequest Header Fields Too Large"
)


class LimitedConnection(UpgradableConnection):
    """A connection that is closed when its client is too slow or sends too much."""

    _head: asyncio.TimerHandle | None = None  # runs while a head is not complete
    _stalled: asyncio.TimerHandle | None = None  # runs while the client does not read
    _size = 0  # bytes received of the current head or body
    _begun = False  # whether a head has begun and is not complete
    _relays = False  # whether the current body is passed on, and may have any size

    def __init__(self, newcomer: Newcomer, **given: Any) -> None:
        """`given` is what uvicorn passes to its protocols."""
        super().__init__(**given)
        self._newcomer = newcomer

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        peer = peer_of(tls.getpeercert()) if tls is not None else None
        # Requests must not hold their connection, which holds them: what a connection buffers has
        # to go with it, and not with some later garbage collection.
        self._extensions: dict[str, Any] = {
            RELAY: weakref.proxy(self),
            AUTHENTICATED: self._newcomer.let_go,
        }
        if peer is not None:
            self._extensions[PEER] = peer
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_head_timer()
        self._cancel_stall_timer()
        self._unset_keepalive_if_required()  # uvicorn does so only if there was no error
        super().connection_lost(exc)
        self._newcomer.let_go()
        forget_reader(self.transport)

    def data_received(self, data: bytes) -> None:
        # In pieces, since an event loop may deliver more at once than a head may have.
        for start in range(0, len(data), _PIECE):
            if not self.transport.is_closing():
                self._receive(data[start : start + _PIECE])

    def _receive(self, data: bytes) -> None:
        if self._head is None and self.idle:
            self._await_head()
        self._size += len(data)
        super().data_received(data)
        if self._head is not None:
            if self._size > MAX_HEAD:
                self._refuse()
        elif self._size > MAX_MESSAGE and not self._relays:
            self._refuse()

    def take_over(self) -> Taken:
        """Returns the connection as streams. Nothing more is known of it, so it counts no longer
        as unauthenticated.
        """
        self._newcomer.let_go()
        return super().take_over()

    def relay_body(self) -> None:
        """Lets the current request have a body of any size, since nothing of it is kept."""
        self._relays = True

    def abort(self) -> None:
        """Closes the connection, so that the client sees that its response is not complete."""
        self.transport.abort()

    @property
    def idle(self) -> bool:
        """Reports whether no request is in progress."""
        return self.cycle is None or (self.cycle.response_complete and not self.pipeline)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begun, self._relays = True, False
        self.scope["extensions"] = self._extensions

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._begun:  # otherwise it is a trailer of a chunked body, and no header
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.transport.is_closing():
            return
        self._cancel_head_timer()
        # The last piece may contain a part of the head and of the body.
        is_large = self._size > MAX_HEAD and self._head_size() > MAX_HEAD
        self._size = 0
        if is_large or len(self.headers) > MAX_FIELDS:
            self._refuse()
        else:
            self._begun = False
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.transport.is_closing():
            super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(READ_TIMEOUT, self.transport.abort)

    def resume_writing(self) -> None:
        self._cancel_stall_timer()
        super().resume_writing()

    def _await_head(self) -> None:
        self._size = 0
        self._head = self.loop.call_later(HEAD_TIMEOUT, self.transport.abort)

    def _refuse(self) -> None:
        self._cancel_head_timer()
        if self._begun and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
        self.transport.close()

    def _head_size(self) -> int:
        fields = sum(len(name) + len(value) + _FIELD_MARKS for name, value in self.headers)
        return len(self.url) + fields

    def _cancel_head_timer(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _cancel_stall_timer(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
