"""HTTP connections that are upgraded to another protocol, such as WebSocket.

If the client asks for an upgrade, the extensions of the app's scope contain `UPGRADE`. The app
either sends a response, or takes the connection over, and then writes everything itself, also the
head of the response. Data that the client sends before the response is lost: it has to wait for
code 101.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from typing import Any

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

UPGRADE = "kcm.upgrade"
_BUFFER = 256 * 1024  # the most bytes that are read ahead

Taken = tuple[asyncio.StreamReader, asyncio.StreamWriter]
TakeOver = Callable[[], Taken]


def upgrade_of(scope: Scope) -> TakeOver | None:
    """Returns the function that takes the connection over, None if no upgrade is requested."""
    method: weakref.WeakMethod[TakeOver] | None = (scope.get("extensions") or {}).get(UPGRADE)
    return method() if method is not None else None


class UpgradableConnection(HttpToolsProtocol):
    """A uvicorn protocol that can be taken over. Its server must be configured with `ws="none"`."""

    def on_headers_complete(self) -> None:
        upgrades = self.parser.should_upgrade()
        if upgrades:
            extensions: dict[str, Any] = dict(self.scope.get("extensions") or {})
            # The scope must not hold the connection, which holds the scope.
            self.scope["extensions"] = extensions | {UPGRADE: weakref.WeakMethod(self.take_over)}
        super().on_headers_complete()
        if upgrades and self.cycle is not None:
            self.cycle.keep_alive = False  # the parser cannot continue

    def _unsupported_upgrade_warning(self) -> None:
        """Stops reading until the app has decided, instead of uvicorn's warning."""
        self.flow.pause_reading()

    def take_over(self) -> Taken:
        """Returns the connection as streams. uvicorn no longer handles it."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_BUFFER, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        self.connections.discard(self)
        self.cycle.disconnected = True  # uvicorn has to send nothing more
        self.parser = None  # type: ignore[assignment] # it holds this protocol, and is done
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        writer = asyncio.StreamWriter(self.transport, protocol, reader, loop)
        self.flow.resume_reading()
        self.transport.resume_reading()
        return reader, writer
