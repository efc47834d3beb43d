"""The interfaces that sessions use: the client's connection, and connections to a pod's ports."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from kcm.kubelet.cri import PortConnection

Connect = Callable[[int], PortConnection]
"""Connects to a port. May block."""


Admit = Callable[[], AbstractContextManager[None]]
"""Counts a connection to a port as open within a context. Raises TooManyStreams."""


class MessageConnection(Protocol):
    """A connection that transports whole messages."""

    async def send(self, data: bytes) -> None:
        """Sends a message. Raises OSError once the client has left."""
        ...

    async def receive(self) -> bytes | None:
        """Returns the next message, or None once the client has left."""
        ...

    async def close(self) -> None: ...
