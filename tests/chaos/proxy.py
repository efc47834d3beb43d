"""A link that can go half-open: a proxy between processes and the server.

Frozen, it stops forwarding: connections stay up, new ones are accepted, no byte
passes, and nobody gets an error. Thawed, connections from before stay dead (as
after a firewall lost their state), new ones work.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path


class HalfOpenProxy:
    """Forwards a Unix socket to another, until frozen."""

    def __init__(self, listen: Path, upstream: Path) -> None:
        self.path = listen
        self._upstream = upstream
        self._frozen = threading.Event()
        self._sockets: list[socket.socket] = []
        self._dead: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._server = socket.socket(socket.AF_UNIX)
        listen.unlink(missing_ok=True)
        self._server.bind(str(listen))
        self._server.listen(256)
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def freeze(self) -> None:
        """Lets no byte pass any more."""
        with self._lock:
            self._frozen.set()
            self._dead.update(self._sockets)

    def thaw(self) -> None:
        """Lets new connections work; those from before stay dead."""
        self._frozen.clear()

    def close(self) -> None:
        """Closes every connection."""
        self._server.close()
        with self._lock:
            for link in self._sockets:
                with contextlib.suppress(OSError):
                    link.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        far = socket.socket(socket.AF_UNIX)
        with self._lock:
            self._sockets += [near, far]
            if self._frozen.is_set():
                self._dead.add(near)
                return
        try:
            far.connect(str(self._upstream))
        except OSError:
            self._end(near, far)
            return
        threading.Thread(target=self._pump, args=(near, far), daemon=True).start()
        self._pump(far, near)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if source in self._dead or sink in self._dead:
                    return  # swallowed: neither side hears of it
                sink.sendall(data)
        if source in self._dead or sink in self._dead:
            return
        self._end(source, sink)

    def _end(self, *links: socket.socket) -> None:
        with self._lock:
            self._sockets = [link for link in self._sockets if link not in links]
        for link in links:
            with contextlib.suppress(OSError):
                link.close()
