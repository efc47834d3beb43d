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
        self._headers = dict(headers or {})
        self._data: bytes | None = None

    def run(self, stop: threading.Event) -> None:
        """Calls `fetch` every `frequency` seconds until `stop` is set. Errors are logged."""
        while not stop.is_set():
            try:
                self.fetch()
            except (errors.KcmError, OSError, ValueError, TypeError) as error:
                log.warning("Failed to read pods from URL", url=self._url, error=str(error))
            self._clock.wait(stop, self._frequency)

    def fetch(self) -> None:
        """Requests the URL once, and sends the pods if the response has changed.

        Raises OSError, ValueError, TypeError, and KcmError, the last also for an empty response.
        """
        request = urllib.request.Request(self._url, headers=self._headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            data: bytes = response.read(MAX_RESPONSE)
        if not data:
            self._send(PodUpdate(Operation.SET, HTTP, ()))
            raise errors.BadRequest(f"zero-length data received from {self._url}")
        if data == self._data:
            return
        self._send(
            PodUpdate(Operation.SET, HTTP, parse_pods(data, self._url, HTTP, self._node_name))
        )
        self._data = data
