"""What sessions need: the client's connection, and connections to a pod's ports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Connect = Callable[[int], int]  # a port -> a connected socket's descriptor; blocks


class MessageConnection(Protocol):
    """A connection that carries whole messages."""

    async def send(self, data: bytes) -> None:
        """Raises OSError once the client has gone."""
        ...

    async def receive(self) -> bytes | None:
        """Returns the next message; None once the client has left."""
        ...

    async def close(self) -> None: ...
