"""One identity per controller towards Redis (upstream's ControllerClientBuilder).

A client is a connection pool of its own; `CLIENT LIST` shows `kcm/<identity>`,
and the identity is the component of the Events that are recorded for it.
Nothing is connected before it is used.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from kcm.clock import Clock
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store


@dataclass(frozen=True)
class Client:
    """Access to the store under one identity."""

    identity: str
    io: RedisIO
    store: Store


class ClientBuilder:
    """Makes a process' clients; the same identity gives the same client."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._clients: dict[str, Client] = {}

    def client(self, identity: str) -> Client:
        """The client of `identity`, such as `replicaset-controller`."""
        with self._lock:
            if identity not in self._clients:
                io = RedisIO(self._settings, name=f"kcm/{identity}")
                self._clients[identity] = Client(identity, io, Store(io, self._clock))
            return self._clients[identity]

    def close(self) -> None:
        """Close every client's connections."""
        with self._lock:
            for client in self._clients.values():
                client.io.close()
