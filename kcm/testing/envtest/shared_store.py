"""The store of a template, for an API server that is forked from it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from kcm.clock import RealClock
from kcm.redisio.embedded import EmbeddedServer


class SharedStore:
    """The template's store, and a folder for the files of one API server beside it."""

    def __init__(self, folder: Path) -> None:
        self._server = EmbeddedServer(folder)
        self.folder = folder / f"apiserver-{os.getpid()}"
        self.url = self._server.url

    def launch(self) -> None:
        """Makes the folder. The server runs."""
        self.folder.mkdir(mode=0o700)

    def wait_ready(self) -> None:
        """Waits until the server answers. Raises StoreUnavailable."""
        self._server.wait_ready(RealClock())

    def stop(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
