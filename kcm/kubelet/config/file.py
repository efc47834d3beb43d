"""A manifest folder, or one file, as a source of static pods.

Guarantees: a file that cannot be read or is not a pod is reported once, and does not affect other
files. The pod that it contained before stays until the file is valid again or removed.

Source: pkg/kubelet/config/file.go, Kubernetes 1.33. Departures: upstream is woken by inotify and
removes the pod of an invalid file; here the folder is listed at least every second, and files are
read when they have changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import structlog

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.clock import Clock
from kcm.http import blocking
from kcm.http.blocking import ClientOptions
from kcm.http.trust import Trust, find_context
from kcm.kubelet.config.podconfig import SendUpdate
from kcm.kubelet.config.static import parse_pods
from kcm.kubelet.types import FILE, HTTP, Operation, PodUpdate

log = structlog.get_logger("kcm.kubelet")

SCAN_INTERVAL = 1.0  # seconds
MAX_MANIFEST = 10 * 1024 * 1024  # bytes of a manifest

ReportInvalid = Callable[[str, str], None]
"""Reports an invalid manifest. The arguments are its path and what is wrong with it."""

_Stamp = tuple[int, int, int]


class FileSource:
    """Sends the pods in the files of a folder. Files whose names begin with a dot are ignored."""

    def __init__(
        self,
        path: Path,
        node_name: str,
        send: SendUpdate,
        clock: Clock,
        *,
        frequency: float = 20.0,
        report_invalid: ReportInvalid = lambda *_: None,
    ) -> None:
        self._path = path
        self._node_name = node_name
        self._send = send
        self._clock = clock
        self._frequency = frequency
        self._report_invalid = report_invalid
        self._stamps: dict[Path, _Stamp] = {}
        self._pods: dict[Path, list[Pod]] = {}

    def run(self, stop: threading.Event) -> None:
        """Scans the folder until `stop` is set.

        Sends all pods when a file has changed, and every `frequency` seconds.
        """
        next_send = 0.0
        while not stop.is_set():
            changed = self.scan()
            now = self._clock.monotonic()
            if changed or now >= next_send:
                self.send_all()
                next_send = now + self._frequency
            self._clock.wait(stop, min(SCAN_INTERVAL, self._frequency))

    def scan(self) -> bool:
        """Reads the files that have changed. Returns whether any file has changed or is gone."""
        stamps = self._list_stamps()
        changed = [path for path, stamp in stamps.items() if self._stamps.get(path) != stamp]
        gone = [path for path in self._stamps if path not in stamps]
        self._stamps = stamps
        for path in gone:
            self._pods.pop(path, None)
        for path in changed:
            self._read(path)
        return bool(changed or gone)

    def _list_stamps(self) -> dict[Path, _Stamp]:
        try:
            files = sorted(self._path.iterdir()) if self._path.is_dir() else [self._path]
        except OSError as error:
            log.warning("manifests cannot be listed", path=str(self._path), error=str(error))
            return self._stamps
        stamps: dict[Path, _Stamp] = {}
        for file in files:
            try:
                status = file.stat()
            except OSError:
                continue
            if file.is_file() and not file.name.startswith("."):
                stamps[file] = (status.st_mtime_ns, status.st_size, status.st_ino)
        return stamps

    def _read(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                text = file.read(MAX_MANIFEST)
            self._pods[path] = parse_pods(text, str(path), FILE, self._node_name)
        except (errors.KcmError, OSError, ValueError, TypeError) as error:
            log.error("Could not process manifest file", path=str(path), error=str(error))
            self._report_invalid(str(path), str(error))

    def send_all(self) -> None:
        """Sends the pods of all files as they were last read."""
        pods = [pod for pods in self._pods.values() for pod in pods]
        self._send(PodUpdate(Operation.SET, FILE, pods))


# --- A URL as a source of static pods.
#
# Source: pkg/kubelet/config/http.go, Kubernetes 1.33.


TIMEOUT = 10.0  # seconds
MAX_RESPONSE = 10 * 1024 * 1024  # bytes of a response that are read


class HttpSource:
    """Requests a URL every `frequency` seconds and sends the pods of a response that has changed.

    An empty response removes all pods of the source; one that cannot be parsed changes nothing.
    """

    def __init__(
        self,
        url: str,
        node_name: str,
        send: SendUpdate,
        clock: Clock,
        *,
        frequency: float = 20.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._url = url
        self._node_name = node_name
        self._send = send
        self._clock = clock
        self._frequency = frequency
        self._options = ClientOptions(
            TIMEOUT, find_context(Trust()), list((headers or {}).items()), proxies=True
        )
        self._data: bytes | None = None

    def run(self, stop: threading.Event) -> None:
        """Calls `fetch` every `frequency` seconds until `stop` is set. Errors are logged."""
        while not stop.is_set():
            try:
                self.fetch()
            except (errors.KcmError, ValueError, TypeError) as error:
                log.warning("Failed to read pods from URL", url=self._url, error=str(error))
            self._clock.wait(stop, self._frequency)

    def fetch(self) -> None:
        """Requests the URL once, and sends the pods if the response has changed.

        Raises ValueError, TypeError, and KcmError, the last also for an empty response.
        """
        status, data = blocking.get(self._url, self._options, most=MAX_RESPONSE)
        if status != 200:
            raise errors.KcmError(f"{self._url}: {status}")
        if not data:
            self._send(PodUpdate(Operation.SET, HTTP, ()))
            raise errors.BadRequest(f"zero-length data received from {self._url}")
        if data == self._data:
            return
        self._send(
            PodUpdate(Operation.SET, HTTP, parse_pods(data, self._url, HTTP, self._node_name))
        )
        self._data = data
