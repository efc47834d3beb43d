"""What sessions need of a connection."""

from __future__ import annotations

from typing import Protocol


class MessageConnection(Protocol):
    """A connection that carries whole messages."""

    async def send(self, data: bytes) -> None:
        """Raises OSError once the client has gone."""
        ...

    async def receive(self) -> bytes | None:
        """Returns the next message; None once the client has left."""
        ...

    async def close(self) -> None: ...
