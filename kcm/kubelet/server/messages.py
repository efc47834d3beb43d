"""What sessions ask of a connection."""

from __future__ import annotations

from typing import Protocol


class Messages(Protocol):
    """A connection that passes whole messages."""

    async def send(self, data: bytes) -> None:
        """Raises OSError once the client has gone."""
        ...

    async def receive(self) -> bytes | None:
        """The next message; None once the client has gone."""
        ...

    async def close(self) -> None: ...
