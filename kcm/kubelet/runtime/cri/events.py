"""The events of a container runtime: word that something has changed, as soon as it has.

An event only says when to look. What has changed is what the runtime's lists say, so a stream that
breaks, hangs, repeats itself, or reports what did not happen costs a look or a second, and never a
wrong status.

Source: GetContainerEvents in staging/src/k8s.io/cri-client/pkg/remote_runtime.go, Kubernetes 1.36.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import grpc
import structlog

from kcm.clock import Clock
from kcm.kubelet.runtime.cri.channel import CallFailed, RuntimeChannel, convert_error
from kcm.kubelet.runtime.cri.messages import Message

log = structlog.get_logger("kcm.kubelet")

_UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED
RETRY_PERIOD = 1.0  # seconds after a stream has ended until the next one
UNIMPLEMENTED_PERIOD = 60.0  # seconds, where the runtime has no events; it may be replaced


class ContainerEvents:
    """Follows the events of a runtime, in one thread."""

    def __init__(self, channel: RuntimeChannel, labels: dict[str, str], clock: Clock) -> None:
        """`labels` are those of the kubelet's own sandboxes."""
        self._channel = channel
        self._labels = labels
        self._clock = clock
        self._lock = threading.Lock()
        self._stream: Any = None  # gRPC's call, which any thread may cancel
        self._closed = False
        self._last_problem = ""

    def run(self, stop: threading.Event, report: Callable[[], None]) -> None:
        """Calls `report` for each event of the kubelet's own pods, until `stop` is set.

        A stream that has ended is opened again. `close` ends the wait for an event.
        """
        while not stop.is_set() and (stream := self._open()) is not None:
            pause = self._follow(stream, report)
            self._clock.wait(stop, pause)

    def close(self) -> None:
        """Ends the stream; none is opened afterwards."""
        with self._lock:
            self._closed = True
            if self._stream is not None:
                self._stream.cancel()

    def _open(self) -> Any:
        with self._lock:
            if self._closed:
                return None
            self._stream = self._channel.open_stream("GetContainerEvents")
            return self._stream

    def _follow(self, stream: Any, report: Callable[[], None]) -> float:
        """Reports events until the stream ends; returns the seconds until the next attempt."""
        try:
            for event in stream:
                self._last_problem = ""
                if self._may_be_own(event):
                    report()
        except grpc.RpcError as error:
            failure = convert_error(error)
            self._log_once(failure)
            return UNIMPLEMENTED_PERIOD if failure.code is _UNIMPLEMENTED else RETRY_PERIOD
        return RETRY_PERIOD

    def _may_be_own(self, event: Message) -> bool:
        """Reports whether an event is of the kubelet's own pods, as far as one can tell.

        That of a sandbox that is gone has no status.
        """
        if not event.HasField("pod_sandbox_status"):
            return True
        return self._labels.items() <= dict(event.pod_sandbox_status.labels).items()

    def _log_once(self, failure: CallFailed) -> None:
        if self._closed or str(failure) == self._last_problem:
            return
        self._last_problem = str(failure)
        if failure.code is _UNIMPLEMENTED:
            log.info("the container runtime has no events; its lists show what has changed")
        else:
            log.warning("the container runtime's events have ended", error=str(failure))
