"""The private server of a control plane: it dies with the process that started it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from kcm.redisio.embedded import EmbeddedServer

# Reads until the process that started it writes "done" or is gone, and then leaves nothing behind.
_GUARD = 'read -r word; [ "$word" = done ] || { kill -9 "$1"; rm -rf -- "$2"; }'


class PrivateServer:
    """An embedded server in a temporary folder, without a port.

    Guarantees: server and folder go when the process ends, also if it is killed.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kcm-"))
        # Nothing outlives a test, so nothing waits for the disk.
        self._server = EmbeddedServer(self.folder, extra=("--appendfsync", "no"))
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL by which this machine connects."""
        return self._server.url

    def start(self) -> None:
        """Starts the server. Raises ConfigurationError and StoreUnavailable."""
        self._server.start()
        assert self._server.process is not None
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "sh", str(self._server.process.pid), str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C does not reach it
        )

    def stop(self) -> None:
        """Stops the server, and removes its folder."""
        if self._server.process is not None:
            self._server.process.kill()  # nothing of it is kept, so it need not save anything
        self._server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._guard is not None:
            self._guard.communicate(b"done\n")
            self._guard = None
