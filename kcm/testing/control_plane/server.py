"""The private server of a control plane: it dies with the process that started it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from kcm.clock import RealClock
from kcm.redisio.embedded import EmbeddedServer
from kcm.testing.control_plane.guard import Guard


class PrivateServer:
    """An embedded server in a temporary folder, without a port.

    Guarantees: server and folder go when the process ends, also if it is killed.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kcm-"))
        # Nothing outlives a test, so nothing waits for the disk.
        self._server = EmbeddedServer(self.folder, extra=("--appendfsync", "no"))
        self._guard: Guard | None = None

    @property
    def url(self) -> str:
        """The URL by which this machine connects."""
        return self._server.url

    def launch(self) -> None:
        """Begins to start the server, which takes some tens of milliseconds. Raises
        ConfigurationError.
        """
        self._server.launch()
        assert self._server.process is not None
        self._guard = Guard(self._server.process.pid, self.folder)

    def wait_ready(self) -> None:
        """Waits until the server answers. Raises StoreUnavailable."""
        self._server.wait_ready(RealClock())

    def stop(self) -> None:
        """Stops the server, and removes its folder."""
        if self._server.process is not None:
            self._server.process.kill()  # nothing of it is kept, so it need not save anything
        self._server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._guard is not None:
            self._guard.dismiss()
            self._guard = None
