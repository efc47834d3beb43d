"""A gRPC channel to a container runtime, and what its errors mean.

Guarantees: any thread may make any call. Every call has a deadline, so that a runtime that hangs
holds up no thread for ever, pulls of images and streams excepted. A channel connects when it is
first used, and again by itself after the runtime was away.

Source: staging/src/k8s.io/cri-client/pkg (remote_runtime.go, util/util_unix.go), Kubernetes 1.36.
"""

from __future__ import annotations

from typing import Any

import grpc

from kcm import errors
from kcm.kubelet.runtime.cri.messages import Message, calls

TIMEOUT = 120.0  # seconds for a call, as upstream's --runtime-request-timeout
_OPTIONS = (
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 5000),  # how long connecting may take
    ("grpc.max_reconnect_backoff_ms", 3000),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
)
_GO_NAMES = {"CANCELLED": "Canceled"}  # Go spells only this one differently


class CallFailed(errors.ContainerRuntimeError):
    """The container runtime refused or failed a call."""

    code: grpc.StatusCode = grpc.StatusCode.UNKNOWN
    details: str = ""


class RuntimeChannel:
    """Makes calls of CRI v1 at one endpoint."""

    def __init__(self, endpoint: str) -> None:
        """`endpoint` is a URL like `unix:///run/containerd/containerd.sock`."""
        self.endpoint = endpoint
        self._channel = grpc.insecure_channel(endpoint, _OPTIONS)
        self._methods = {
            name: (self._channel.unary_stream if call.is_stream else self._channel.unary_unary)(
                call.path, call.request.SerializeToString, call.response.FromString
            )
            for name, call in calls().items()
        }

    def call(self, name: str, deadline: float | None = TIMEOUT, **fields: Any) -> Message:
        """Makes the call of that name with a request of these fields; returns its response.

        `deadline` is in seconds from now, None for none. Raises CallFailed, also for text that is
        not Unicode, which cannot be sent.
        """
        try:
            request = calls()[name].request(**fields)
        except UnicodeError as error:
            raise CallFailed(f"rpc error: code = InvalidArgument desc = {error}") from error
        try:
            return self._methods[name](request, timeout=deadline)
        except grpc.RpcError as error:
            raise convert_error(error) from None

    def open_stream(self, name: str) -> Any:
        """Begins the call of that name, which has many responses; returns gRPC's call.

        Iterating over it yields the responses, and raises grpc.RpcError when it breaks or was
        cancelled.
        """
        return self._methods[name](calls()[name].request())

    def close(self) -> None:
        """Closes the channel; calls under way raise CallFailed."""
        self._channel.close()


def convert_error(error: grpc.RpcError) -> CallFailed:
    """Returns the error in the words of Go's clients, which people search for."""
    code, details = error.code(), error.details() or ""
    name = _GO_NAMES.get(code.name, code.name.title().replace("_", ""))
    failure = CallFailed(f"rpc error: code = {name} desc = {details}")
    failure.code, failure.details = code, details
    return failure
