"""The process from which API servers are forked: it has kcm imported, and holds the store.

A fork costs a few milliseconds instead of the time of all imports, also when an API server is
started again. The process has no threads, which a fork could not have (design 0033).
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import traceback
from pathlib import Path
from select import select
from typing import Any

from kcm import errors
from kcm.clock import RealClock
from kcm.interpreter import pause_collector
from kcm.redisio.embedded import EmbeddedServer
from kcm.testing.control_plane.guard import Guard
from kcm.testing.envtest.etcd import Handover

_LOOK_EVERY = 0.5  # seconds between checks whether the store still runs


class Template:
    """Starts the store, and forks an API server for each connection."""

    def __init__(self, handover: Handover) -> None:
        self._folder = Path(handover.folder)
        self._control = handover.control
        self._alive = handover.alive
        self._imported = handover.imported
        Path(handover.data).mkdir(mode=0o700, parents=True, exist_ok=True)
        # The path of the store's socket must be short.
        (self._folder / "data").symlink_to(handover.data)
        self._store = EmbeddedServer(self._folder, extra=("--appendfsync", "no"))
        self._living, self._ours = os.pipe()  # its end tells the forks that this process ends
        self._last, self._theirs = os.pipe()  # its end tells that the last fork has ended

    def run(self) -> int:
        """Serves until `etcd` has ended, and returns the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # `etcd` says when to end
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks leave no zombies
        self._store.launch()
        assert self._store.process is not None
        guard = Guard(self._store.process.pid, self._folder, "TERM")
        try:
            with pause_collector(freezes=True):
                _import_all()
            self._store.wait_ready(RealClock())
            os.close(self._imported)
            return self._fork_for_each()
        except errors.KcmError as error:
            sys.stderr.write(f"error: {error}\n")
            return 1
        finally:
            self._end_forks()
            self._store.stop()
            guard.dismiss()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _fork_for_each(self) -> int:
        while True:
            read: list[Any] = [self._control, self._alive]
            ready, _, _ = select(read, [], [], _LOOK_EVERY)
            if self._alive in ready:
                return 0
            if self._store.process is None or self._store.process.poll() is not None:
                return 1
            if self._control not in ready:
                continue
            connection, _ = self._control.accept()
            with connection:
                if os.fork() == 0:
                    os.close(self._ours)
                    self._control.close()
                    self._become_server(connection)

    def _end_forks(self) -> None:
        """Ends the forks, which need the store to end, and waits for them."""
        os.close(self._ours)
        os.close(self._theirs)
        os.read(self._last, 1)

    def _become_server(self, connection: socket.socket) -> None:
        from kcm.testing.envtest.serving import serve  # noqa: PLC0415 - imported in `run`

        code = 1
        try:
            code = serve(connection, self._living, self._folder)
        except BaseException:  # noqa: BLE001 - nothing may return into the code of the template
            traceback.print_exc()
        finally:
            os._exit(code)


def _import_all() -> None:
    """Imports what forks need, while the store starts."""
    import kcm.testing.envtest.serving  # noqa: PLC0415 - see above
    from kcm.testing.envtest.options import asks_for_controllers  # noqa: PLC0415 - see above

    if asks_for_controllers(os.environ):
        import kcm.testing.envtest.controllers  # noqa: F401, PLC0415 - see above
