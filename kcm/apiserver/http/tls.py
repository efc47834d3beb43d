"""asyncio's TLS for one connection, whose buffers go with the connection.

asyncio leaves them to the garbage collector: the error of a failed handshake holds itself through
its own traceback, and with it the buffers and OpenSSL's state, 66 to 91 KiB that a client without
credentials could fill memory with. Its buffer for what goes out keeps the size of the largest
write.
"""

from __future__ import annotations

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable


class TLSConnection(SSLProtocol):
    """The TLS layer between a transport and the protocol of its connection.

    It is the transport's protocol itself, so no task waits for the handshake.
    """

    def __init__(
        self,
        open_inner: Callable[[], asyncio.Protocol],
        context: ssl.SSLContext,
        handshake_timeout: float | None,
        *,
        failed: Callable[[], None],
    ) -> None:
        """`open_inner` is called when the handshake is complete, for which the client has
        `handshake_timeout` seconds. It returns the protocol that gets what is decrypted. `failed`
        is called when the connection is lost before.
        """
        super().__init__(
            asyncio.get_running_loop(),
            asyncio.Protocol(),
            context,
            waiter=None,  # type: ignore[arg-type] # as asyncio itself allows
            server_side=True,
            ssl_handshake_timeout=handshake_timeout,  # type: ignore[arg-type] # takes a float, too
        )
        self._open_inner: Callable[[], asyncio.Protocol] | None = open_inner
        self._failed = failed

    def connection_lost(self, exc: BaseException | None) -> None:
        forget_reader(self._transport)
        super().connection_lost(exc)
        self._extra.clear()
        self._sslobj = None
        self._incoming = self._outgoing = ssl.MemoryBIO()
        self._ssl_buffer = bytearray()
        self._ssl_buffer_view = memoryview(self._ssl_buffer)
        if self._open_inner is not None:
            self._failed()

    def _on_handshake_complete(self, handshake_exc: BaseException | None) -> None:
        # asyncio would raise the error in a frame that it leads back to.
        if handshake_exc is None and self._open_inner is not None:
            self._set_app_protocol(self._open_inner())
            self._open_inner = None
            super()._on_handshake_complete(None)
        else:
            self._close_at_once()

    def _check_handshake_timeout(self) -> None:
        self._close_at_once()

    def _close_at_once(self) -> None:
        if isinstance(self._transport, asyncio.WriteTransport):
            self._transport.abort()


def forget_reader(transport: asyncio.BaseTransport | None) -> None:
    """Frees the transport of a connection that is lost, once nothing else holds it.

    It has a method of itself for reading, so otherwise it waits for the garbage collector.
    """
    if transport is not None:
        vars(transport).pop("_read_ready_cb", None)
