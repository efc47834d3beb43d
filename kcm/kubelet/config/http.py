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
from kcm.kubelet.config.podconfig import SendUpdate
from kcm.kubelet.config.static import parse_pods
from kcm.kubelet.types import HTTP, Operation, PodUpdate

log = structlog.get_logger("kcm.kubelet")

TIMEOUT = 10.0  # seconds
MAX_ANSWER = 10 * 1024 * 1024  # bytes of an answer


class HttpSource:
    """Fetches a URL every `frequency` seconds; an answer that cannot be read changes nothing."""

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
        self._headers = dict(headers or {})
        self._data: bytes | None = None

    def run(self, stop: threading.Event) -> None:
        """Fetches until `stop`."""
        while not stop.is_set():
            try:
                self.fetch()
            except (errors.KcmError, OSError, ValueError, TypeError) as error:
                log.warning("Failed to read pods from URL", url=self._url, error=str(error))
            self._clock.wait(stop, self._frequency)

    def fetch(self) -> None:
        """Fetches once, and sends the pods if the answer has changed.

        Raises OSError, ValueError, TypeError and KcmError.
        """
        request = urllib.request.Request(self._url, headers=self._headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            data: bytes = answer.read(MAX_ANSWER)
        if not data:
            self._send(PodUpdate(Operation.SET, HTTP, ()))
            raise errors.BadRequest(f"zero-length data received from {self._url}")
        if data == self._data:
            return
        self._send(
            PodUpdate(Operation.SET, HTTP, parse_pods(data, self._url, HTTP, self._node_name))
        )
        self._data = data
