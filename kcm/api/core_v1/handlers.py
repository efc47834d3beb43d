"""core/v1: probes and lifecycle hooks, and the actions that they take.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import PlainValidator

from kcm.apimachinery.base import Int32, Int64, Model


def _int_or_string(value: Any) -> int | str:
    """Returns the value if it is a string or an integer of 32 bits. Raises ValueError otherwise."""
    if isinstance(value, str) or (
        isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31
    ):
        return value
    raise ValueError("must be an int32 or a string")


IntOrString = Annotated[int | str, PlainValidator(_int_or_string)]


class ExecAction(Model):
    """A command to run inside the container."""

    command: list[str] | None = None


class HTTPHeader(Model):
    """A header of an HTTP request."""

    name: str = ""
    value: str = ""


class HTTPGetAction(Model):
    """An HTTP GET request. A status from 200 to 399 counts as success."""

    path: str | None = None
    port: IntOrString = 0
    host: str | None = None
    scheme: str | None = None
    http_headers: list[HTTPHeader] | None = None


class TCPSocketAction(Model):
    """A TCP connection that must be accepted."""

    port: IntOrString = 0
    host: str | None = None


class GRPCAction(Model):
    """A request of gRPC's health checking protocol."""

    port: Int32 = 0
    service: str | None = None


class SleepAction(Model):
    """A wait of `seconds`."""

    seconds: Int64 = 0


class Probe(Model):
    """A health check of a container, and when it runs. Exactly one of its actions is set."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    grpc: GRPCAction | None = None
    initial_delay_seconds: Int32 | None = None
    timeout_seconds: Int32 | None = None
    period_seconds: Int32 | None = None
    success_threshold: Int32 | None = None
    failure_threshold: Int32 | None = None
    termination_grace_period_seconds: Int64 | None = None


class LifecycleHandler(Model):
    """The action of a lifecycle hook. Exactly one field is set."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(Model):
    """The hooks that the kubelet runs after a container has started and before it is stopped."""

    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str | None = None
