"""A manifest folder (or one file) as a source of static pods.

Guarantees: a file that cannot be read or is no pod is told of once, and touches no
other; the pod that it described before stays until the file is right again or gone.
Source: pkg/kubelet/config/file.go, Kubernetes 1.33.
Departures: upstream is woken by inotify and ends the pod of a broken file; here the
folder is looked at every second at most, and files are read when they changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import structlog

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.clock import Clock
from kcm.kubelet.config.podconfig import Say
from kcm.kubelet.config.static import pods_of
from kcm.kubelet.types import FILE, Operation, PodUpdate

log = structlog.get_logger("kcm.kubelet")

LOOK_EVERY = 1.0  # seconds
MOST = 10 * 1024 * 1024  # bytes of a manifest

Complain = Callable[[str, str], None]  # file, what is wrong with it
_Stamp = tuple[int, int, int]


class FileSource:
    """Looks at a folder; names that begin with a dot are left alone."""

    def __init__(
        self,
        path: Path,
        node: str,
        say: Say,
        clock: Clock,
        *,
        frequency: float = 20.0,
        complain: Complain = lambda *_: None,
    ) -> None:
        self._path = path
        self._node = node
        self._say = say
        self._clock = clock
        self._frequency = frequency
        self._complain = complain
        self._stamps: dict[Path, _Stamp] = {}
        self._pods: dict[Path, list[Pod]] = {}

    def run(self, stop: threading.Event) -> None:
        """Look until `stop`; all pods are told again each `frequency` seconds."""
        next_tell = 0.0
        while not stop.is_set():
            changed = self.look()
            now = self._clock.monotonic()
            if changed or now >= next_tell:
                self._tell()
                next_tell = now + self._frequency
            self._clock.wait(stop, min(LOOK_EVERY, self._frequency))

    def look(self) -> bool:
        """Whether any file changed."""
        stamps = self._list()
        changed = [path for path, stamp in stamps.items() if self._stamps.get(path) != stamp]
        gone = [path for path in self._stamps if path not in stamps]
        self._stamps = stamps
        for path in gone:
            self._pods.pop(path, None)
        for path in changed:
            self._read(path)
        return bool(changed or gone)

    def _list(self) -> dict[Path, _Stamp]:
        try:
            files = sorted(self._path.iterdir()) if self._path.is_dir() else [self._path]
        except OSError as error:
            log.warning("manifests cannot be listed", path=str(self._path), error=str(error))
            return self._stamps
        found: dict[Path, _Stamp] = {}
        for file in files:
            try:
                status = file.stat()
            except OSError:
                continue
            if file.is_file() and not file.name.startswith("."):
                found[file] = (status.st_mtime_ns, status.st_size, status.st_ino)
        return found

    def _read(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                text = file.read(MOST)
            self._pods[path] = pods_of(text, str(path), FILE, self._node)
        except (errors.KcmError, OSError, ValueError, TypeError) as error:
            log.error("Could not process manifest file", path=str(path), error=str(error))
            self._complain(str(path), str(error))

    def _tell(self) -> None:
        pods = [pod for found in self._pods.values() for pod in found]
        self._say(PodUpdate(Operation.SET, FILE, pods))
