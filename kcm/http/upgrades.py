"""HTTP connections that become something else: `Upgrade: websocket` and the like.

An app finds `UPGRADE` among its scope's extensions when the client asks for that. It
either answers as always, or takes the connection over and speaks for itself from then
on, the answer's head included. What a client sends before it was answered is lost: it
has to wait for 101.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

UPGRADE = "kcm.upgrade"
_BUFFER = 256 * 1024  # bytes that are read ahead

Taken = tuple[asyncio.StreamReader, asyncio.StreamWriter]
TakeOver = Callable[[], Taken]


def upgrade_of(scope: Scope) -> TakeOver | None:
    """What takes the connection over; None for a request that asks for no upgrade."""
    found: TakeOver | None = (scope.get("extensions") or {}).get(UPGRADE)
    return found


class UpgradableConnection(HttpToolsProtocol):
    """uvicorn's protocol; with it, its server is told `ws="none"`."""

    def on_headers_complete(self) -> None:
        upgrades = self.parser.should_upgrade()
        if upgrades:
            known: dict[str, Any] = dict(self.scope.get("extensions") or {})
            self.scope["extensions"] = known | {UPGRADE: self.take_over}
        super().on_headers_complete()
        if upgrades and self.cycle is not None:
            self.cycle.keep_alive = False  # the parser has stopped for good

    def _unsupported_upgrade_warning(self) -> None:
        """Nothing is wrong: the app decides. Meanwhile no more is read."""
        self.flow.pause_reading()

    def take_over(self) -> Taken:
        """The connection as streams. uvicorn forgets it, but for the app's task."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_BUFFER, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        self.connections.discard(self)
        self.cycle.disconnected = True  # nothing is owed to the client any longer
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        writer = asyncio.StreamWriter(self.transport, protocol, reader, loop)
        self.flow.resume_reading()
        self.transport.resume_reading()
        return reader, writer
