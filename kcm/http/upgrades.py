"""HTTP connections that become something else: `Upgrade: websocket` and the like.

An app finds `UPGRADE` among the extensions of its scope when the client asks for an upgrade. It
either answers as usual, or takes the connection over and from then on writes everything itself, the
head of the answer too. What a client sends before it was answered is lost: it has to wait for 101.
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
    """Returns what takes the connection over; None for a request that asks for no upgrade."""
    take_over: TakeOver | None = (scope.get("extensions") or {}).get(UPGRADE)
    return take_over


class UpgradableConnection(HttpToolsProtocol):
    """A uvicorn protocol that can be taken over. Its server is configured with `ws="none"`."""

    def on_headers_complete(self) -> None:
        upgrades = self.parser.should_upgrade()
        if upgrades:
            known: dict[str, Any] = dict(self.scope.get("extensions") or {})
            self.scope["extensions"] = known | {UPGRADE: self.take_over}
        super().on_headers_complete()
        if upgrades and self.cycle is not None:
            self.cycle.keep_alive = False  # the parser has stopped for good

    def _unsupported_upgrade_warning(self) -> None:
        """Warns of nothing, since the app decides. No more is read meanwhile."""
        self.flow.pause_reading()

    def take_over(self) -> Taken:
        """Returns the connection as streams. uvicorn forgets all of it but the app's task."""
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
