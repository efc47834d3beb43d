"""A URL as a source of static pods.

Source: pkg/kubelet/config/http.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Mapping

import structlog

from kcm import errors
from kcm.clock import Clock
from kcm.kubelet.config.podconfig import Say
from kcm.kubelet.config.static import pods_of
from kcm.kubelet.types import HTTP, Operation, PodUpdate

log = structlog.get_logger("kcm.kubelet")

TIMEOUT = 10.0  # seconds
MOST = 10 * 1024 * 1024  # bytes of an answer


class HttpSource:
    """Asks a URL every `frequency` seconds; what cannot be read leaves all as it is."""

    def __init__(
        self,
        url: str,
        node: str,
        say: Say,
        clock: Clock,
        *,
        frequency: float = 20.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._url = url
        self._node = node
        self._say = say
        self._clock = clock
        self._frequency = frequency
        self._headers = dict(headers or {})
        self._data: bytes | None = None

    def run(self, stop: threading.Event) -> None:
        """Ask until `stop`."""
        while not stop.is_set():
            try:
                self.ask()
            except (errors.KcmError, OSError, ValueError, TypeError) as error:
                log.warning("Failed to read pods from URL", url=self._url, error=str(error))
            self._clock.wait(stop, self._frequency)

    def ask(self) -> None:
        """Ask once; the same answer as before is nothing new. Raises what went wrong."""
        request = urllib.request.Request(self._url, headers=self._headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            data: bytes = answer.read(MOST)
        if not data:
            self._say(PodUpdate(Operation.SET, HTTP, ()))
            raise errors.BadRequest(f"zero-length data received from {self._url}")
        if data == self._data:
            return
        self._say(PodUpdate(Operation.SET, HTTP, pods_of(data, self._url, HTTP, self._node)))
        self._data = data
